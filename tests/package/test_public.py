"""The package as a user meets it: fast to import, documented, typed, and with nothing left lying about."""

import inspect
import pathlib
import pickle
import re
import subprocess
import sys

import pytest

from library import NAME, T, python, python_ok

NAMES = """
tensor as_tensor from_numpy zeros ones full empty arange linspace eye rand randn randint randperm normal bernoulli
zeros_like ones_like
full_like empty_like rand_like randn_like randint_like manual_seed seed initial_seed get_rng_state set_rng_state
Generator Tensor
FloatTensor DoubleTensor LongTensor IntTensor ByteTensor BoolTensor Size device dtype float32 float64 float16 bfloat16
int8 int16 int32
int64 uint8 bool float double half long int short get_default_dtype set_default_dtype finfo iinfo is_tensor numel
no_grad enable_grad
set_grad_enabled is_grad_enabled inference_mode autograd cuda nn result_type promote_types can_cast set_printoptions from_dlpack
broadcast_tensors broadcast_shapes einsum is_floating_point is_complex strided pi e inf nan
abs add addcdiv addcmul addmm addmv all allclose amax amin aminmax any argmax argmin argsort atan2 baddbmm bitwise_and
bitwise_not
bitwise_or bitwise_xor bmm cat ceil chunk clamp clamp_max clamp_min clone copysign cos cosh count_nonzero cumprod cumsum
deg2rad detach
diag diagonal digamma div dot eq equal erf erfc erfinv exp exp2 expm1 flatten flip floor floor_divide fmax fmin fmod
frac gather ge gt
heaviside hstack hypot index_add index_fill index_select inner isclose isfinite isinf isnan kthvalue le lerp lgamma log
log10 log1p log2
log_softmax logaddexp logical_and logical_not logical_or logical_xor logsumexp lt masked_fill masked_select matmul max
maximum mean min
minimum mm movedim mul mv nan_to_num nansum narrow ne neg nonzero norm outer permute positive pow prod rad2deg ravel
reciprocal relu
remainder repeat_interleave reshape roll round rsqrt scatter scatter_add select sigmoid sign sin sinh softmax sort split
sqrt square
squeeze stack std std_mean sub sum swapaxes t take take_along_dim tan tanh tile topk transpose tril triu true_divide
trunc unbind
unflatten unsqueeze var var_mean vstack where xlogy
""".split()
METHODS = """
backward detach detach_ requires_grad_ retain_grad register_hook item tolist numpy cpu cuda to type float double half
bfloat16 int long
short char byte bool clone contiguous is_contiguous copy_ fill_ zero_ size stride storage_offset dim numel element_size
data_ptr view
reshape view_as expand expand_as repeat unfold as_strided t permute transpose index_put_ index_put masked_fill_ scatter_
uniform_ normal_
bernoulli_ random_ exponential_ new_zeros new_ones new_full new_empty new_tensor is_floating_point get_device sum mean
exp add_ mul_
""".split()
PROPERTIES = (
    "data grad grad_fn is_leaf requires_grad shape dtype device layout ndim T mT H is_cuda retains_grad "
    "itemsize nbytes _version"
).split()


def test_names():
    assert [name for name in NAMES if not hasattr(T, name)] == []


def test_methods_and_properties():
    x = T.ones(2, 2)
    assert [name for name in METHODS + PROPERTIES if not hasattr(x, name)] == []


@pytest.mark.gradiron
def test_import_is_fast_and_does_not_need_numpy():
    code = f"import time, sys\nt = time.process_time()\nimport {NAME}\nprint(time.process_time() - t)\n"
    code += "assert 'numpy' not in sys.modules"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(7)]
    assert min(float(run.stdout) for run in runs) < 0.06
    assert all(run.stderr == "" for run in runs)


@pytest.mark.gradiron
def test_printing_and_tolist_do_not_import_numpy():
    python_ok("print(T.ones(2), T.ones(2).tolist(), T.tensor([1, 2]).sum().item()); assert 'numpy' not in sys.modules")


@pytest.mark.gradiron
def test_it_works_without_numpy():
    code = "sys.modules['numpy'] = None\nx = T.ones(2, requires_grad=True); (x * 2).sum().backward(); print(x.grad)\n"
    assert python_ok(code) == "tensor([2., 2.])\n"
    for call in ("numpy()", "numpy(force=True)", "requires_grad_().numpy()", "__array__()"):
        failed = python(f"sys.modules['numpy'] = None\nT.ones(2).{call}")
        told = "RuntimeError: Numpy is not available. Install it with: pip install gradiron[numpy]"
        assert failed.returncode == 1 and failed.stderr.splitlines()[-1] == told


