"""Samplers of the operators on matrices: squares, rectangles, systems of equations, and matrices that may be divided by."""

from hypothesis import strategies as st
from samples import SEEDS, values

from library import T

LEAD = st.sampled_from([(), (), (2,), (2, 1)])


def on_host(*samplers):
    """One of the samplers, with a function that takes operands from anywhere, of any width: factorisations have no shaders, and
    no kernels for halves."""

    def sample(draw):
        operands, call = draw(st.sampled_from(samplers))(draw)

        def run(*xs):
            to = xs[0]
            here = [x if x.is_meta else x.cpu() for x in xs]
            made = call(*(x.to(T.float32) if x.is_floating_point() and x.dtype.itemsize == 2 else x for x in here))
            back = lambda y: y.to(to.device, to.dtype) if y.is_floating_point() else y.to(to.device)  # noqa: E731
            return back(made) if T.is_tensor(made) else tuple(back(y) for y in made)

        return operands, run

    return sample


def squares(call):
    def sample(draw):
        n = draw(st.integers(1, 3))
        return [values((*draw(LEAD), n, n), draw(SEEDS))], call

    return sample


def rectangles(call):
    def sample(draw):
        m, n = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        return [values((*draw(LEAD), m, n), draw(SEEDS))], call

    return sample


def right_sides(call):
    """Matrices, what a product with them gives on either side, and on which."""

    def sample(draw):
        n, columns, left = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.booleans())
        lead = draw(LEAD)
        own = draw(st.sampled_from([lead, (), (1,) * len(lead)]))
        sides = (*lead, n, columns) if left else (*lead, columns, n)
        return [values((*own, n, n), draw(SEEDS)), values(sides, draw(SEEDS))], lambda x, y: call(x, y, left)

    return sample


def unit(x):
    return T.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def steep(x):
    """Far from singular."""
    return x * 0.3 + 2 * unit(x)


def positive(x):
    return x @ x.mH + unit(x)


def symmetric(x):
    return x + x.mH


def apart(x):
    """With singular values, or eigenvalues of the symmetric part, that are far from one another."""
    n = min(x.shape[-2:])
    scale = T.arange(1, n + 1, dtype=x.dtype)
    whole = unit(x)
    whole = whole[..., :n, :] if x.shape[-2] == n else whole[..., :n]
    lines = scale[:, None] if x.shape[-2] == n else scale
    return x * 0.1 + 2 * whole * lines


def signless(values, vectors):
    """Values, and vectors whatever their signs."""
    return values, vectors * vectors


def phaseless(u, s, vh):
    return u * u, s, (u * s[..., None, :]) @ vh, vh * vh


def of_any_phase(values, vectors):
    """Values, and what does not depend on the phases of vectors."""
    return T.view_as_real(values), vectors.abs() ** 2


def parts(z):
    """Complex numbers as pairs of real ones."""
    return T.view_as_real(z)
