"""Axes that may have another size: declared, found, and refused where the module does not allow it."""

import pytest

from library import T

F = T.nn.functional
pytestmark = pytest.mark.gradiron


def exported(function, *inputs, **options):
    class Module(T.nn.Module):
        def forward(self, x, y=None):
            return function(x) if y is None else function(x, y)

    return T.onnx.export(Module().eval(), inputs, **options)


def sizes(info):
    return [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]


def test_axes_have_the_names_that_are_given():
    axes = {"x": {0: "batch", -1: "width"}, "out": [0]}
    program = exported(lambda x: x + 1, T.ones(2, 3), input_names=["x"], output_names=["out"], dynamic_axes=axes)
    graph = program.model_proto.graph
    assert sizes(graph.input[0]) == ["batch", "width"]
    assert sizes(graph.output[0]) == ["out_dynamic_axes_1", "width"]
    program = exported(lambda x: (x.T, x.repeat(2, 1), x.sum()), T.ones(2, 3), dynamic_axes={"x": {0: "a", 1: "b"}})
    assert [sizes(each) for each in program.model_proto.graph.output] == [["b", "a"], ["repeat_dim_0", "b"], []]
    program = exported(lambda x: x.T, T.ones(2, 2), dynamic_axes={"x": {0: "a", 1: "b"}})
    assert {"a", "b"}.isdisjoint(sizes(program.model_proto.graph.output[0]))  # either could be meant
    fixed = exported(lambda x: x + 1, T.ones(2, 3)).model_proto.graph
    assert sizes(fixed.input[0]) == sizes(fixed.output[0]) == [2, 3]


def test_dynamic_shapes_have_the_structure_of_the_inputs():
    class Module(T.nn.Module):
        def forward(self, x, pair, scale=2):
            return x + pair["a"] * scale, pair["b"]

    inputs = T.ones(2, 3), {"a": T.ones(2, 3), "b": T.ones(4)}
    by_name = {"x": {0: "n"}, "pair": {"a": {0: "n"}, "b": None}}
    graph = T.onnx.export(Module().eval(), inputs, dynamic_shapes=by_name).model_proto.graph
    assert [each.name for each in graph.input] == ["x", "pair_0", "pair_1"]
    assert [sizes(each) for each in graph.input] == [["n", 3], ["n", 3], [4]]
    by_place = (("n", None), {"a": ("n", None), "b": None})
    program = T.onnx.export(Module().eval(), inputs, dynamic_shapes=by_place)
    assert program.model_proto.graph == graph
    x = T.ones(5, 3)
    assert T.equal(program(x, {"a": x, "b": T.zeros(4)})[0], 3 * x)


def test_a_size_of_one_is_dynamic_too():
    program = exported(lambda x: x.expand(-1, 4).reshape(x.shape[0], 2, -1), T.ones(1, 1), dynamic_axes={"x": [0]})
    assert program(T.ones(3, 1))[0].shape == (3, 2, 2)


def test_sizes_are_computed_in_the_graph():
    def padded(x):
        missing = (8 - x.shape[1] % 8) % 8
        return F.pad(x, (0, missing)).view(x.shape[0], -1, 8), T.arange(-(-x.shape[1] // 3))

    program = exported(padded, T.ones(2, 6), dynamic_axes={"x": [0, 1]})
    for length in (1, 7, 8, 9, 17):
        x = T.arange(3.0 * length).view(3, length)
        for one, other in zip(program(x), padded(x), strict=True):
            assert T.equal(one, other)


@pytest.mark.parametrize(
    "function",
    (
        lambda x: x.view(len(x), -1),
        lambda x: x / float(x.shape[0]),
        lambda x: x.reshape(int(x.shape[0]), -1),
        lambda x: T.stack([row * 2 for row in x]),
        lambda x: x * 2 if x.shape[0] == 2 else x,
        lambda x: x.squeeze(0) + T.tensor([float(x.shape[0])]),
    ),
)
def test_a_size_that_would_be_a_constant_is_refused(function):
    with pytest.raises(T.fx.proxy.TraceError, match=r"(?s)makes a constant of the size .*test_onnx_dynamic\.py"):
        exported(function, T.ones(2, 4), dynamic_axes={"x": [0]})
    exported(function, T.ones(2, 4))  # where nothing is dynamic it is right


def test_a_module_that_takes_no_other_size_is_refused():
    with pytest.raises(T.onnx.OnnxExporterError, match="runs on no other sizes than those of its example inputs"):
        exported(lambda x: x.view(2, 4), T.ones(2, 4), dynamic_axes={"x": [0]})
    # The largest size that a table allows is an example like any other.
    table = T.randn(4, 2)
    program = exported(lambda x: x + table[T.arange(x.shape[0])], T.ones(4, 2), dynamic_axes={"x": [0]})
    assert T.allclose(program(T.ones(3, 2))[0], 1 + table[:3])


def test_wrong_declarations():
    with pytest.raises(ValueError, match="'x' has 2 dimensions and no axis 2"):
        exported(lambda x: x, T.ones(2, 2), dynamic_axes={"x": [2]})
    with pytest.raises(ValueError, match=r"a tensor of shape \[2, 2\] has 2 dimensions and no axis 3"):
        exported(lambda x: x, T.ones(2, 2), dynamic_shapes=({3: "n"},))
    with pytest.raises(ValueError, match="dynamic_shapes names 'z', which is no argument of the module"):
        exported(lambda x: x, T.ones(2, 2), dynamic_shapes={"z": {0: "n"}})
    with pytest.raises(ValueError, match="the axes named 'n' have different sizes, 2 and 3"):
        exported(lambda x: x, T.ones(2, 3), dynamic_axes={"x": {0: "n", 1: "n"}})
    with pytest.raises(ValueError, match="dynamic_shapes has 2 entries for 1 arguments"):
        exported(lambda x: x, T.ones(2, 3), dynamic_shapes=({0: "n"}, None))
    with pytest.warns(UserWarning, match="Provided key z for dynamic axes is not a valid input/output name"):
        exported(lambda x: x, T.ones(2, 3), dynamic_axes={"z": [0]})
