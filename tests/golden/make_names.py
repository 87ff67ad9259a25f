"""Writes `pytorch_names.json` of the package: the public names of PyTorch's modules and central classes. Run under PyTorch."""

import importlib
import inspect
import pathlib
import pkgutil
import warnings

import golden_file

# Where gradiron has modules, or is going to have some; `*` stands for all that lies below.
MODULES = """
. autograd.* func.* nn nn.attention nn.common_types nn.functional nn.grad nn.init nn.parallel.* nn.parameter nn.utils.* nn.modules.* optim.* cuda cuda.amp.* profiler
utils utils.benchmark utils.checkpoint utils.data.* utils.dlpack utils.hooks utils.collect_env utils.serialization utils.serialization.config testing random serialization
linalg fft special storage multiprocessing.* amp.* hub library overrides backends.* distributions.* version torch_version jit
compiler onnx utils.tensorboard utils.deterministic utils.cpp_extension accelerator mps xpu cpu cpu.amp.* types signal
signal.windows sparse masked fx.annotate fx.config fx.immutable_collections fx.operator_schemas fx.subgraph_rewriter fx.tensor_type fx.traceback
fx fx.passes fx.passes.dialect fx.passes.dialect.common fx.passes.dialect.common.cse_pass fx.passes.graph_drawer fx.passes.infra
fx.passes.infra.pass_base fx.passes.infra.pass_manager fx.passes.param_fetch fx.passes.shape_prop fx.passes.split_module
fx.passes.utils fx.passes.utils.fuser_utils fx.passes.utils.matcher_utils fx.passes.utils.matcher_with_name_node_map_utils
fx.passes.utils.source_matcher_utils fx.experimental.const_fold fx.experimental.optimization fx.experimental.rewriter
nested return_types cuda.graphs cuda.nvtx cuda.random cuda.memory utils.model_zoo utils.bottleneck utils.backcompat
utils.mobile_optimizer utils.flop_counter fx.graph fx.graph_module fx.interpreter fx.node fx.proxy fx.experimental
fx.experimental.proxy_tensor ao ao.quantization jit.annotations
nn.attention.bias nn.attention.flex_attention functional futures quasirandom onnx.errors onnx.operators onnx.symbolic_helper
onnx.symbolic_opset9 onnx.symbolic_opset10 onnx.symbolic_opset11 onnx.symbolic_opset12
distributed distributed.algorithms distributed.algorithms.ddp_comm_hooks
distributed.algorithms.ddp_comm_hooks.debugging_hooks distributed.algorithms.ddp_comm_hooks.default_hooks
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook distributed.algorithms.ddp_comm_hooks.powerSGD_hook
distributed.algorithms.join distributed.algorithms.model_averaging distributed.algorithms.model_averaging.averagers
distributed.algorithms.model_averaging.hierarchical_model_averager distributed.algorithms.model_averaging.utils
distributed.c10d_logger distributed.checkpoint distributed.checkpoint.default_planner distributed.checkpoint.filesystem
distributed.checkpoint.format_utils distributed.checkpoint.hf_storage distributed.checkpoint.optimizer
distributed.checkpoint.state_dict distributed.checkpoint.stateful
distributed.constants distributed.debug distributed.device_mesh distributed.distributed_c10d
distributed.elastic distributed.elastic.multiprocessing distributed.elastic.multiprocessing.api distributed.elastic.multiprocessing.errors distributed.fsdp
distributed.fsdp.api distributed.fsdp.fully_sharded_data_parallel distributed.fsdp.sharded_grad_scaler
distributed.fsdp.wrap distributed.launch distributed.launcher distributed.launcher.api distributed.nn
distributed.nn.functional distributed.optim distributed.optim.post_localSGD_optimizer
distributed.optim.zero_redundancy_optimizer distributed.pipelining distributed.rendezvous distributed.rpc
distributed.run distributed.tensor distributed.tensor.experimental distributed.tensor.parallel
distributed.tensor.placement_types distributed.utils
""".split()
CLASSES = """
Tensor Size dtype device Generator Event finfo iinfo UntypedStorage TypedStorage autograd.Function autograd.graph.Node
autograd.graph.saved_tensors_hooks autograd.SavedTensor cuda.Event cuda.Stream nn.Parameter nn.Module
""".split()


def public(thing):
    return sorted(name for name in dir(thing) if not name.startswith("_"))


def modules(torch):
    """Full names below `torch` and the modules."""
    for entry in MODULES:
        name, below = entry.removesuffix(".*"), entry.endswith(".*")
        try:
            root = torch if name == "." else importlib.import_module(f"torch.{name}")
        except ImportError:
            continue
        yield name, root
        if below and hasattr(root, "__path__"):
            for info in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
                if not any(part.startswith("_") for part in info.name.split(".")):
                    try:
                        yield info.name.removeprefix("torch."), importlib.import_module(info.name)
                    except ImportError:  # what needs something that is not installed
                        continue


def table(torch):
    """For each module the names that are its own, and for each class its attributes."""
    made = {}
    for name, module in list(modules(torch)):  # all imported, so that packages show what lies below
        made[name] = [n for n in public(module) if not inspect.ismodule(getattr(module, n)) or is_below(module, n)]
    for name in CLASSES:
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        made[f"class {name}"] = public(found)
    return made


def files(torch):
    """The names of all modules, also of those that are not imported here, and need something that is not installed."""
    root = pathlib.Path(torch.__path__[0])
    names = [path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py")]
    names = [parts[:-1] if parts[-1] == "__init__" else parts for parts in names]
    return sorted(".".join(parts) for parts in names if parts and not any(part.startswith("_") for part in parts))


def is_below(module, name):
    return getattr(module, name).__name__ in (f"{module.__name__}.{name}", "torch")


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    made = {**table(torch), "modules": files(torch)}
    golden_file.write(golden_file.NAMES, dict(sorted(made.items())))
    print(len(made), "modules and classes,", sum(map(len, made.values())), "names")
