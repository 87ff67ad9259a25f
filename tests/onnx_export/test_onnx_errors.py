"""What cannot be exported is refused by name, with the line of the program, before anything is written."""

import sys

import numpy
import pytest

from library import T

F = T.nn.functional
pytestmark = pytest.mark.gradiron
errors = T.onnx.errors


class Module(T.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = T.nn.Parameter(T.ones(2))

    def forward(self, x):
        return self.function(self, x)


def refused(function, message, kind=None, x=None, **options):
    with pytest.raises(kind or errors.UnsupportedOperatorError, match=f"(?s){message}"):
        T.onnx.export(Module(function).eval(), (T.ones(2, 2) if x is None else x,), **options)


def test_an_operator_without_a_form(tmp_path):
    def function(module, x):
        y = T.linalg.svd(x)[0]
        return y + x.nonzero().sum()

    message = (
        "operator 'linalg.svd' to ONNX opset version 20 is not supported.*y = T.linalg.svd.*'nonzero' is not supported either"
    )
    refused(function, message, f=str(tmp_path / "model.onnx"))
    assert not list(tmp_path.iterdir())
    assert not T.onnx.is_in_onnx_export()


def test_calls_without_a_form():
    refused(
        lambda module, x: x[x > 0], "operator '__getitem__'.*The shape of the result depends on the values of a mask.*x > 0"
    )
    refused(lambda module, x: F.adaptive_max_pool1d(x, 1, True), "return_indices is not supported")
    refused(lambda module, x: F.grid_sample(x[None, None], x[None, :, :, None].expand(1, 2, 2, 2), align_corners=False),
            "'grid_sample' to ONNX opset version 15 is not supported. Support .* in version 16", opset_version=15)  # fmt: skip
    lstm = T.nn.LSTM(2, 3, proj_size=2)
    refused(lambda module, x: lstm(x)[0], "Projections of the hidden state .proj_size. are not supported")
    refused(lambda module, x: T.add(x, x, out=x.clone()), "It cannot be exported as it is called here: .*'out'")
    refused(lambda module, x: T.multinomial(x, 1), "'multinomial'")
    # A kind of norm that the form does not expect.
    refused(lambda module, x: T.linalg.norm(x, "nuc"), "'linalg.norm'.*The norm 'nuc' of matrices is not supported")


def test_control_flow_over_values():
    words = "symbolically traced variables cannot be used as inputs to control flow: "
    refused(lambda module, x: x if x.sum() > 0 else -x, words + "__bool__ .*x.sum\\(\\) > 0 else", T.fx.proxy.TraceError)
    refused(lambda module, x: x * x.max().item(), words + "item .*x.max\\(\\).item", T.fx.proxy.TraceError)
    refused(lambda module, x: x[int(x[0, 0]) :], words + "__int__ ", T.fx.proxy.TraceError)
    refused(lambda module, x: x * T.from_numpy(numpy.asarray(x)), words + "array ", T.fx.proxy.TraceError)
    refused(lambda module, x: x * float(x.detach().numpy().sum()), words + "numpy ", T.fx.proxy.TraceError)
    refused(lambda module, x: x if T.allclose(x, x) else -x, words + "allclose ", T.fx.proxy.TraceError)
    # What no input decides is known.
    module = Module(lambda module, x: x * 2 if T.ones(2).sum() > 1 else x).eval()
    assert T.equal(T.onnx.export(module, (T.ones(2),))(T.ones(2))[0], 2 * T.ones(2))


def test_what_a_trace_cannot_follow():
    refused(lambda module, x: T.func.grad(T.sum)(x), "torch.onnx.export: a derivative cannot be traced", NotImplementedError)
    refused(lambda module, x: T.vmap(T.neg)(x), "torch.onnx.export: vmap cannot be traced", NotImplementedError)
    message = "torch.onnx.export: new_tensor of a tensor that depends on an input cannot be traced"
    with pytest.warns(UserWarning, match="copy construct"):
        refused(lambda module, x: x.new_tensor(x), message, NotImplementedError)


def test_writes_that_a_graph_cannot_hold():
    def through_a_view(module, x):
        y = x * 1
        y.t().add_(1)
        return y

    def into_a_parameter(module, x):
        module.weight.mul_(2)
        return x * module.weight

    refused(through_a_view, "used after a view of it", T.fx.proxy.TraceError)
    refused(into_a_parameter, "the module writes into its parameter 'weight'.*mul_.2", T.fx.proxy.TraceError)


def test_options(tmp_path):
    model, x = T.nn.Linear(2, 2).eval(), T.ones(1, 2)
    for version in (12, 22):
        with pytest.raises(ValueError, match=f"Unsupported ONNX opset version: {version}"):
            T.onnx.export(model, (x,), opset_version=version)
    with pytest.raises(RuntimeError, match=r"number of input names provided \(2\) exceeded number of inputs \(1\)"):
        T.onnx.export(model, (x,), input_names=["a", "b"])
    with pytest.raises(RuntimeError, match=r"number of output names provided \(2\) exceeded number of outputs \(1\)"):
        T.onnx.export(model, (x,), output_names=["a", "b"])
    for names in ({"input_names": ["weight"]}, {"output_names": ["input"]}):
        with pytest.raises(ValueError, match="two of the inputs, outputs and parameters are named"):
            T.onnx.export(model, (x,), **names)
    with pytest.raises(T.onnx.OnnxExporterError, match="tensors of torch.complex64 cannot be exported"):
        T.onnx.export(lambda x: x, (T.ones(2, dtype=T.complex64),))
    with pytest.raises(T.onnx.OnnxExporterError, match="the module returns a str, which is no tensor"):
        T.onnx.export(lambda x: (x, "y"), (x,))
    with pytest.raises(ValueError, match="contain no tensor"):
        T.onnx.export(Module(lambda module, x: x).eval(), (3,))
    with pytest.raises(TypeError, match="missing a required argument: 'input'"):
        T.onnx.export(model, ())
    with pytest.raises(NotImplementedError, match="custom_translation_table is not supported"):
        T.onnx.export(model, (x,), custom_translation_table={T.add: None})
    with pytest.raises(TypeError, match="f has to be a path"):
        T.onnx.export(model, (x,), dynamo=False)
    with pytest.warns(UserWarning, match="Exporting a model while it is in training mode"):
        T.onnx.export(T.nn.Linear(2, 2), (x,))


def test_a_missing_package(monkeypatch):
    model, x = T.nn.Linear(2, 2).eval(), T.ones(1, 2)
    program = T.onnx.export(model, (x,))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnxruntime"):
        program(x)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'gradiron\[onnx\]'"):
        T.onnx.export(model, (x,))


def test_names_that_programs_write_down():
    assert issubclass(errors.UnsupportedOperatorError, T.onnx.OnnxExporterError)
    assert T.onnx.register_custom_op_symbolic("example::f", None, 11) is None
    with pytest.raises(NotImplementedError, match="torch.onnx.ExportableModule: torch.onnx.export takes any module"):
        T.onnx.ExportableModule()
    for module in (T.onnx.symbolic_helper, T.onnx.symbolic_opset9, T.onnx.symbolic_opset12):
        with pytest.raises(NotImplementedError, match="there is no TorchScript to write operators of"):
            module.softmax(None)
    function = object()
    assert T.onnx.symbolic_helper.parse_args("v", "i")(function) is function
    shape = T.onnx.operators.shape_as_tensor(T.ones(2, 3))
    assert T.onnx.operators.reshape_from_tensor_shape(T.ones(6), shape).shape == (2, 3)
