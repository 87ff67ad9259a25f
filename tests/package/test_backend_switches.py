"""Names that training scripts touch at their beginning: switches, compilers that are not there, other devices."""

import warnings

import pytest

from library import IS_GRADIRON, T


def test_determinism():
    try:
        T.use_deterministic_algorithms(True)
        assert T.are_deterministic_algorithms_enabled() and not T.is_deterministic_algorithms_warn_only_enabled()
        assert T.get_deterministic_debug_mode() == 2
        T.use_deterministic_algorithms(True, warn_only=True)
        assert T.get_deterministic_debug_mode() == 1 and T.is_deterministic_algorithms_warn_only_enabled()
        T.set_deterministic_debug_mode("error")
        assert T.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="^invalid value of debug_mode, expected one of `default`, `warn`, `error`"):
            T.set_deterministic_debug_mode("x")
        with pytest.raises(RuntimeError, match="^invalid value of debug_mode, expected 0, 1, or 2"):
            T.set_deterministic_debug_mode(5)
    finally:
        T.use_deterministic_algorithms(False)
    assert not T.are_deterministic_algorithms_enabled() and T.get_deterministic_debug_mode() == 0


def test_precision_of_products():
    assert T.get_float32_matmul_precision() == "highest"
    T.set_float32_matmul_precision("high")
    assert T.get_float32_matmul_precision() == "high"
    T.set_float32_matmul_precision("highest")
    with pytest.warns(UserWarning, match="^x is not one of 'highest', 'high', or 'medium'"):
        T.set_float32_matmul_precision("x")
    assert T.get_float32_matmul_precision() == "highest"


def test_default_tensor_type():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            T.set_default_tensor_type(T.DoubleTensor)
            assert T.ones(1).dtype is T.float64
            T.set_default_tensor_type("torch.FloatTensor")
            assert T.ones(1).dtype is T.float32
            with pytest.raises(TypeError, match="^invalid type object"):
                T.set_default_tensor_type(3)
        finally:
            T.set_default_dtype(T.float32)


def test_flags_of_backends():
    b = T.backends
    assert b.cudnn.benchmark is False and b.cuda.matmul.allow_tf32 is False
    b.cudnn.benchmark = True
    with b.cudnn.flags(enabled=False, benchmark=False):
        assert not b.cudnn.benchmark and not b.cudnn.enabled
    assert b.cudnn.benchmark and b.cudnn.enabled
    b.cudnn.benchmark = False
    b.cudnn.deterministic = True
    b.cudnn.deterministic = False
    b.cuda.matmul.allow_tf32 = True
    b.cuda.matmul.allow_tf32 = False
    b.cuda.enable_flash_sdp(False)
    assert not b.cuda.flash_sdp_enabled()
    b.cuda.enable_flash_sdp(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with b.cuda.sdp_kernel(enable_flash=False):
            assert not b.cuda.flash_sdp_enabled() and b.cuda.math_sdp_enabled()
    assert b.cuda.flash_sdp_enabled()
    assert isinstance(b.mps.is_available(), bool) and isinstance(b.mkl.is_available(), bool)
    assert b.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


@pytest.mark.gradiron
def test_what_is_scripted_is_what_was_given():
    from gradiron._functions import settings

    def f(x):
        return x + 1

    m = T.nn.Linear(1, 1)
    settings._told.clear()
    with pytest.warns(UserWarning, match=r"^torch.jit.script: gradiron has no compiler"):
        assert T.jit.script(f) is f
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert T.jit.trace(m, T.ones(1, 1)) is m and T.jit.trace_module(m, {}) is m
    with pytest.raises(NotImplementedError, match="torch.save"):
        T.jit.save(m, "file")
    with pytest.raises(NotImplementedError, match="torch.load"):
        T.jit.load("file")


def test_marks_for_a_compiler():
    class Layer(T.nn.Module):
        @T.jit.export
        def exported(self):
            return 1

        @T.jit.ignore
        def ignored(self):
            return 2

        @T.jit.ignore(drop=False)
        def dropped(self):
            return 3

        @T.jit.unused
        def unused(self):
            return 4

    layer = Layer()
    assert [layer.exported(), layer.ignored(), layer.dropped(), layer.unused()] == [1, 2, 3, 4]
    assert not T.jit.is_scripting() and not T.jit.is_tracing() and T.jit.annotate(int, 3) == 3
    assert not isinstance(layer, T.jit.ScriptModule) and T.jit.isinstance(3, int)
    assert not T.compiler.is_compiling()

    @T.compiler.disable
    def f(x):
        return x

    assert f(3) == 3
    assert T.compiler.disable(layer.ignored)() == 2 and T.compiler.disable(len)([1]) == 1


@pytest.mark.gradiron
def test_what_is_not_there_says_so():
    for call, message in [
        (lambda: T.hub.load("a/b", "model"), "gradiron fetches nothing"),
        (lambda: T.nested.nested_tensor([T.ones(2), T.ones(3)]), "torch.nested.nested_tensor: gradiron has no nested tensors"),
        (lambda: T.hub.load_state_dict_from_url("https://example.org/weights.pth"), "gradiron fetches nothing"),
    ]:
        with pytest.raises(NotImplementedError, match=message):
            call()
    assert T.distributed.is_available() and not T.onnx.is_in_onnx_export()
    with pytest.raises(RuntimeError, match="Distributed package doesn't have UCC built in"):
        T.distributed.init_process_group("ucc")


def test_distributed_is_not_begun():
    assert not T.distributed.is_initialized()
    with pytest.raises(ValueError, match="^Default process group has not been initialized"):
        T.distributed.get_rank()
    with pytest.raises(ValueError, match="^Default process group has not been initialized"):
        T.distributed.get_world_size()


def test_other_devices():
    assert isinstance(T.accelerator.is_available(), bool) and T.xpu.is_available() is False
    assert T.cpu.is_available() and T.cpu.device_count() == 1 and T.get_device_module("cpu") is T.cpu
    assert T.get_device_module("cuda") is T.cuda
    depth = 0
    if IS_GRADIRON:
        assert T.cuda.nvtx.range_push("a") == depth and T.cuda.nvtx.range_pop() == depth
        with T.cuda.nvtx.range("b {}", 1):
            T.cuda.nvtx.mark("c")
