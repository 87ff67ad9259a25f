"""Calls of every public operator with one argument spoiled. `make_bad_input.py` records what PyTorch raises for them."""

import itertools
import warnings

import error_cases

SETUP = """
f = T.tensor([[0.5, 0.25, 0.75], [0.125, 0.5, 0.375]]); q = T.tensor([[2.0, 0.5, 0.25], [0.5, 3.0, 0.5], [0.25, 0.5, 4.0]])
v = T.tensor([0.5, 0.25, 0.75]); s = T.tensor(0.5); i = T.tensor([[0, 1, 0], [1, 0, 1]]); n = T.tensor([0, 1, 1])
b = T.tensor([[True, False, True], [False, True, True]]); t = T.ones(2, 3, 3); m = T.ones(1, 2, 4, 4); w = T.ones(2, 2, 2, 2)
c = T.tensor([[1 + 2j, 0.5, 1j], [1j, 2.0, 1.0]]); l = T.ones(1, 2, 8); o = T.ones(1, 2, 4, 4, 4); k = T.ones(2, 2, 2)
p = T.tensor([1, 2, 3], dtype=T.int32)
"""
NAMES = "f q v s i n b t m w c l o k p".split()

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

RNN = ["True", "1", "0.0", "False", "False", "False"]
FLAGS = "Bool Int Float Bool Bool Bool"
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
    "scatter": ("T.scatter", ["f", "0", "i", "f"], "Tensor Int Tensor Tensor"),
    "clamp": ("T.clamp", ["f", "0", "1"], "Tensor Scalar Scalar"),
    "narrow": ("T.narrow", ["f", "0", "0", "1"], "Tensor Int Int Int"),
    "meshgrid": ("T.meshgrid", ["v", "v"], "Tensor Tensor"),
    "tensordot": ("T.tensordot", ["f", "f", "[[1], [1]]"], "Tensor Tensor Any"),
    "view_as_complex": ("T.view_as_complex", ["T.ones(3, 2)"], "Tensor"),
    "view_as_complex_copy": ("T.view_as_complex_copy", ["T.ones(3, 2)"], "Tensor"),
    "linalg_tensorinv": ("T.linalg.tensorinv", ["T.eye(4).reshape(2, 2, 4)", "2"], "Tensor Int"),
    "lu_unpack": ("T.lu_unpack", ["q", "p"], "Tensor Tensor"),
    "lu_solve": ("T.lu_solve", ["q", "q", "p"], "Tensor Tensor Tensor"),
    "linalg_lu_solve": ("T.linalg.lu_solve", ["q", "p", "q"], "Tensor Tensor Tensor"),
    "linalg_ldl_solve": ("T.linalg.ldl_solve", ["q", "p", "q"], "Tensor Tensor Tensor"),
    "layer_norm": ("T.layer_norm", ["f", "[3]"], "Tensor Ints"),
    "rms_norm": ("T.rms_norm", ["f", "[3]"], "Tensor Ints"),
    "native_layer_norm": ("T.native_layer_norm", ["f", "[3]", "None", "None", "1e-5"], "Tensor Ints Any Any Float"),
    "batch_norm": (
        "T.batch_norm",
        ["f", "v", "v", "v", "v", "False", "0.1", "1e-5", "False"],
        "Tensor Tensor Tensor Tensor Tensor Bool Float Float Bool",
    ),
    "instance_norm": (
        "T.instance_norm",
        ["t", "None", "None", "None", "None", "True", "0.1", "1e-5", "False"],
        "Tensor Any Any Any Any Bool Float Float Bool",
    ),
    "convolution": (
        "T.convolution",
        ["m", "w", "None", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"],
        "Tensor Tensor Any Ints Ints Ints Bool Ints Int",
    ),
    "grid_sampler": ("T.grid_sampler", ["m", "T.zeros(1, 3, 3, 2)", "0", "0", "False"], "Tensor Tensor Int Int Bool"),
    "affine_grid_generator": ("T.affine_grid_generator", ["T.ones(1, 2, 3)", "[1, 1, 2, 2]", "False"], "Tensor Ints Bool"),
    "ctc_loss": (
        "T.nn.functional.ctc_loss",
        ["T.zeros(4, 1, 3)", "T.tensor([[1, 2]])", "T.tensor([4])", "T.tensor([2])"],
        "Tensor Tensor Tensor Tensor",
    ),
    "gru_cell": ("T.gru_cell", ["f", "f", "T.ones(9, 3)", "T.ones(9, 3)"], "Tensor Tensor Tensor Tensor"),
    "lstm_cell": ("T.lstm_cell", ["f", "(f, f)", "T.ones(12, 3)", "T.ones(12, 3)"], "Tensor Tensors Tensor Tensor"),
    "gru": (
        "T.gru",
        ["k", "T.zeros(1, 2, 2)", "(T.ones(6, 2),) * 2 + (T.ones(6),) * 2", *RNN],
        f"Tensor Tensor Tensors {FLAGS}",
    ),
    "rnn_tanh": (
        "T.rnn_tanh",
        ["k", "T.zeros(1, 2, 2)", "(T.ones(2, 2),) * 2 + (T.ones(2),) * 2", *RNN],
        f"Tensor Tensor Tensors {FLAGS}",
    ),
    "lstm": (
        "T.lstm",
        ["k", "(T.zeros(1, 2, 2),) * 2", "(T.ones(8, 2),) * 2 + (T.ones(8),) * 2", *RNN],
        f"Tensor Tensors Tensors {FLAGS}",
    ),
    "randint": ("T.randint", ["0", "5", "(2,)"], "Int Int Sizes"),
    "randint_like": ("T.randint_like", ["f", "0", "5"], "Tensor Int Int"),
    "normal": ("T.normal", ["f", "f"], "Tensor Tensor"),
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
