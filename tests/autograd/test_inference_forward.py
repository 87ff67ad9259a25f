"""Forward mode over tensors of inference mode: an operator on nothing else follows no tangents; transforms have their own."""

from library import T, assert_values

fwd = T.autograd.forward_ad


def made():
    with T.inference_mode():
        return T.tensor([1.0, 2.0])


def pushed(function, x, tangent):
    with fwd.dual_level():
        return fwd.unpack_dual(function(fwd.make_dual(x, tangent))).tangent


def test_two_of_them_are_no_pair():
    a = made()
    assert pushed(lambda x: x, a, a) is None and pushed(lambda x: x * T.ones(2), a, a) is None


def test_what_sees_only_them_moves_nothing():
    a, one = made(), T.ones(2)
    assert_values(pushed(lambda x: x, a, one), [1.0, 1.0])
    for function in (T.exp, lambda x: x * x, lambda x: x.view(2, 1), lambda x: x[0], lambda x: x.clamp(0, 5)):
        assert pushed(function, a, one) is None
    # A number counts as a tensor of its own.
    assert_values(pushed(lambda x: x * 2, a, one), [2.0, 2.0])
    assert_values(pushed(lambda x: x * T.ones(2), a, one), [1.0, 1.0])
    assert_values(pushed(lambda x: x * x, one, a), [2.0, 4.0])


def test_inside_of_a_transform_they_move():
    a = made()
    assert_values(T.func.jvp(lambda x: x.exp() * 0 + x * x * x, (a,), (a,))[1], [3.0, 24.0])
    assert_values(T.func.jacfwd(lambda x: x * x)(a), [[2.0, 0.0], [0.0, 4.0]])


def test_an_angle_moves_by_one_fraction():
    y = T.tensor([-1.375, 0.3, 1.7], dtype=T.float64)
    for (t, u), expected in (((None, 2 * y), -1.0), ((2 * y, None), 1.0), ((y, y), 0.0)):
        with fwd.dual_level():
            a = y if t is None else fwd.make_dual(y, t)
            b = y if u is None else fwd.make_dual(y.clone(), u)
            assert fwd.unpack_dual(T.atan2(a, b)).tangent.tolist() == [expected] * 3
