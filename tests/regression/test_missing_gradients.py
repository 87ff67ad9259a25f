"""A derivative may give None: the nodes before it must have their turn all the same, as custom functions and hooks see it."""

from library import T, leaf


def test_a_missing_gradient_gives_its_node_a_turn_all_the_same():
    seen = []

    class Forgets(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    class Looks(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(g.tolist())
            return g

    x = leaf([1.0, 2.0])
    Forgets.apply(Looks.apply(x * 2) * 3).sum().backward()
    assert seen == [[0.0, 0.0]] and x.grad.tolist() == [0.0, 0.0]
