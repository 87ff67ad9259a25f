"""What an export returns and saves: names, weights, files, modes."""

import io
import pathlib

import onnx
import onnxruntime
import pytest

from library import T

pytestmark = pytest.mark.gradiron


def model():
    T.manual_seed(0)
    return T.nn.Sequential(T.nn.Linear(8, 64), T.nn.BatchNorm1d(64), T.nn.ReLU(), T.nn.Linear(64, 2)).eval()


def run(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return T.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


def test_weights_keep_their_names():
    module = model()
    graph = T.onnx.export(module, (T.ones(2, 8),), output_names=["y"]).model_proto.graph
    assert {each.name for each in graph.initializer} == set(module.state_dict()) - {"1.num_batches_tracked"}
    assert [each.name for each in graph.input] == ["input"] and [each.name for each in graph.output] == ["y"]
    assert [node.op_type for node in graph.node] == ["Gemm", "BatchNormalization", "Relu", "Gemm"]
    assert graph.node[0].name.startswith("0/")
    for each in graph.initializer:
        assert T.equal(T.from_numpy(onnx.numpy_helper.to_array(each).copy()), module.state_dict()[each.name])


def test_a_compiled_module():
    module, x = model(), T.randn(2, 8)
    program = T.onnx.export(T.compile(module), (x,))
    assert {each.name for each in program.model_proto.graph.initializer} >= {"0.weight", "3.bias"}
    assert T.allclose(program(x)[0], module(x), atol=1e-5)


def test_weights_in_a_file_beside(tmp_path):
    module, x, path = model(), T.randn(2, 8), tmp_path / "model.onnx"
    program = T.onnx.export(module, (x,), path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "model.onnx.data").stat().st_size == 2048  # only the first weight is that large
    assert T.allclose(run(path, x), module(x), atol=1e-5)
    onnx.checker.check_model(str(path))
    inside = tmp_path / "inside.onnx"
    program.save(str(inside))
    assert not (tmp_path / "inside.onnx.data").exists()
    assert T.allclose(run(inside, x), module(x), atol=1e-5)
    with pytest.raises(TypeError, match="external_data=True needs a path"):
        program.save(io.BytesIO(), external_data=True)


def test_a_program_without_weights(tmp_path):
    path = tmp_path / "model.onnx"
    program = T.onnx.export(model(), (T.ones(2, 8),), path, export_params=False, external_data=False)
    assert not onnx.load(path).graph.initializer
    program.save(path, include_initializers=False, keep_initializers_as_inputs=True)
    onnx.checker.check_model(str(path))
    assert [each.name for each in onnx.load(path).graph.input][:2] == ["input", "0.weight"]
    program.save(path, keep_initializers_as_inputs=True)
    graph = onnx.load(path).graph
    assert len(graph.input) == 1 + len(graph.initializer)


def test_other_weights():
    program, other, x = T.onnx.export(model(), (T.ones(2, 8),)), model(), T.randn(2, 8)
    with T.no_grad():
        other[0].weight.mul_(2)
    program.apply_weights({name: value for name, value in other.state_dict().items() if "num_batches" not in name})
    assert T.allclose(program(x)[0], other(x), atol=1e-5)
    with pytest.warns(T.onnx.errors.OnnxExporterWarning, match="Weight 'z' not found in the model. Skipped applying."):
        program.apply_weights({"z": x})
    with pytest.raises(ValueError, match=r"'0.bias' is torch.float32 of shape \[64\], got"):
        program.apply_weights({"0.bias": x})


def test_a_tied_weight_stands_once():
    class Tied(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = T.nn.Embedding(5, 3), T.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.embedding(x))

    graph = T.onnx.export(Tied().eval(), (T.tensor([1, 2]),)).model_proto.graph
    assert [each.name for each in graph.initializer] == ["embedding.weight"]


def test_outputs_that_are_inputs_constants_or_twice_the_same():
    class Module(T.nn.Module):
        def forward(self, x):
            y = x * 2
            return x, y, y, T.ones(2), x.shape[0]

    names = ["a", "b", "c", "d", "e"]
    program = T.onnx.export(Module().eval(), (T.ones(2),), output_names=names, dynamic_axes={"x": [0]})
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert [each.name for each in program.model_proto.graph.output] == names
    found = program(T.ones(3))
    assert [each.tolist() for each in found] == [[1] * 3, [2] * 3, [2] * 3, [1, 1], 3]


def test_the_module_is_left_as_it_was():
    class Module(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop = T.nn.BatchNorm1d(3), T.nn.Dropout(0.5)
            self.seen = None

        def forward(self, x):
            self.seen = x
            x.mul_(2)
            return self.drop(self.norm(x))

    module, x = Module(), T.randn(4, 3)
    kept, state = x.clone(), {name: value.clone() for name, value in module.state_dict().items()}
    T.manual_seed(3)
    expected = T.rand(2)
    T.manual_seed(3)
    file = io.BytesIO()
    assert T.onnx.export(module, (x,), file, dynamo=False, training=T.onnx.TrainingMode.TRAINING) is None
    assert T.equal(T.rand(2), expected) and T.equal(x, kept)
    assert module.seen is None and module.training and module.norm.training
    assert all(T.equal(value, state[name]) for name, value in module.state_dict().items())
    assert [node.op_type for node in onnx.load_from_string(file.getvalue()).graph.node][-1] == "Dropout"
    module.norm.eval()
    file = io.BytesIO()
    T.onnx.export(module, (x,), file, dynamo=False)
    assert [node.op_type for node in onnx.load_from_string(file.getvalue()).graph.node] == ["Mul", "BatchNormalization"]
    assert module.training and not module.norm.training


def test_parameters_and_buffers_are_read_by_name_and_written():
    class Module(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = T.nn.Parameter(T.tensor([[1.0, 2.0], [3.0, 4.0]]))
            self.register_buffer("order", T.tensor([1, 0]))
            self.register_buffer("count", T.zeros(2))
            self.plain = T.ones(2)

        def forward(self, x):
            self.count.add_(self.plain)
            self.count[0] = 5
            rows = self.weight[(x[0] > 1).long()] ** x
            if self.weight.sum() > 0:  # known, as no input decides it
                rows = rows + -self.weight.T
            order = self.order.float()
            order += x[1]
            return (
                rows,
                self.weight**x,
                self.weight[self.order],
                x * self.count,
                order,
                self.weight.where(x > 1, x),
                2**self.order,
            )

    module, x = Module().eval(), T.tensor([[1.0, 2.0], [3.0, 4.0]])
    program, y = T.onnx.export(module, (x,)), T.tensor([[2.0, 1.0], [0.5, 3.0]])
    assert module.count.tolist() == [0, 0]
    weights = {each.name for each in program.model_proto.graph.initializer}
    assert {"weight", "order", "count", "plain"} <= weights
    for found, expected in zip(program(y), module(y), strict=True):
        assert T.allclose(found, expected)


def test_a_module_knows_that_it_is_exported():
    class Module(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = T.nn.Parameter(T.ones(2))

        def forward(self, weight, unused):
            assert T.onnx.is_in_onnx_export() and T.compiler.is_exporting() and T.compiler.is_compiling()
            return self.weight + weight

    program = T.onnx.export(Module().eval(), (T.ones(2), T.ones(3)))
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert [each.name for each in program.model_proto.graph.input] == ["weight_1", "unused"]
    assert program(T.ones(2), T.ones(3))[0].tolist() == [2, 2]
    assert not (T.onnx.is_in_onnx_export() or T.compiler.is_exporting() or T.compiler.is_compiling())


def test_arguments_by_name_and_functions():
    program = T.onnx.export(lambda x, *, scale: x * scale, (T.ones(2),), kwargs={"scale": T.full((2,), 3.0)}, verify=True)
    assert program.call_reference(T.ones(2), scale=T.full((2,), 4.0))[0].tolist() == [4, 4]
    assert [each.name for each in program.model_proto.graph.input] == ["x", "scale"]
    two = T.onnx.export(lambda *, a, b: a - b, kwargs={"b": T.ones(2), "a": T.ones(2)})
    assert [each.name for each in two.model_proto.graph.input] == ["a", "b"]
    assert two(b=T.ones(2), a=T.full((2,), 5.0))[0].tolist() == [4, 4]
    constant = T.onnx.export(lambda x, n: x * n, (T.ones(2), 3))
    assert constant(T.ones(2), 3)[0].tolist() == [3, 3]
    with pytest.raises(ValueError, match="the model takes 1 tensors, got 2"):
        constant(T.ones(2), T.ones(2))


def test_folding():
    class Module(T.nn.Module):
        def forward(self, x):
            return x + T.arange(4).float().cumsum(0)

    count = lambda **options: len(T.onnx.export(Module().eval(), (T.ones(4),), **options).model_proto.graph.node)
    assert count() == 1 and count(do_constant_folding=False) > 2


def test_verbose_prints_the_graph(capsys):
    T.onnx.export(T.nn.ReLU().eval(), (T.ones(2),), verbose=True)
    assert "Relu (input)" in capsys.readouterr().out


def test_nothing_is_loaded_before_it_is_needed():
    import subprocess
    import sys

    code = "import sys, gradiron; print('gradiron.onnx' in sys.modules); gradiron.onnx; print('onnx' in sys.modules)"
    package = str(pathlib.Path(T.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": package}
    )
    assert found.stdout.split() == ["False", "False"]
