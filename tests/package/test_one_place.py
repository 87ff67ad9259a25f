"""What is known of an operator stands in its row: no table of the Python package or of the scripts is keyed by operators' names."""

import ast
from pathlib import Path

import pytest

from library import NAME, T

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    NAME == "torch" or not (ROOT / "python" / "gradiron" / "ops.py").exists(), reason="reads the source"
)

REDUCTIONS = {"mean", "sum", "max"}
ACTIVATIONS = {"tanh", "relu", "gelu", "sigmoid", "leaky_relu", "selu"}
# Words that mean something else where they stand.
OTHERWISE = {
    # Names that the package shows, by the module in which they are found when they are asked for.
    "python/gradiron/__init__.py": None,
    # Where PyTorch keeps public names.
    "python/gradiron/_as_torch/homes.py": None,
    # The operators that list functions repeat: the row of each is asked for by its name.
    "python/gradiron/_foreach.py": None,
    # Reductions of what a mask shows, and of segments, by PyTorch's names of them.
    "python/gradiron/masked.py": None,
    "python/gradiron/_functions/segments.py": None,
    # What sparse tensors answer themselves, by the names of the functions that are called.
    "python/gradiron/sparse/_arithmetic.py": None,
    "python/gradiron/sparse/_compressed.py": None,
    "python/gradiron/sparse/_functions.py": None,
    "python/gradiron/sparse/_layouts.py": None,
    "python/gradiron/sparse/_products.py": None,
    "python/gradiron/sparse/_reductions.py": None,
    "python/gradiron/sparse/_tensor.py": None,
    "python/gradiron/sparse/_views.py": None,
    # A kind of Chebyshev's polynomials.
    "python/gradiron/_functions/polynomials.py": {"t"},
    # What is done to a batch, not to a tensor.
    "python/gradiron/nn/parallel/scatter_gather.py": {"gather", "scatter"},
    # How a loss is made of those of the samples.
    "python/gradiron/nn/utils/_per_sample_grad.py": {"mean", "sum"},
    # Pipes of data, one after another.
    "python/gradiron/utils/data/datapipes/iter.py": {"concat"},
    "python/gradiron/utils/data/datapipes/map.py": {"concat"},
    # A window.
    "python/gradiron/signal/windows.py": {"exponential"},
    # Functions and methods of Python's own, which a compiled function may call.
    "python/gradiron/_compile/calls.py": None,
    "python/gradiron/_compile/containers.py": None,
    "python/gradiron/_compile/known.py": None,
    "python/gradiron/_compile/operations.py": None,
    # The words of an optimizer's program, a language of its own.
    "python/gradiron/optim/_rule.py": None,
    # Python's own operators, by their names in the module `operator`.
    "python/gradiron/fx/_code_writer.py": None,
    # Functions that a trace takes for others than the core does: they return no tensors, or take several of them one by one.
    "python/gradiron/fx/_patching.py": {"is_complex", "is_nonzero", "numel"},
    "python/gradiron/fx/_names.py": {"einsum", "tensordot"},
    # What operators are in another format, ONNX: only an export asks, and the row of an operator knows of no format.
    **{
        f"python/gradiron/onnx/_forms/{family}.py": None
        for family in """attention creation indexing layers losses normalization pointwise pooling products recurrent reductions
        resizing shapes""".split()
    },
    # Python's own operators, and what a trace of sizes asks for.
    "python/gradiron/onnx/_sizes.py": {"add", "sub", "mul", "neg"},
    "python/gradiron/onnx/_tracing.py": {"numel"},
    # Distributions, by their modules.
    "python/gradiron/distributions/__init__.py": None,
    # How losses, bags and scatters reduce; how layers are activated; how images and borders are filled.
    "python/gradiron/nn/_top_level.py": REDUCTIONS,
    "python/gradiron/nn/_compositions.py": REDUCTIONS | {"bilinear"},
    "python/gradiron/nn/_losses.py": REDUCTIONS,
    "python/gradiron/nn/_reduction.py": REDUCTIONS,
    "python/gradiron/nn/_resizing.py": {"linear", "bilinear", "zeros", "mode"},
    "python/gradiron/nn/_embedding.py": REDUCTIONS,
    "python/gradiron/nn/init.py": ACTIVATIONS
    | {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
    "python/gradiron/nn/modules/conv.py": {"zeros"},
    "python/gradiron/nn/modules/loss.py": REDUCTIONS,
    "python/gradiron/nn/modules/rnn.py": ACTIVATIONS | {"dropout"},
    "python/gradiron/nn/modules/sparse.py": REDUCTIONS,
    "python/gradiron/nn/modules/transformer.py": ACTIVATIONS,
    "python/gradiron/nn/modules/upsampling.py": {"bilinear"},
    "python/gradiron/nn/utils/parametrizations.py": {"matrix_exp"},
    # How rates and averages change.
    "python/gradiron/optim/lr_scheduler.py": {"min", "max", "cos", "abs", "linear", "threshold", "mode"},
    "python/gradiron/optim/swa_utils.py": {"cos", "linear"},
    # Keys of states, files, traces and settings; words of messages and of signatures.
    "python/gradiron/_creation.py": {"is_complex"},
    "python/gradiron/_functions/indices.py": {"floor"},
    "python/gradiron/_limits.py": {"min", "max"},
    "python/gradiron/_functions/settings.py": {"fill"},
    "python/gradiron/_tensor.py": {"polygamma", "polygamma_", "float_power_"},
    "python/gradiron/_tensor_str.py": {"full", "threshold"},
    "python/gradiron/_pickling/rebuild.py": {"conj", "neg"},
    "python/gradiron/_pickling/reduce.py": {"conj", "neg"},
    "python/gradiron/autograd/_parts.py": {"real"},
    "python/gradiron/_functions/histograms.py": {"max"},
    "python/gradiron/autograd/_profiler_trace.py": {"cat", "t", "stack"},
    "python/gradiron/autograd/graph.py": {"all", "any"},
    "python/gradiron/func/_rearrange.py": {"equal"},
    "python/gradiron/fx/_tensor_annotations.py": {"complex"},
    "python/gradiron/fx/experimental/_recording.py": {"allclose", "equal", "is_nonzero", "where"},
    "python/gradiron/fx/passes/dialect/common/cse_pass.py": {"random"},
    "python/gradiron/fx/experimental/proxy_tensor.py": {"real"},
    "python/gradiron/_stand_ins/jit/__init__.py": {"trace"},
    "python/gradiron/optim/adagrad.py": {"sum"},
    "python/gradiron/optim/lbfgs.py": {"t"},
    "python/gradiron/serialization/_archive.py": {"minimum", "maximum"},
    "python/gradiron/storage.py": {"ones"},
    "python/gradiron/testing/_compare.py": {"equal"},
    "python/gradiron/viz/font.py": {"t"},
    "scripts/pictures.py": {"lstm"},
    "scripts/site/reference.py": {"complex", "random"},
    "scripts/sizes.py": {"std"},
    "scripts/wheel.py": {"dist"},
}


def names_in(source, operators):
    """The operators that literals name: alone, or in lists of words of which most are operators. Docstrings and `__all__` do not count."""
    tree = ast.parse(source)
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            silent.add(id(node.value))
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                silent.update(map(id, ast.walk(node.value)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            words = node.value.split()
            known = [word for word in words if word.rstrip("_") in operators]
            if known and all(map(str.isidentifier, words)) and 2 * len(known) >= len(words):
                yield from ((word, node.lineno) for word in known)


def test_no_table_is_keyed_by_operators():
    operators = {row["name"].rstrip("_") for row in T._core.rows()}
    assert len(operators) > 500 and {"exp", "softmax", "conv2d"} <= operators
    told = []
    for path in sorted([*(ROOT / "python").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]):
        file = path.relative_to(ROOT).as_posix()
        if file.startswith("python/gradiron/distributed/"):
            continue  # Collectives and what stores do, which have the names of operators.
        otherwise = OTHERWISE.get(file, set())
        if otherwise is None:
            continue
        named = names_in(path.read_text("utf-8"), operators)
        told += [f"{file}:{line}: {word}" for word, line in named if word not in otherwise]
    assert not told, "what is known of an operator stands in its row; these name some:\n" + "\n".join(told)


def test_the_reader_reads():
    source = '"""exp"""\n__all__ = ["exp"]\nTABLE = {"exp": 1, "other": 2}\nLIST = "exp sin cos_ other".split()\nraise E("exp of what")\n'
    assert list(names_in(source, {"exp", "sin", "cos"})) == [("exp", 3), ("exp", 4), ("sin", 4), ("cos_", 4)]
