"""Makes the page that tells which of PyTorch's public names are there, and why the others are not."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from typing import Any

import gradiron
from public import PYTORCHS, ROOT

PUBLIC = json.loads((ROOT / "tests/golden/public_names.json").read_text(encoding="utf-8"))
CLASSES = ("Tensor", "nn.Module", "Generator")
# For each group its title, the reason, and the names (without `torch.`) that belong to it; the first that fits counts.
GROUPS = [
    (
        "Not there yet",
        "Nothing speaks against them. Open an issue if you need one.",
        r"(Tensor\.)?hash_tensor|Stream$|Event$|accelerator\.|cpu\.|mps\.|nn\.functional\.grouped_mm|nn\.modules\.linear_cross_entropy|"
        r"optim\.functional\.sparse_adam|utils\.(benchmark|module_tracker|flop_counter)|library\.(infer_schema|register_autocast)|"
        r"overrides\.get_testing|Generator\.|profiler\.ExecutionTrace|(Tensor\.)?saddmm|nn\.attention\.varlen|utils\.weak",
    ),
    (
        "Quantization",
        "There are no quantized dtypes, tensors, observers or layers. Load weights as float32, float16 or bfloat16.",
        r"ao($|\.)|quantization|quantized|nn\.(intrinsic|qat)|.*(quant|qint|qscheme|qparams|fbgemm|[Qq]_?(U?Int|uint)\d)|(Tensor\.|nn\.Parameter\.)?"
        r"(q_|int_repr|dequantize)|backends\.(quantized|fbgemm|xnnpack|nnpack)",
    ),
    (
        "Types of 8 bits and fewer",
        "The dtypes go from bool and int8 to complex128. Packed and 8-bit floating point types can be named, but hold no data.",
        r"(b?complex32|bits?\d*(x\d)?|u?int[1-7]|bit)$|.*float8|nn\.functional\.(scaled_|ScalingType|SwizzleType)",
    ),
    (
        "TorchScript",
        "Programs run as Python. `jit.script` and `jit.trace` return what they are given; saved "
        "TorchScript files cannot be run.",
        r"jit($|\.)|mobile|utils\.(mobile_optimizer|bundled_inputs)|(Script|LiteScript|Concrete|Compilation|Serialization|"
        r"Deserialization|DeepCopyMemo|Static(Module)|TracingState|ErrorReport|JITException|FileCheck|FunctionSchema|IODescriptor|"
        r"ExecutionPlan|GraphExecutor|AliasDb|Argument|Block|Capsule|Code|CallStack|CompleteArgument|Gradient|Graph|LockingLogger|"
        r"NoopLogger|OperatorInfo|Use|Value|BufferDict|ModuleDict|ParameterDict|Aggregation|AVG|SUM|fork|wait|import_ir|parse_|"
        r"merge_type|unify_type)|utils\.(ThroughputB|throughput_b)enchmark|BenchmarkConfig|BenchmarkExecution|ThroughputBenchmark",
    ),
    (
        "Compilers and captured graphs",
        "`torch.compile` captures kernels, not graphs: there is nothing to export or cache, and no backend of others.",
        r"fx($|\.)|compiler($|\.)|export($|\.)|onnx($|\.)|sym_|Tag$|DispatchKey|ExcludeDispatch|overrides\.|library\.|return_types\."
        r"|distributed\.pipelining\.|utils\.(set_module|viz)|numa|packag|_?inductor|nativert|headeronly",
    ),
    (
        "Libraries and tools of one vendor",
        "The GPU is reached by Vulkan, Metal or DirectX 12. What belongs to CUDA, cuDNN, MIOpen, MKL, oneDNN "
        "or SYCL has no meaning.",
        r"(cudnn|miopen|mkldnn)_|cuda\.|cudagraph|backends\.|xpu($|\.)|mtia|AcceleratorError|Tensor\.to_mkldnn|"
        r"has_(lapack|mkl|openmp|spectral)|batch_norm_|autograd\.profiler\.(emit_itt|load_nvprof|parse_nvprof)|"
        r"profiler\.|nn\.attention\.|utils\.(rename_privateuse1|generate_methods_for_privateuse1|mkldnn|backend_registration)",
    ),
    (
        "Other devices",
        "Tensors lie on the CPU, on the GPU or on `meta`.",
        r".*(ipu|xla|mtia|_hpu|vulkan)|(Tensor|nn\.Module|nn\.Parameter)\.xpu",
    ),
    (
        "Sparse, nested and masked tensors",
        "The COO, CSR and CSC formats are there, and reductions over masked tensors as functions in `torch.masked`. "
        "Block-sparse and semi-structured formats, nested tensors and `MaskedTensor` are not.",
        r".*(bsc|bsr|sparse|[Ss]mm$|hspmm|sspaddmm|saddmm|hsmm|_indices_copy|indices_copy|values_copy|to_padded_tensor)|nested($|\.)|"
        r"masked\.|utils\.benchmark\.FuzzedSparse",
    ),
    (
        "Models and states that are spread over ranks",
        "`DistributedDataParallel`, `ZeroRedundancyOptimizer` and checkpoints of whole states are there. FSDP, `DTensor`, "
        "tensor and pipeline parallelism, rpc and plans of sharded checkpoints are not: their names can be imported, and raise "
        "`NotImplementedError` when they are called.",
        r"distributed($|\.)",
    ),
    (
        "Several GPUs in one process",
        "There is one GPU for each process; several are used by several processes.",
        r"nn\.parallel\.",
    ),
    (
        "Data pipes",
        "Their own library, torchdata, has removed them. `Dataset`, `IterableDataset`, `DataLoader` and the samplers "
        "are there.",
        r"utils\.data\.",
    ),
    (
        "Extensions in C++",
        "There is no C++ interface, hence nothing to build against. A custom operator is a Python function "
        "(`torch.library.custom_op`) or a Rust function of the crate.",
        r"utils\.(cpp_extension|cpp_backtrace|get_cpp|hipify)|.*cpp_",
    ),
    (
        "Removed or replaced by PyTorch",
        "PyTorch raises an error that names the successor, or deprecates them. Use `torch.linalg` and the current names.",
        r"Tensor\.(cholesky|eig|lstsq|qr|solve|symeig|reinforce|resize|resize_as|name)$|nn\.Parameter\.|utils\.backcompat|"
        r"autograd\.(profiler_legacy|function\.NestedIO|NestedIO|variable)|utils\.(bottleneck|model_dump)",
    ),
    (
        "Internals with a public name",
        "PyTorch's own parts use them: flags of its build, pieces of pickles, helpers of its tests.",
        r"(nn\.functional\.)?(has_torch_function|boolean_dispatch|assert_int|BroadcastingList)|nn\.(common_types|backends|cpp)|foreach|"
        r"nn\.Module\.T_destination|multiprocessing\.|serialization\.|utils\.(collect_env|debug_log|file_baton|jit|show_pickle|dlpack)|"
        r"FatalError|(random\.)?thread_safe_generator|init_num_threads|set_anomaly_enabled|native_norm|(Tensor\.)?slice_inverse|"
        r"Tensor\.(const_data_ptr|index$)|autograd\.profiler_util\.|contrib|monitor|signal\.windows\.windows",
    ),
]


def holder(name: str) -> Any:
    """The module or class of that name, or nothing."""
    if name.startswith("class "):
        found: Any = gradiron
        for part in name.removeprefix("class ").split("."):
            found = getattr(found, part)
        return found
    try:
        return importlib.import_module("gradiron" if name == "." else f"gradiron.{name}")
    except ImportError:
        return None


def exists(module: str) -> bool:
    """Whether there is such a module, even if it needs a package that is not installed."""
    try:
        return importlib.util.find_spec(f"gradiron.{module}") is not None
    except ModuleNotFoundError as error:
        return not (error.name or "").startswith("gradiron")


def has(owner: Any, name: str) -> bool:
    try:
        return hasattr(owner, name)
    except ImportError:  # it comes from a package that is not installed here
        return True


def group(name: str) -> int:
    found = next((number for number, (*_, pattern) in enumerate(GROUPS) if re.match(pattern, name)), None)
    if found is None:
        raise LookupError(f"no group tells why torch.{name} is missing")
    return found


def comparison() -> str:
    """The page as Markdown."""
    listed = {**PUBLIC["data"], **{f"class {name}": PYTORCHS[f"class {name}"] for name in CLASSES}}
    table, complete, absent, modules = [], [], defaultdict(lambda: defaultdict(list)), defaultdict(list)
    there = total = 0
    for name, names in listed.items():
        owner = holder(name)
        if owner is None or not names:
            continue
        lacking = [each for each in names if not has(owner, each)]
        there, total = there + len(names) - len(lacking), total + len(names)
        shown = name.removeprefix("class ")
        for each in lacking:
            absent[group(each if shown == "." else f"{shown}.{each}")][shown].append(each)
        if "." not in name.strip(".") or name.startswith("class ") or name in ("nn.functional", "nn.init", "utils.data"):
            title = "`torch`" if shown == "." else f"`torch.{shown}`"
            if lacking:
                table.append(
                    f"| {title} | {len(names)} | {len(names) - len(lacking)} | {100 - 100 * len(lacking) // len(names)} % |"
                )
            else:
                complete.append(title)
    missing = [name for name in PYTORCHS["modules"] if not exists(name)]
    for name in missing:
        if name.rpartition(".")[0] not in missing:
            modules[group(name)].append(name)
    lines = [(ROOT / "scripts/site/coming-from-pytorch.md").read_text(encoding="utf-8")]
    version, classes = PUBLIC["pytorch"].partition("+")[0], ", ".join(f"`{name}`" for name in CLASSES)
    lines += [
        f"PyTorch {version} offers {total:,} names in the public modules that gradiron has, too, and in the classes {classes}; "
        f"{there:,} of them are there ({100 * there / total:.0f} %)."
    ]
    lines += ["", f"Complete are {', '.join(complete[:-1])} and {complete[-1]}. The others:", ""]
    lines += ["| module or class | PyTorch's names | are there | |", "|---|---:|---:|---:|", *table, ""]
    lines += ["## What is missing, and why", ""]
    for number, (title, reason, _) in enumerate(GROUPS):
        found = absent[number]
        if not found and not modules[number]:
            continue
        lines += [f"### {title}", "", reason, ""]
        count = sum(map(len, found.values()))
        if modules[number]:
            lines += ["Modules: " + ", ".join(f"`{name}`" for name in modules[number]) + ".", ""]
        if count:
            lines += [f'<details markdown="1"><summary>{count} name{"s" * (count > 1)}</summary>', ""]
            for owner, names in found.items():
                title = "torch" if owner == "." else f"torch.{owner}"
                lines += [f"- `{title}`: " + ", ".join(f"`{name}`" for name in names)]
            lines += ["", "</details>", ""]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(comparison())
