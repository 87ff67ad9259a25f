"""Options of the profiler's tables, averages and files that stand alone."""

import gzip
import importlib
import json

import pytest

from library import IS_GRADIRON, NAME, T

P = importlib.import_module(f"{NAME}.profiler")
AP = importlib.import_module(f"{NAME}.autograd.profiler")


stacks = pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch's builds without Kineto's Python tracer give no stacks")


def two_shapes():
    for size in (2, 3, 3):
        T.ones(size) * 2


def recorded(work=two_shapes, **options):
    with P.profile(**options) as p:
        work()
    return p


def products(averages):
    return sorted(a.count for a in averages if a.key == "aten::mul")


def test_averages_by_shape():
    p = recorded(record_shapes=True)
    assert products(p.key_averages()) == [3]
    assert products(p.key_averages(group_by_input_shape=True)) == [1, 2]
    assert products(p.events().key_averages(group_by_input_shapes=True)) == [1, 2]
    with AP.profile(record_shapes=True) as old:
        two_shapes()
    assert products(old.key_averages(group_by_input_shape=True)) == [1, 2]


def test_shapes_have_a_column_of_a_width():
    averages = recorded(record_shapes=True).key_averages(group_by_input_shape=True)
    assert "Input Shapes" in averages.table()
    assert "[[2], []]" in averages.table()
    narrow = averages.table(max_shapes_column_width=7)
    assert "[[2], [  " in narrow and "[[2], []]" not in narrow


def test_averages_by_overload():
    p = recorded()
    assert products(p.key_averages(group_by_overload_name=True)) == [3]
    assert products(p.events().key_averages(group_by_overload_name=True)) == [3]


@stacks
def test_sources_have_a_column_of_a_width():
    averages = recorded(with_stack=True).key_averages(group_by_stack_n=1)
    wide, narrow = averages.table(), averages.table(max_src_column_width=20)
    assert "test_profiler_options.py" in wide and "two_shapes" in wide
    assert max(map(len, narrow.splitlines())) < max(map(len, wide.splitlines()))
    assert "..." in narrow and "test_profiler_options.py(" not in narrow


@stacks
def test_older_table_takes_the_same():
    with AP.profile(with_stack=True) as old:
        two_shapes()
    assert "Source Location" in old.table()
    assert "HEAD" in old.table(header="HEAD", row_limit=1, max_src_column_width=20)


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch writes no line for times of less than a microsecond")
def test_stacks_by_the_metric(tmp_path):
    path = tmp_path / "stacks.txt"
    p = recorded(with_stack=True)
    p.export_stacks(str(path))
    default = path.read_text()
    p.export_stacks(str(path), metric="self_cpu_time_total")
    assert path.read_text() == default
    p.export_stacks(str(path), metric="self_cuda_time_total")
    assert path.read_text() != default


def test_tensorboard_may_zip(tmp_path):
    recorded(on_trace_ready=P.tensorboard_trace_handler(str(tmp_path), use_gzip=True))
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".pt.trace.json.gz")
    with gzip.open(path) as file:
        assert any(e.get("name") == "aten::mul" for e in json.load(file)["traceEvents"])


def test_who_names_the_traces():
    names = iter(["first", "second"])
    p = AP.profile(custom_trace_id_callback=lambda: next(names))
    assert p.trace_id == ""
    with p:
        T.ones(1).exp()
    assert p.trace_id == "first" and p.create_trace_id() == "second"
    p = AP.profile()
    with p:
        pass
    assert len(p.trace_id) == 32 and p.create_trace_id() != p.trace_id
