"""Models that are exported compute in onnxruntime what they compute here, also on inputs of other sizes."""

import onnx
import pytest
from onnx_models import MODELS

from library import T

pytestmark = pytest.mark.gradiron

SIZES = {"batch": 5, "length": 7, "height": 12, "width": 16}


def example(model):
    T.manual_seed(0)
    module = model.make().eval()
    for buffer in module.buffers():
        if buffer.is_floating_point() and buffer.dim() and buffer.numel() < 50:
            buffer.uniform_(0.5, 1.5)
    return module, model.inputs()


def resized(inputs, axes):
    """Other inputs, as large as `SIZES` says along the dynamic axes."""
    made = []
    for x in inputs:
        for axis, name in axes.items():
            x = x.index_select(axis, T.arange(SIZES[name]) % x.size(axis))
        made.append(x * 0.9 if x.is_floating_point() else x)
    return tuple(made)


def check(program, module, inputs, tolerance=1e-5):
    with T.no_grad():
        expected = [leaf for leaf in T.utils._pytree.tree_leaves(module(*(x.clone() for x in inputs))) if leaf is not None]
    found = program(*inputs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        T.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_the_same_in_onnxruntime(name):
    model = MODELS[name]
    module, inputs = example(model)
    names = [f"input_{at}" for at in range(len(inputs))]
    axes = {each: model.axes for each in names}
    program = T.onnx.export(module, inputs, input_names=names, dynamic_axes=axes)
    onnx.checker.check_model(program.model_proto, full_check=True)
    check(program, module, inputs)
    check(program, module, resized(inputs, model.axes))


@pytest.mark.parametrize("opset", (13, 14, 16, 17, 18, 19, 21))
@pytest.mark.parametrize("name", ("unet", "gpt", "encoder", "normalizations", "activations"))
def test_every_version_of_the_operators(name, opset):
    model = MODELS[name]
    module, inputs = example(model)
    names = [f"input_{at}" for at in range(len(inputs))]
    axes = {each: model.axes for each in names}
    program = T.onnx.export(module, inputs, input_names=names, dynamic_axes=axes, opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset
    onnx.checker.check_model(program.model_proto, full_check=True)
    check(program, module, resized(inputs, model.axes))
