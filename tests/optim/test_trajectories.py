"""Where optimizers and schedules go, step for step, beside what PyTorch recorded."""

import base64
import io
import warnings

import golden_file
import optim_cases as cases
import pytest

from library import T, compare

RECORDED = golden_file.read("optim.json.gz")
# PyTorch takes square roots that are an ulp off; so little is left of it after a hundred steps.
CLOSE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12, "bfloat16": 0, "float16": 0}
# Norms and products of halves are rounded by either library in its own way.
LOOSE = {"bfloat16": 4e-2, "float16": 1e-2}


def title(case):
    return "-".join([case[0] if isinstance(case[0], str) else "", *(f"{k}={v}" for k, v in case[-3].items()), case[-2]])


@pytest.mark.parametrize("case", RECORDED["steps"], ids=title)
def test_steps(case):
    name, options, dtype, expected = case
    close = CLOSE[dtype]
    if dtype in LOOSE and (name == "Adafactor" or options.get("fused") or name == "Adamax"):
        close = LOOSE[dtype]
    found = cases.trajectory(T, name, options, dtype)
    for step, actual, seen in zip(cases.SEEN, found["seen"], expected["seen"]):
        compare(actual, seen, close, close, f"step {step}")
    for actual, state in zip(found["state"], expected["state"]):
        assert list(actual) == list(state)
        for key, value in state.items():
            compare(actual[key], value, close, close, key)


@pytest.mark.parametrize("case", RECORDED["lbfgs"], ids=title)
def test_lbfgs(case):
    options, dtype, expected = case
    found = cases.lbfgs(T, options, dtype)
    close = 2e-3 if dtype == "float32" else 1e-7
    if dtype == "float32":
        # How often it looks where nothing is left to gain is up to the last bit.
        del expected["evals"]
    for key, value in expected.items():
        compare(found[key], value, close, close, key)


@pytest.mark.parametrize("case", RECORDED["muon"], ids=title)
def test_muon(case):
    options, dtype, expected = case
    # Orthogonal only so far as halves are.
    compare(cases.muon(T, options, dtype), expected, 1e-2, 1e-2, "")


@pytest.mark.parametrize("code", RECORDED["schedules"])
def test_schedules(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(cases.schedule(T, code), RECORDED["schedules"][code], 1e-15, 0, "")


@pytest.mark.parametrize("code", RECORDED["closed"])
def test_schedules_by_epoch(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(cases.schedule(T, code, closed=True), RECORDED["closed"][code], 1e-15, 0, "")


@pytest.mark.parametrize("case", RECORDED["saved"], ids=lambda case: case[0])
def test_a_state_that_pytorch_saved_goes_on_here(case):
    name, options, expected = case
    params = cases.parameters(T, T.float64, shapes=list(cases.SHAPES))
    with T.no_grad():
        for p, there in zip(params, expected["params"]):
            p.copy_(T.tensor(there, dtype=T.float64).reshape(p.shape))
    groups = params if name == "LBFGS" else [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    optim = getattr(T.optim, name)(groups, **options)
    optim.load_state_dict(T.load(io.BytesIO(base64.b64decode(expected["file"]))))
    compare(cases.advance(T, optim, params, 5), expected["losses"], 1e-9, 1e-12, "")


@pytest.mark.parametrize("name, options", cases.SAVED, ids=lambda case: case if isinstance(case, str) else "")
def test_a_state_saved_here_goes_on_after_loading(name, options):
    found = cases.saved(T, name, options)
    params = cases.parameters(T, T.float64, shapes=list(cases.SHAPES))
    with T.no_grad():
        for p, there in zip(params, found["params"]):
            p.copy_(T.tensor(there, dtype=T.float64).reshape(p.shape))
    groups = params if name == "LBFGS" else [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    optim = getattr(T.optim, name)(groups, **options)
    optim.load_state_dict(T.load(io.BytesIO(found["file"])))
    # Loading makes the product of NAdam a number of the dtype of its parameter.
    compare(cases.advance(T, optim, params, 5), found["losses"], 1e-9 if name == "NAdam" else 0, 0, "")
