"""Norms of gradients, clipping, parameters as one vector."""

import pytest

from library import T, assert_values, flat

nn = T.nn
U = nn.utils


def params(*grads):
    made = []
    for grad in grads:
        p = nn.Parameter(T.zeros(len(grad)))
        p.grad = T.tensor(grad)
        made.append(p)
    return made


def test_clip_grad_norm():
    ps = [*params([3.0, 0.0], [0.0, 4.0]), nn.Parameter(T.zeros(1))]
    total = U.clip_grad_norm_(ps, 1.0)
    assert abs(total.item() - 5.0) < 1e-6 and total.shape == ()
    assert_values(ps[0].grad, [3 / 5.000001, 0.0])
    assert_values(U.get_total_norm([p.grad for p in ps[:2]]), 1.0)
    small = params([0.3])
    assert abs(U.clip_grad_norm_(small[0], 1.0).item() - 0.3) < 1e-6
    assert_values(small[0].grad, [0.3])
    assert U.clip_grad_norm_(iter(params([2.0, -5.0])), 1.0, norm_type=float("inf")).item() == 5.0
    assert abs(U.clip_grad_norm_(params([2.0, -5.0]), 1.0, norm_type=1).item() - 7.0) < 1e-6
    assert U.clip_grad_norm_([], 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="^`parameters` is an empty generator, no gradient clipping will occur."):
        U.clip_grad_norm_((p for p in ()), 1.0)
    with pytest.warns(FutureWarning, match="clip_grad_norm` is now deprecated"):
        U.clip_grad_norm(params([1.0]), 1.0)


def test_norms_that_are_not_finite():
    ps = params([float("inf"), 1.0])
    U.clip_grad_norm_(ps, 1.0)
    assert flat(ps[0].grad)[1] == 0.0
    ps = params([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match=r"^The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        U.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)
    assert flat(ps[0].grad)[1] == 1.0


def test_clip_in_two_steps():
    ps = params([3.0], [4.0])
    total = U.get_total_norm([p.grad for p in ps])
    U.clip_grads_with_norm_(ps, 2.5, total)
    assert_values(ps[1].grad, [4.0 * 2.5 / 5.000001])


def test_clip_grad_value():
    ps = params([3.0, -0.5, -2.0])
    assert U.clip_grad_value_(ps, 1.0) is None
    assert_values(ps[0].grad, [1.0, -0.5, -1.0])


def test_vectors():
    m = nn.Linear(2, 2)
    before = U.parameters_to_vector(m.parameters())
    assert before.shape == (6,) and before.requires_grad
    U.vector_to_parameters(T.arange(6.0), m.parameters())
    assert_values(m.weight, [[0.0, 1.0], [2.0, 3.0]])
    assert_values(m.bias, [4.0, 5.0])
    assert isinstance(m.weight, nn.Parameter)
    with pytest.raises(TypeError, match="^expected torch.Tensor, but got: int"):
        U.vector_to_parameters(3, m.parameters())
