"""Calls of every public operator with one argument spoiled. `make_bad_input.py` records what PyTorch raises for them."""

import itertools
import warnings

import error_cases

SETUP = """
f = T.tensor([[0.5, 0.25, 0.75], [0.125, 0.5, 0.375]]); q = T.tensor([[2.0, 0.5, 0.25], [0.5, 3.0, 0.5], [0.25, 0.5, 4.0]])
v = T.tensor([0.5, 0.25, 0.75]); s = T.tensor(0.5); i = T.tensor([[0, 1, 0], [1, 0, 1]]); n = T.tensor([0, 1, 1])
b = T.tensor([[True, False, True], [False, True, True]]); t = T.ones(2, 3, 3); m = T.ones(1, 2, 4, 4); w = T.ones(2, 2, 2, 2)
c = T.tensor([[1 + 2j, 0.5, 1j], [1j, 2.0, 1.0]]); l = T.ones(1, 2, 8); o = T.ones(1, 2, 4, 4, 4); k = T.ones(2, 2, 2)
"""
NAMES = "f q v s i n b t m w c l o k".split()

# What an argument of each kind may be; the first call that PyTorch takes is spoiled.
GOOD = {
    "Tensor": "f q v i n b t m l o s c".split(),
    "Operand": "f q v i s t".split(),
    "Tensors": ["(f, f)", "(q, q)", "(n,)", "(v, v)"],
    "Several": ["f", "q"],
    "Int": ["0", "1", "2"],
    "Ints": ["[0]", "[1]", "[2]", "[2, 2]", "[1, 0]", "[2, 2, 2]", "[1, 1]"],
    "Sizes": ["(2, 3)", "(3, 2)", "(6,)"],
    "Scalar": ["1", "0.5", "2"],
    "Float": ["0.5", "1.0"],
    "Bool": ["False", "True"],
    "Str": ["'sum'", "'ij'", "'fro'", "'linear'"],
    "DType": ["T.float32"],
    "Device": ["'cpu'"],
    "Generator": ["T.default_generator"],
    "Any": ["1"],
}

# Calls of operators whose arguments are not found by trying.
CALLS = {
    "einsum": ("T.einsum", ["'ij,kj->ik'", "f", "f"], "Str Tensor Tensor"),
    "index_put": ("T.index_put", ["f", "(n,)", "v"], "Tensor Tensors Tensor"),
    "nll_loss": ("T.nn.functional.nll_loss", ["q", "n"], "Tensor Tensor"),
    "conv2d": ("T.conv2d", ["m", "w"], "Tensor Tensor"),
    "bilinear": ("T.nn.functional.bilinear", ["f", "f", "T.ones(4, 3, 3)"], "Tensor Tensor Tensor"),
    "grid_sample": ("T.nn.functional.grid_sample", ["m", "T.zeros(1, 3, 3, 2)"], "Tensor Tensor"),
    "unflatten": ("T.unflatten", ["f", "1", "(3, 1)"], "Tensor Int Ints"),
    "index_reduce": ("T.index_reduce", ["f", "1", "n", "f", "'prod'"], "Tensor Int Tensor Tensor Str"),
    "scatter_reduce": ("T.scatter_reduce", ["f", "0", "i", "f", "'sum'"], "Tensor Int Tensor Tensor Str"),
}

SHAPES = ["{}.new_ones(5, 7)", "{}.new_ones(2, 3, 4, 5, 6)"]
DTYPES = ["{}.bool()", "{}.long()", "{}.double()", "{}.to(T.complex64)"]
BAD = {
    "Tensor": ["'a'", "None", "[1.0]", *SHAPES, *DTYPES],
    "Operand": ["'a'", "None", *SHAPES, "{}.to(T.complex64)"],
    "Tensors": ["f", "('a',)", "()", "(f, T.ones(5, 7))", "(f, c)"],
    "Several": ["'a'", "T.ones(5, 7, 9)"],
    "Int": ["7", "-9", "1.5", "'a'", "None"],
    "Ints": ["[7]", "-9", "[1.5]", "'a'", "[1, 1, 1, 1, 1, 1]"],
    "Sizes": ["(5, 7)", "(-2, 3)", "('a',)"],
    "Scalar": ["'a'", "None", "1j", "T.ones(5, 7)"],
    "Float": ["'a'", "-7.0", "T.ones(5, 7)"],
    "Bool": ["'a'", "2.5"],
    "Str": ["'nonsense'", "3"],
    "DType": ["'float32'", "1"],
    "Device": ["'nonsense'", "1.5"],
    "Generator": ["1"],
    "Any": [],
}
MORE = ["nonsense=1", "1, 2, 3, 4, 5, 6, 7, 8, 9"]


def operators(rows):
    """Each public operator: what it is called as, what its arguments may be, their kinds, whether it has an in-place form."""
    seen = set()
    for row in rows:
        name = row["name"]
        if not (row["function"] or row["nn"] or row["method"]):
            continue
        home = "T.nn.functional." if row["nn"] else f"T.{row['space']}." if row["space"] else "T."
        function = home + name.removeprefix(row["space"] + "_" if row["space"] else "")
        if not (row["function"] or row["nn"]):
            function = "T.Tensor." + name
        if function in seen:
            continue
        seen.add(function)
        kinds = [kind for _, kind, optional, default in row["params"] if not optional and default is None]
        if name in CALLS and function == CALLS[name][0]:
            yield function, [[good] for good in CALLS[name][1]], CALLS[name][2].split(), row["inplace"]
        else:
            yield function, [GOOD[kind] for kind in kinds], kinds, row["inplace"]


def good(function, choices, works):
    """The first arguments with which a call works; none where none do."""
    for args in itertools.islice(itertools.product(*choices), 3000):
        if works(f"{function}({', '.join(args)})"):
            return list(args)
    return None


def spoiled(function, args, kinds, inplace):
    """The calls with one argument spoiled, and the same of the in-place form."""
    names = [function] + ([f"T.Tensor.{function.rpartition('.')[2]}_"] if inplace else [])
    for name in names:
        for at, kind in enumerate(kinds):
            for bad in BAD[kind]:
                yield f"{name}({', '.join([*args[:at], bad.format(args[at]), *args[at + 1 :]])})"
        for more in MORE:
            yield f"{name}({', '.join([*args, more])})"


def raised(code, space):
    """What a call raises; none where it works."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, space)
        except Exception as error:
            return error
    return None


def difference(error, kind, sentence):
    """How an exception differs from PyTorch's; empty where it does not."""
    if error is None:
        return f"raises nothing, expected {kind}: {sentence}"
    kinds = [base.__name__ for base in type(error).__mro__]
    if kind == "AttributeError" and "TypeError" in kinds:
        return ""  # PyTorch's functions in Python trip over what is no tensor
    if kind not in kinds:
        return f"raises {kinds[0]}: {error}, expected {kind}: {sentence}"
    found = error_cases.first_sentence(str(error))
    return "" if found == sentence else f"says {found!r}, expected {sentence!r}"
