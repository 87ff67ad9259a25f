"""Bad input to every public operator: PyTorch's exception, the first sentence of its message, and every tensor as it was."""

import bad_input_cases as cases
import golden_file
import pytest

from library import GOLDEN, IS_GRADIRON, NO_GPU, T

TABLE = golden_file.read("bad_input.json.gz")
OPERATORS = TABLE["operators"]
KNOWN = set((GOLDEN / "bad_input_known.txt").read_text().splitlines())
# These ask a tensor for its shape, dtype or numbers only, or copy it to where the result is.
ANYWHERE = """
type_as linspace logspace is_same_size is_set_to index_fill expand_as view_as reshape_as select_scatter slice_scatter
diagonal_scatter tensor_split ctc_loss fill
""".split()


def fresh():
    space = {"T": T}
    exec(cases.SETUP, space)
    return space


def state(space):
    tensors = [space[name] for name in cases.NAMES]
    return [(x.device.type, tuple(x.shape), x.stride(), x.dtype, x.tolist()) for x in tensors]


def test_every_operator_is_there():
    """An operator that was added without running make_bad_input.py would never be checked."""
    if IS_GRADIRON:
        names = [name for name, *_ in cases.operators(T._core.rows())]
        assert set(names) == {*OPERATORS, *TABLE["without"]}


@pytest.mark.parametrize("name", OPERATORS)
def test_bad_input(name):
    wrong = []
    space = fresh()
    before = state(space)
    for code, kind, sentence in OPERATORS[name]["bad"]:
        error = cases.raised(code, space)
        difference = cases.difference(error, kind, sentence)
        if IS_GRADIRON and bool(difference) != (code in KNOWN):
            wrong.append(f"{code} {difference or 'agrees by now: take it out of bad_input_known.txt'}")
        if state(space) != before:
            if error is not None:
                wrong.append(f"{code} failed and changed an argument")
            space = fresh()
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="wants a GPU")
def test_tensors_of_two_devices():
    space = fresh()
    before = state(space)
    wrong = []
    count = 0
    for name, one in OPERATORS.items():
        args = one["good"]
        tensors = [at for at, arg in enumerate(args) if T.is_tensor(eval(arg, space))]
        for at in tensors if len(tensors) > 1 else ():
            count += 1
            code = f"{name}({', '.join([*args[:at], f'({args[at]}).cuda()', *args[at + 1 :]])})"
            error = cases.raised(code, space)
            if name.rpartition(".")[2] in ANYWHERE:
                continue
            if type(error) is not RuntimeError or "to be on the same device" not in str(error):
                wrong.append(f"{code}: {error!r}")
            if state(space) != before:
                wrong.append(f"{code} changed an argument")
                space = fresh()
    assert count > 250 and not wrong, "\n".join(wrong)
