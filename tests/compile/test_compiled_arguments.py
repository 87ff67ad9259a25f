"""Arguments that change from call to call: compiled functions give what they give as they are."""

import gradiron as torch
import pytest


def vector(*values):
    return torch.tensor([float(value) for value in values])


class Holder:
    pass


KEPT = vector(1, 2)
HOLDER = Holder()
HOLDER.pair = (KEPT,)
FEW = vector(3)


def reads_an_argument_elsewhere(x):
    return HOLDER.pair[0] * 2 + x


def gives_back_its_list(xs):
    return xs, xs[0] * 2


def scales(x, n):
    return x * n


def decides_by_shape(x):
    y = x * 2
    return y if y.shape[0] > 1 else y + 1


def asks_for_strides(x):
    return x.stride(), x.is_contiguous(), x * 2


def asks_for_leaves(x):
    return x.is_leaf, x.requires_grad, (x * 2).detach()


def asks_for_identity(a, b):
    return a is b, a * b


def shows_its_shape(x):
    return f"{x.shape} {x.dtype}", x + 1


def writes_in_place(x):
    x.add_(1)
    return x


def gives_views(x):
    return x.view(-1), x.t()


CALLS = [
    (reads_an_argument_elsewhere, lambda k: (KEPT if k < 4 else vector(5, 5),)),
    (gives_back_its_list, lambda k: ([vector(k)],)),
    (scales, lambda k: (vector(1), k % 3)),
    (decides_by_shape, lambda k: (vector(*range(1 + k % 2)),)),
    (asks_for_strides, lambda k: (torch.arange(6.0).reshape(2, 3) if k % 2 else torch.arange(6.0).reshape(3, 2).t(),)),
    (asks_for_leaves, lambda k: (vector(1, 2) if k % 2 else vector(1, 2).requires_grad_() * 1,)),
    (asks_for_identity, lambda k: (FEW, FEW) if k % 2 else (FEW, vector(3))),
    (shows_its_shape, lambda k: (vector(*range(1 + k % 3)),)),
    (writes_in_place, lambda k: (vector(k),)),
    (gives_views, lambda k: (torch.ones(2, 2) * k,)),
]


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=lambda part: getattr(part, "__name__", ""))
def test_each_call_is_that_of_its_arguments(function, arguments):
    compiled = torch.compile(function)
    for k in range(12):
        assert repr(compiled(*arguments(k))) == repr(function(*arguments(k)))
    reasons = compiled._compiled.reasons
    assert compiled._compiled.replays or [reason.words for reason in reasons] == [
        "it returns or stores a list that it was given"
    ]