@pytest.mark.gradiron
def test_nobody_is_sent_to_another_projects_tracker():
    home = pathlib.Path(T.__file__).parent
    texts = {path: path.read_bytes() for path in home.rglob("*") if path.suffix in (".py", ".so", ".pyd")}
    asks = re.compile(rb"(file|open)( us)? an? (new )?(issue|feature)|pytorch/issues/new", re.IGNORECASE)
    assert len(texts) > 300 and [path.name for path, text in texts.items() if asks.search(text)] == []


@pytest.mark.gradiron
def test_everything_is_documented():
    things = {name: getattr(T, name) for name in NAMES}
    bare = [
        name
        for name, thing in things.items()
        if callable(thing) and not isinstance(thing, type) and len((thing.__doc__ or "").strip()) < 10
    ]
    assert bare == []


@pytest.mark.gradiron
@pytest.mark.parametrize(
    "name, parameters",
    [
        ("sum", ["input", "dim", "keepdim", "dtype"]),
        ("add", ["input", "other", "alpha", "out"]),
        ("clamp", ["input", "min", "max", "out"]),
        ("softmax", ["input", "dim", "dtype"]),
        ("cat", ["tensors", "dim", "out"]),
        ("linspace", ["start", "end", "steps"]),
        ("tensor", ["data", "dtype", "device", "requires_grad"]),
        ("zeros", ["size", "out", "dtype", "device", "requires_grad"]),
    ],
)
def test_signatures_can_be_read(name, parameters):
    found = list(inspect.signature(getattr(T, name)).parameters)
    assert [p for p in parameters if p not in found] == []


@pytest.mark.gradiron
def test_every_row_with_a_public_form_is_public():
    # Those of `linalg` and the like are in the core alone, by ATen's names.
    homes = (T, T.Tensor, T.nn.functional, T._core)
    # Some, such as `uniform_`, have an in-place form only.
    # Windows as columns are called `unfold` and `fold` by a wrapper in Python.
    wrapped = T.nn.functional._WRAPPED
    public = [row for row in T._core.rows() if not row["name"].startswith("_") and row["name"] not in wrapped]
    names = [(row["name"], row["name"] + "_" if row["inplace"] else row["name"]) for row in public]
    missing = [pair for pair in names if not any(hasattr(home, name) for home in homes for name in pair)]
    assert missing == []


@pytest.mark.gradiron
def test_no_stray_output():
    done = python("x = T.randn(3, requires_grad=True); (x * x).sum().backward()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.gradiron
def test_version_and_stubs():
    import pathlib

    home = pathlib.Path(T.__file__).parent
    assert (home / "py.typed").exists() and (home / "_core.pyi").exists()
    assert T.__version__.count(".") >= 2


def test_names_of_classes():
    assert T.Tensor.__name__ == "Tensor" and type(T.ones(1)) is T.Tensor
    assert repr(T.float32) == "torch.float32" and pickle.loads(pickle.dumps(T.float32)) is T.float32
    assert T.autograd.Function.__name__ == "Function" and T.Size.__name__ == "Size"


def test_tensors_take_attributes_and_subclasses():
    x = T.ones(1)
    x.note = "mine"
    assert x.note == "mine"

    class Mine(T.Tensor):
        pass

    assert isinstance(T.ones(2).as_subclass(Mine), Mine)


def test_out_of_order_keywords():
    x = T.ones(2, 3)
    assert x.sum(keepdim=True, dim=1).shape == (2, 1) and T.sum(input=x, dim=0).shape == (3,)
    assert (
        x.sum(axis=0).shape == (3,)
        and x.transpose(dim0=0, dim1=1).shape == (3, 2)
        and T.add(other=x, input=x).sum().item() == 12
    )
    assert x.mean(axis=1, keepdims=True).shape == (2, 1) and x.view(size=(6,)).shape == (6,)


def test_named_results():
    values, indices = T.tensor([3.0, 1.0]).max(0)
    result = T.tensor([3.0, 1.0]).sort()
    assert result.values.tolist() == [1.0, 3.0] and result.indices.tolist() == [1, 0] and result[1] is not None
    assert isinstance(result, tuple) and "values=tensor" in repr(result) and "indices=tensor" in repr(result)
    assert T.ones(3).topk(2).values.shape == (2,) and T.ones(3).min(0).indices.item() in (0, 1, 2)


def test_sizes_are_joined():
    size = T.Size([2, 3])
    for joined in (size + (4,), (4,) + size, size + (T.tensor(4),)):
        assert type(joined) is T.Size and sum(joined) == 9
    whole = T.Size((True, T.tensor(2)))
    assert repr(whole) == "torch.Size([1, 2])" and all(type(n) is int for n in whole)
    for other in ([4], 4):
        with pytest.raises(TypeError, match="can only concatenate tuple"):
            size + other
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        (1.5,) + size
