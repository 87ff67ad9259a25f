"""First values and layers beside what PyTorch did: text, state, outputs, gradients, and buffers afterwards."""

import math
import re
import warnings

import golden_file
import nn_cases
import pytest

from library import IS_GRADIRON, NO_GPU, T

MISSING = r"'gradiron.nn.functional' has no attribute '(\w+)'|^(\w+) is not there yet"
TABLE = golden_file.read("nn.json")


def check(found, expected, where, rtol=2e-5, atol=2e-6):
    assert (found["shape"], found["dtype"]) == (expected["shape"], expected["dtype"]), where
    room = atol + rtol * max(expected["size"], 1e-3)
    # The size is kept to five digits, of which the last may be rounded the other way.
    for key, more in (("sum", 0), ("woven", 0), ("size", 1e-4 * expected["size"])):
        assert abs(found[key] - expected[key]) <= room + more, f"{where}: {key} {found[key]}, expected {expected[key]}"
    for a, e in zip(found["first"], expected["first"], strict=True):
        a, e = float(a), float(e)
        same = a == e or (math.isnan(a) and math.isnan(e)) or abs(a - e) <= atol + 10 * rtol * abs(e)
        assert same, f"{where}: {a}, expected {e}"


@pytest.mark.parametrize("shape, code", nn_cases.INITS, ids=lambda text: text)
def test_first_values(shape, code):
    check(nn_cases.first_values(T, shape, code), TABLE["inits"][f"{code} of {shape}"], code)


ON_THE_GPU = """
nn.Linear(6, 3)
nn.Bilinear(6, 5, 3)
nn.Conv1d(4, 6, 3, 2, 1, groups=2, bias=False)
nn.Conv2d(4, 3, 3)
nn.ConvTranspose2d(4, 3, 4, 2, 1)
nn.MaxPool2d(2)
nn.AvgPool2d(2)
nn.AdaptiveAvgPool2d((1, 1))
nn.BatchNorm2d(4)
nn.GroupNorm(2, 4)
nn.LayerNorm(6)
nn.RMSNorm(6)
nn.Embedding(10, 3)
nn.LSTM(6, 5)
nn.GRU(6, 5, 2, bidirectional=True)
nn.TransformerEncoderLayer(6, 2, 8, 0.0)
nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1)
nn.PixelShuffle(2)
nn.Upsample(scale_factor=2)
nn.utils.parametrizations.weight_norm(nn.Linear(6, 3), dim=1)
""".strip().splitlines()


@pytest.mark.gradiron
@pytest.mark.skipif(NO_GPU, reason="without the GPU")
@pytest.mark.parametrize("code", ON_THE_GPU)
def test_layer_on_the_gpu(code):
    case = next(case for case in nn_cases.LAYERS if case[0] == code)
    compare(case, "cuda")


def first_sentence(text):
    return text.split("\n")[0].split(". ")[0]


@pytest.mark.parametrize("code", nn_cases.ERRORS)
def test_complaints(code):
    expected = TABLE["errors"][code]
    found = nn_cases.complaint(T, code)
    missing = re.search(MISSING, found[-1][1]) if found and IS_GRADIRON else None
    if missing:
        pytest.skip(f"{missing[1] or missing[2]} is missing")
    assert [kind for kind, _ in found] == [kind for kind, _ in expected], found
    for (_, text), (_, wanted) in zip(found, expected):
        assert first_sentence(text) == first_sentence(wanted)


def test_signatures():
    found, expected = nn_cases.signatures(T), TABLE["signatures"]
    assert {name for name in expected if name not in found} == set()
    for name, parameters in expected.items():
        assert (name, found[name]) == (name, parameters)


@pytest.mark.parametrize("case", nn_cases.LAYERS, ids=lambda case: " | ".join(case)[:100])
def test_layer(case):
    compare(case, "cpu")


def compare(case, device):
    code, *inputs = case
    expected = TABLE["layers"][" | ".join(case)]
    found, gone = {}, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            nn_cases.run(T, code, inputs, found, device)
        except (AttributeError, NotImplementedError) as error:
            gone = re.search(MISSING, str(error)) if IS_GRADIRON else None
            if gone is None:
                raise
    for part in ("attributes", "repr"):
        assert gone and "Lazy" in code or found[part] == expected[part]
    for part in ("state", "weights", "after"):
        if part in found:
            assert list(found[part]) == list(expected[part]), part
            for name, value in expected[part].items():
                check(found[part][name], value, f"{part} {name}")
    for part in ("out", "grads"):
        if part in found:
            assert len(found[part]) == len(expected[part])
            for at, value in enumerate(expected[part]):
                if value is None:
                    assert found[part][at] is None
                else:
                    check(found[part][at], value, f"{part} {at}")
    if gone:
        pytest.skip(f"{gone[1] or gone[2]} is missing")
