"""gradiron: PyTorch's autograd as a small Rust extension. `import gradiron as torch` and go on."""

from __future__ import annotations

from . import _core
from ._core import *
from ._core import Tensor, complex64, complex128, float16, float32, float64, int16, int32, int64
from ._types import OutOfMemoryError, Size
from ._types import named_result as _named_result

_core.register(Size, _named_result, OutOfMemoryError)

from . import (
    _tensor,
    autograd,
)
from ._creation import *
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

float = float32
double = float64
cfloat = complex64
cdouble = complex128
chalf = _core.complex32
half = float16
short = int16
int = int32
long = int64

newaxis = None

from math import e, inf, nan, pi

# Loaded when they are first asked for: importing gradiron stays quick. A module, or a module's names.
_MODULES = """
    __future__ fft func linalg special nn optim ops viz testing cuda utils random profiler multiprocessing serialization
    storage _utils _tensor_str version torch_version amp cpu overrides backends jit compiler hub onnx distributed distributions
    mps signal xpu accelerator fx library types ao quasirandom _C _custom_ops _ops _subclasses _jit_internal _dynamo _inductor
    sparse nested futures functional masked __config__ return_types _higher_order_ops
""".split()
_STORAGES = "Float Double Half BFloat16 Byte Char Short Int Long Bool ComplexFloat ComplexDouble".split()
# Functions of `nn.functional` that stand here, too, and those that take their options otherwise here.
_ALSO_IN_NN = """
    bilinear celu_ channel_shuffle conv_tbc cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist
    pixel_shuffle pixel_unshuffle prelu rrelu_ selu_ threshold_
""".split()
_OF_NN = """
    alpha_dropout alpha_dropout_ binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout_
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ grid_sampler_2d grid_sampler_3d
    hinge_embedding_loss kl_div margin_ranking_loss native_dropout native_group_norm norm_except_dim poisson_nll_loss
    triplet_margin_loss
""".split()
_AUTOCAST = """
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype
    get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled
    set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
""".split()
_SETTINGS = """
    are_deterministic_algorithms_enabled compile get_default_device get_deterministic_debug_mode get_device_module
    get_float32_matmul_precision get_num_interop_threads is_deterministic_algorithms_warn_only_enabled set_default_device
    set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
    set_num_interop_threads use_deterministic_algorithms
""".split()
_SCRIPT_TYPES = """
    AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType InferredType IntType
    InterfaceType ListType NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType
    SymIntType TensorType TupleType Type UnionType
""".split()
_CHECKS = """
    _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with _check_type
    _check_value _check_with
""".split()
_SPECTRAL = "bartlett_window blackman_window hamming_window hann_window kaiser_window stft istft".split()
_NAMES = {
    **dict.fromkeys(_CHECKS, "_functions.checks"),
    **dict.fromkeys(
        ("_log_softmax_backward_data", "_shape_as_tensor", "_softmax_backward_data", "_unique"), "_functions.private"
    ),
    **dict.fromkeys(_SPECTRAL, "_functions.spectral"),
    **dict.fromkeys(("as_strided_scatter", "empty_permuted", "nonzero_static", "unravel_index"), "_functions.indices"),
    **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "_lowrank"),
    "lobpcg": "_lobpcg",
    "gradient": "_functions.differences",
    **dict.fromkeys(("histogram", "histogramdd"), "_functions.histograms"),
    **dict.fromkeys(_SETTINGS, "_functions.settings"),
    **dict.fromkeys(("_assert", "_assert_async"), "_functions.settings"),
    **dict.fromkeys(("SymInt", "SymFloat", "SymBool"), "types"),
    **dict.fromkeys("sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum".split(), "_functions.symbols"),
    "ScriptModule": "jit",
    **dict.fromkeys(("Event", "Stream"), "_streams"),
    "Future": "futures",
    "lu": "_tensor",
    "segment_reduce": "_functions.segments",
    "sparse_coo_tensor": "sparse._build",
    **dict.fromkeys(("spmm", "dsmm"), "sparse._products"),
    **dict.fromkeys(("sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor"), "sparse._compressed"),
    **dict.fromkeys(("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo"), "sparse._compressed"),
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter", *_SCRIPT_TYPES), "_C"),
    "vmap": "func",
    **dict.fromkeys(("cond", "while_loop"), "_higher_order_ops"),
    **dict.fromkeys(("finfo", "iinfo"), "_limits"),
    "set_printoptions": "_tensor_str",
    **dict.fromkeys(("default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"), "random"),
    "typename": "_types",
    "as_torch": "_as_torch.alias",
    "autocast": "amp.autocast_mode",
    "GradScaler": "amp.grad_scaler",
    **dict.fromkeys(_AUTOCAST, "amp.autocast_mode"),
    **dict.fromkeys(("DisableTorchFunction", "DisableTorchFunctionSubclass"), "overrides"),
    "__version__": "version",
    **dict.fromkeys(("save", "load"), "serialization"),
    **dict.fromkeys(_ALSO_IN_NN, "nn.functional"),
    **dict.fromkeys(_OF_NN, "nn._top_level"),
    **dict.fromkeys(("TypedStorage", "UntypedStorage", "from_file", "is_storage"), "storage"),
    **dict.fromkeys((f"{kind}Storage" for kind in _STORAGES), "storage"),
}

# Methods that are functions as well: `relu_(x)`.
_WRITES = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_
    ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_
    fill_ fix_ floor_ frac_ gcd_ get_device i0_ index_put_ is_distributed lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_
    nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_
    square_ tan_ tanh_ trunc_ xlogy_ zero_
""".split()


# `import gradiron.fx` finds what has only a name here.
__path__.append(f"{__path__[0]}/_stand_ins")


def __getattr__(name: str) -> object:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f".{name}", __package__)
    if name == "torch":  # PyTorch's package holds itself: `from torch import torch`.
        return importlib.import_module(__package__ or "gradiron")
    if name in _NAMES:
        found = getattr(importlib.import_module(f".{_NAMES[name]}", __package__), name)
        globals()[name] = found
        return found
    if name in _WRITES:
        return getattr(Tensor, name)
    if name.startswith("_foreach_"):
        found = getattr(importlib.import_module("._foreach", __package__), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'gradiron' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES, *_WRITES} - {"annotations"})
