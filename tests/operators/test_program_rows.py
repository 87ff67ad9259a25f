"""Every operator's sample, captured while its kernels run and replayed on other elements: the same bits as the operator, or a
reason."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_gradients import by_row

from library import T

pytestmark = pytest.mark.gradiron
core = getattr(T, "_core", None)

# These may have a reason: the host reads elements while they run (how many results there are, whether an algorithm has succeeded or
# an index is valid), or a kernel does not say what it keeps yet.
MAY_HAVE_A_REASON = set(
    """
    binary_cross_entropy binary_cross_entropy_with_logits cdist combinations cumprod det embedding_bag grid_sampler index
    index_copy index_put inverse linalg_cholesky linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_det linalg_inv linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp
    linalg_matrix_norm linalg_matrix_power linalg_matrix_sqrth linalg_norm linalg_pinv linalg_polar linalg_solve
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander lu_solve lu_unpack masked_scatter
    masked_select matrix_exp multi_margin_loss multilabel_margin_loss nuclear_norm pdist pinverse prod put
    special_polynomial svd take vander
    hardshrink polygamma selu selu_ softshrink
    """.split()
)


def outputs(result):
    if isinstance(result, T.Tensor):
        return [result]
    return [t for item in result for t in outputs(item)] if isinstance(result, (tuple, list)) else []


def run(call, inputs, wants):
    """The results of a call, their gradients and those of the gradients."""
    results = outputs(call(*inputs))
    ends = [t for t in results if t.requires_grad]
    if not ends or not wants:
        return [t.detach() for t in results]
    grads = T.autograd.grad(ends, wants, [T.ones_like(t) for t in ends], allow_unused=True, create_graph=True)
    grads = [g for g in grads if g is not None]
    ends = [g.sum() for g in grads if g.requires_grad and not g.is_complex()]
    seconds = T.autograd.grad(ends, wants, allow_unused=True) if ends else ()
    return [t.detach() for t in (*results, *grads, *(g for g in seconds if g is not None))]


def same_bits(a, b):
    a, b = a.detach().resolve_conj().resolve_neg(), b.detach().resolve_conj().resolve_neg()
    kind = lambda t: (t.dtype, t.shape, t.stride())
    return kind(a) == kind(b) and T.equal(T.nan_to_num(a, 7.0), T.nan_to_num(b, 7.0))


def inputs_of(operands):
    inputs = [x.detach().clone() if isinstance(x, T.Tensor) else x for x in operands]
    wants = [x for x in inputs if isinstance(x, T.Tensor) and (x.is_floating_point() or x.is_complex())]
    return inputs, [x.requires_grad_() for x in wants]


def tensors_in(values):
    if isinstance(values, T.Tensor):
        return [values]
    return [t for value in values for t in tensors_in(value)] if isinstance(values, (tuple, list)) else []


def compare(name, operands, call):
    def eager(operands, seed):
        inputs, wants = inputs_of(operands)
        T.manual_seed(seed)
        return run(call, inputs, wants)

    def flipped():
        return [x.flip(list(range(x.ndim))) if isinstance(x, T.Tensor) else x for x in operands]

    expected = eager(operands, 3)
    inputs, wants = inputs_of(operands)
    cells = [cell.cell_contents for cell in getattr(call, "__closure__", None) or ()]
    T.manual_seed(3)
    core.begin_capture(True)
    try:
        results = run(call, inputs, wants)
    except BaseException:
        core.discard_capture()
        raise
    known, program = tensors_in(inputs), None
    try:
        program = core.end_program([*known, *tensors_in(cells)], results, len(known))
    except RuntimeError as error:
        assert name in MAY_HAVE_A_REASON, (name, error)
    assert len(results) == len(expected) and all(map(same_bits, results, expected)), name
    if program is None:
        return
    for seed, others in ((3, operands), (4, flipped())):
        fresh, _ = inputs_of(others)
        T.manual_seed(seed)
        got = program.replay(tuple(tensors_in(fresh)), ())
        assert isinstance(got, list), (name, got)
        expected = eager(others, seed)
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            assert same_bits(a, b), (name, a, b)


@by_row
def test_a_replay_has_the_bits_of_the_operator(name, sampler):
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        operands, call = sampler(data.draw)
        compare(name, operands, call)

    check()
