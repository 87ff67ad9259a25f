"""Every operator's sample, captured and replayed on other elements: the same bits as without a graph, or refused."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_gradients import by_row

from library import T

# These may be refused: the host reads elements while they run (how many results there are, whether an algorithm has succeeded or
# an index is valid), or a kernel does not say what it keeps yet.
MAY_BE_REFUSED = set(
    """
    binary_cross_entropy binary_cross_entropy_with_logits cdist combinations cumprod embedding_bag grid_sampler index
    index_copy index_put inverse linalg_cholesky linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_inv linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp
    linalg_matrix_norm linalg_matrix_power linalg_matrix_sqrth linalg_norm linalg_pinv linalg_polar linalg_solve
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander lu_solve lu_unpack masked_scatter
    masked_select matrix_exp multi_margin_loss multilabel_margin_loss nuclear_norm pdist pinverse prod put
    special_polynomial svd take vander
    """.split()
)
REFUSAL = "operation not permitted when stream is capturing"


def outputs(result):
    if isinstance(result, T.Tensor):
        return [result]
    return [t for item in result for t in outputs(item)] if isinstance(result, (tuple, list)) else []


def run(call, inputs, wants):
    results = outputs(call(*inputs))
    ends = [t for t in results if t.requires_grad]
    if not ends or not wants:
        return results
    grads = T.autograd.grad(ends, wants, [T.ones_like(t) for t in ends], allow_unused=True)
    return results + [g for g in grads if g is not None]


def same_bits(a, b):
    a, b = a.detach().resolve_conj().resolve_neg(), b.detach().resolve_conj().resolve_neg()
    return a.dtype == b.dtype and a.shape == b.shape and T.equal(T.nan_to_num(a, 7.0), T.nan_to_num(b, 7.0))


def compare(name, operands, call):
    operands = [x.detach() if isinstance(x, T.Tensor) else x for x in operands]
    inputs = [x.clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in operands]
    wants = [x for x in inputs if x.requires_grad]
    run(call, inputs, wants)
    graph = T.cuda.CUDAGraph()
    T.manual_seed(3)
    try:
        with T.cuda.graph(graph):
            captured = run(call, inputs, wants)
    except RuntimeError as error:
        assert name in MAY_BE_REFUSED and REFUSAL in str(error), (name, error)
        return
    for seed in (3, 4):
        with T.no_grad():
            for x, own in zip(inputs, operands):
                x.copy_(own.flip(list(range(own.ndim))) if seed == 4 else own)
        T.manual_seed(seed)
        graph.replay()
        got = [t.detach().clone() for t in captured]
        T.manual_seed(seed)
        fresh = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
        expected = run(call, fresh, [x for x in fresh if x.requires_grad])
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
