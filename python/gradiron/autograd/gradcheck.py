"""`gradcheck` and `gradgradcheck`, which compare derivatives with finite differences."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import gradiron

from . import forward_ad
from ._jacobian import (
    Function,
    Tensors,
    as_tuple,
    backward_mode,
    differentiable,
    forward_mode,
    gradients,
    is_float,
    matrix,
    numerical,
    numerical_along,
    units,
    vector_like,
)
from ._old_jacobians import get_analytical_jacobian, get_numerical_jacobian, get_numerical_jacobian_wrt_specific_input
from ._parts import in_parts, is_complex, looks, of_complex

if TYPE_CHECKING:
    from gradiron import Tensor

FORWARD = "computed with forward mode "  # what messages say of forward mode
BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."
BATCHED_FORWARD = "gradcheck failed while testing batched gradient computation with forward-mode AD."

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` if a derivative is wrong.

    Examples:
        >>> x = torch.ones(1, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x * x.detach(), x)
        Traceback (most recent call last):
        GradcheckError: Jacobian mismatch
    """


@dataclass(frozen=True)
class Settings:
    """The keyword arguments of `gradcheck`."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool
    masked: bool | None


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of a function against central finite differences.

    Inputs that require gradients should be float64.

    Args:
        func: function of tensors that returns one or several tensors.
        inputs: tensor or tuple of tensors.
        eps: step of the finite differences. Default: `1e-6`
        atol: absolute tolerance. Default: `1e-5`
        rtol: relative tolerance. Default: `1e-3`
        raise_exception: raise an error instead of returning false. Default: `True`
        nondet_tol: by how much two backward passes may differ. Default: `0.0`
        check_undefined_grad: check that missing gradients of outputs count as zeros. Default: `True`
        check_grad_dtypes: check the dtypes of gradients. Default: `False`
        check_batched_grad: check gradients batched by `vmap`. Default: `False`
        check_batched_forward_grad: check tangents batched by `vmap`. Default: `False`
        check_forward_ad: check forward mode too. Default: `False`
        check_backward_ad: check reverse mode. Default: `True`
        fast_mode: compare random projections of the Jacobians only. Default: `False`
        masked: accept sparse inputs whose unspecified elements have no gradient.

    Returns:
        True if all checks pass.

    Raises:
        GradcheckError: if one fails and `raise_exception` is true.

    Examples:
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x.exp(), (x,))
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    settings = Settings(
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_grad_dtypes,
        check_batched_grad,
        check_batched_forward_grad,
        check_forward_ad,
        check_backward_ad,
        fast_mode,
        masked,
    )
    try:
        _Check(*in_parts(func, as_tuple(inputs)), settings).run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of a function against finite differences of its gradients.

    Args:
        func: function of tensors that returns one or several tensors.
        inputs: tensor or tuple of tensors.
        grad_outputs: gradients of the outputs; random if `None`.
        eps: step of the finite differences. Default: `1e-6`
        atol: absolute tolerance. Default: `1e-5`
        rtol: relative tolerance. Default: `1e-3`
        gen_non_contig_grad_outputs: make random `grad_outputs` noncontiguous. Default: `False`
        raise_exception: raise an error instead of returning false. Default: `True`
        nondet_tol: by how much two backward passes may differ. Default: `0.0`
        check_undefined_grad: check that missing gradients of outputs count as zeros. Default: `True`
        check_grad_dtypes: check the dtypes of gradients. Default: `False`
        check_batched_grad: check gradients batched by `vmap`. Default: `False`
        check_fwd_over_rev: check forward over reverse mode. Default: `False`
        check_rev_over_rev: check reverse over reverse mode. Default: `True`
        fast_mode: compare random projections of the Jacobians only. Default: `False`
        masked: accept sparse inputs whose unspecified elements have no gradient. Default: `False`

    Returns:
        True if all checks pass.

    Examples:
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x**3, (x,))
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, asked in (("undefined", check_undefined_grad), ("batched", check_batched_grad)):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting check_{name}_grad=True requires check_rev_over_rev to be True")
    tupled = as_tuple(inputs)
    if grad_outputs is None:
        given = tuple(_random_gradient(out, gen_non_contig_grad_outputs) for out in differentiable(func(*tupled)))
    else:
        given = as_tuple(grad_outputs)
    wanted = [isinstance(x, gradiron.Tensor) and x.requires_grad for x in tupled + given]

    def gradient(*arguments: Any) -> Tensors:
        # Forward mode hands detached tensors in: the graph is to be built all the same.
        marked = [x.requires_grad_() if want else x for x, want in zip(arguments, wanted, strict=True)]
        xs, gs = marked[: len(tupled)], marked[len(tupled) :]
        sources = [x for x, want in zip(xs, wanted, strict=False) if want]
        outputs = differentiable(func(*xs))
        if not outputs:
            return ()
        found = gradiron.autograd.grad(outputs, sources, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient,
        tupled + given,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _random_gradient(out: Tensor, noncontiguous: bool) -> Tensor:
    dtype = out.dtype if out.dtype.is_floating_point or is_complex(out) else gradiron.float64
    return gradiron.testing.make_tensor(
        out.shape, dtype=dtype, device=out.device, low=-1, high=1, requires_grad=True, noncontiguous=noncontiguous
    )


class _Check:
    """One run of `gradcheck`."""

    def __init__(self, func: Function, inputs: Tensors, settings: Settings) -> None:
        self.func, self.inputs, self.settings = func, inputs, settings
        self.numbers = _checked_inputs(inputs)
        self.sources: list[Tensor] = [inputs[i] for i in self.numbers]

    def outputs(self) -> list[Tensor]:
        """The outputs that the derivatives are of."""
        return differentiable(self.func(*self.inputs))

    def float_outputs(self) -> list[Tensor]:
        """The outputs that forward mode tells of: these need no graph."""
        return [out for out in as_tuple(self.func(*self.inputs)) if is_float(out)]

    def run(self) -> None:
        outputs = self.outputs()
        if not outputs:
            self.check_constant()
            return
        if self.settings.fast_mode:
            self.check_projections(outputs)
        else:
            self.check_jacobians(outputs)
        if self.settings.check_forward_ad and self.settings.check_undefined_grad:
            self.check_undefined_tangents()
        if self.settings.check_batched_forward_grad:
            for number, position in enumerate(self.numbers):
                self.check_batched_tangents(number, position)
        if not self.settings.check_backward_ad:
            return
        if self.settings.check_batched_grad:
            for number, output in enumerate(outputs):
                self.check_batched(number, output)
        self.check_zero_gradients(outputs)
        if self.settings.check_undefined_grad:
            self.check_undefined()

    # --- the Jacobians ---

    def check_constant(self) -> None:
        for x in self.sources:
            for jacobian in numerical(self.float_outputs, x, self.settings.eps):
                if (jacobian != 0).any().item():
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def check_jacobians(self, outputs: list[Tensor]) -> None:
        settings = self.settings
        if settings.check_backward_ad:
            all_measured = [numerical(self.outputs, x, settings.eps) for x in self.sources]
            for i, output in enumerate(outputs):
                jacobians = self.analytical(output, lambda output: backward_mode(output, self.sources))
                for j, a in enumerate(jacobians):
                    self.compare(a, all_measured[j][i], i, j)
        if settings.check_forward_ad:
            for j, position in enumerate(self.numbers):
                x = self.inputs[position]
                rows = [forward_mode(self.func, self.inputs, position, u) for u in units(x)]
                for i, n in enumerate(numerical(self.float_outputs, x, settings.eps)):
                    a = gradiron.stack([row[i] for row in rows]) if rows else n
                    self.compare(a, n, i, j, FORWARD)

    def check_projections(self, outputs: list[Tensor]) -> None:
        """Compares `v · J · u` for random directions u of the inputs and v of the outputs; in forward mode `J · u`."""
        settings, draw = self.settings, random.Random(0)
        us = [_direction(x, draw) for x in self.sources]
        if settings.check_backward_ad:
            vs = [_direction(out, draw) for out in outputs]
            slopes = [numerical_along(self.outputs, x, u, settings.eps) for x, u in zip(self.sources, us, strict=True)]
            for i, (output, v) in enumerate(zip(outputs, vs, strict=True)):
                jacobians = self.analytical(output, partial(self.projected, v=v))
                for j, (column, u) in enumerate(zip(jacobians, us, strict=True)):
                    a, n = (column.reshape(-1) * u).sum(), (slopes[j][i] * v).sum()
                    self.compare(a, n, i, j, scale=_spread(u, v))
        if settings.check_forward_ad:
            for j, (position, u) in enumerate(zip(self.numbers, us, strict=True)):
                measured = numerical_along(self.float_outputs, self.inputs[position], u, settings.eps)
                tangents = forward_mode(self.func, self.inputs, position, u)
                for i, (tangent, slope) in enumerate(zip(tangents, measured, strict=True)):
                    self.compare(tangent, slope, i, j, FORWARD, _spread(u))

    def projected(self, output: Tensor, v: Tensor) -> list[list[Tensor | None]]:
        return [[g] for g in gradients(output, self.sources, v.reshape(output.shape))]

    def analytical(self, output: Tensor, columns_of: Callable[[Tensor], list[list[Tensor | None]]]) -> list[Tensor]:
        """The matrices of gradients, checked for type, size and repeatability."""
        first, second = columns_of(output), columns_of(output)
        dtypes_agree = sizes_agree = True
        jacobians, again = [], []
        for columns, repeated, x in zip(first, second, self.sources, strict=True):
            for g in columns:
                if g is not None:
                    if g.layout != x.layout:
                        raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
                    dtypes_agree &= g.dtype == x.dtype
                    sizes_agree &= g.shape == x.shape
            jacobians.append(matrix(columns, x, x.dtype))
            again.append(matrix(repeated, x, x.dtype))
        if not dtypes_agree and self.settings.check_grad_dtypes:
            raise GradcheckError("Gradient has dtype mismatch")
        if not sizes_agree:
            raise GradcheckError("Analytical gradient has incorrect size")
        for a, b in zip(jacobians, again, strict=True):
            if a.numel() and ((a - b).abs() > self.settings.nondet_tol).any().item():
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                    "times gives different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {self.settings.nondet_tol}."
                )
        return jacobians

    def compare(self, a: Tensor, n: Tensor, i: int, j: int, mode: str = "", scale: float = 1.0) -> None:
        if _allclose(a, n, self.settings.rtol, self.settings.atol * scale):
            return
        fast = self.settings.fast_mode
        whole_a, whole_n = self.whole(i, j, mode) if fast else (a, n)
        prefix, whole_a, whole_n = self.at_fault(whole_a, whole_n, i, j, mode)
        shown_a, shown_n = (a, n) if fast else (whole_a, whole_n)
        raise GradcheckError(
            f"{prefix}Jacobian {mode}mismatch for output {i} with respect to input {j},\n"
            f"numerical:{shown_n}\nanalytical:{shown_a}\n" + (self.in_slow_mode(whole_a, whole_n) if fast else "")
        )

    def at_fault(self, a: Tensor, n: Tensor, i: int, j: int, mode: str) -> tuple[str, Tensor, Tensor]:
        """Return the first part of complex Jacobians that differs, and its name."""
        outputs = self.float_outputs() if mode else self.outputs()
        kinds = (of_complex(self.sources[j]), of_complex(outputs[i]), bool(mode))
        pairs = [(prefix, one, other) for (prefix, one), (_, other) in zip(looks(a, *kinds), looks(n, *kinds), strict=True)]
        settings = self.settings
        return next((p for p in pairs if not _allclose(p[1], p[2], settings.rtol, settings.atol)), pairs[-1])

    def whole(self, i: int, j: int, mode: str) -> tuple[Tensor, Tensor]:
        """For a finding of fast mode: the Jacobians themselves, analytical and numerical."""
        x = self.sources[j]
        if mode:
            n = numerical(self.float_outputs, x, self.settings.eps)[i]
            return gradiron.stack([forward_mode(self.func, self.inputs, self.numbers[j], u)[i] for u in units(x)]), n
        n = numerical(self.outputs, x, self.settings.eps)[i]
        return matrix(backward_mode(self.outputs()[i], [x])[0], x, x.dtype), n

    def in_slow_mode(self, a: Tensor, n: Tensor) -> str:
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode: a projection stands for the whole matrix. These are the jacobians in slow mode:\n\n"
            f"Numerical:\n {n}\nAnalytical:\n{a}\n\n"
            f"The max per-element difference (slow mode) is: {(n - a).abs().max().item()}.\n"
        )
        if _allclose(a, n, self.settings.rtol, self.settings.atol):
            text += "\nThese are close: run with fast_mode=False, or allow more with atol.\n"
        return text

    # --- further properties of a good derivative ---

    def check_zero_gradients(self, outputs: list[Tensor]) -> None:
        zeros = [gradiron.zeros_like(out) for out in outputs]
        found = gradiron.autograd.grad(outputs, self.sources, zeros, retain_graph=True, allow_unused=True)
        for g, x in zip(found, self.sources, strict=True):
            if g is None:
                continue
            if (g.abs() > (1e-8 if self.settings.masked else 0.0)).any().item() or (g != g).any().item():
                raise GradcheckError("backward not multiplied by grad_output")
            for name, one, other in (
                ("type", g.dtype, x.dtype),
                ("device", g.device, x.device),
                ("size", g.shape, x.shape),
            ):
                if one != other:
                    raise GradcheckError(f"grad is incorrect {name}")

    def check_undefined(self) -> None:
        """No gradient is as good as zeros: for all outputs at once, and for each alone."""
        count = len(self.outputs())
        cases = [set(range(count))] + [{i} for i in range(count) if count > 1]
        for missing in cases:
            outputs = [_forgets().apply(out) if i in missing else out for i, out in enumerate(self.outputs())]
            zeros = [gradiron.zeros_like(out) for out in outputs]
            try:
                found = gradiron.autograd.grad(outputs, self.sources, zeros, allow_unused=True)
            except RuntimeError as error:
                _warn_of_undefined()
                raise GradcheckError("Expected backward function to handle undefined output grads.") from error
            if any(g is not None and (g != 0).any().item() for g in found):
                _warn_of_undefined()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
                )

    def check_undefined_tangents(self) -> None:
        """No tangent is as good as a tangent of zeros, for each input beside the others."""
        draw = random.Random(0)
        directions = [_direction(x, draw).reshape(x.shape) for x in self.sources]

        def tangents(at: int, there: bool) -> list[Tensor | None]:
            with forward_ad.dual_level():
                given = [x.detach() if isinstance(x, gradiron.Tensor) else x for x in self.inputs]
                for number, (position, direction) in enumerate(zip(self.numbers, directions, strict=True)):
                    if number != at or there:
                        moved = gradiron.zeros_like(direction) if number == at else direction.clone()
                        given[position] = forward_ad.make_dual(given[position], moved)
                found = as_tuple(self.func(*given))
                return [forward_ad.unpack_dual(out).tangent for out in found if is_float(out)]

        for at in range(len(self.numbers)):
            for i, (one, other) in enumerate(zip(tangents(at, True), tangents(at, False), strict=True)):
                if one is not None and other is not None and not _allclose(one, other, 1e-5, 1e-8):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ",
                        i,
                        " when input: ",
                        self.sources[at],
                        " has an undefined tangent value. ",
                        " Got: ",
                        one,
                        " but expected: ",
                        other,
                    )

    def check_batched_tangents(self, number: int, position: int) -> None:
        """Several directions at once are to give what they give one by one."""
        from ..func._function import without_rules

        x = self.inputs[position]
        batch = gradiron.stack([gradiron.randn_like(x.detach()) for _ in range(2)])
        one_by_one = [forward_mode(self.func, self.inputs, position, v) for v in batch]
        try:
            with without_rules():
                together = gradiron.vmap(lambda v: tuple(forward_mode(self.func, self.inputs, position, v)))(batch)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD}") from error
        for i, (got, parts) in enumerate(zip(together, zip(*one_by_one, strict=True), strict=True)):
            expected = gradiron.stack(parts)
            if not _allclose(got, expected, 1e-5, 1e-8):
                raise GradcheckError(
                    f"For output {i} and input {number}:\n\n{BATCHED_FORWARD}\n\nGot:\n{got}\n\nExpected:\n{expected}"
                )

    def check_batched(self, number: int, output: Tensor) -> None:
        """Several gradients at once are to be what they are one by one."""
        batch = gradiron.stack([gradiron.randn_like(output.detach()) for _ in range(2)])
        one_by_one = [gradients(output, self.sources, g) for g in batch]
        try:
            together = gradiron.autograd.grad(
                output, self.sources, batch, retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
        for j, (x, got) in enumerate(zip(self.sources, together, strict=True)):
            rows: list[Any] = [gradiron.zeros_like(x) if row[j] is None else row[j] for row in one_by_one]
            expected = gradiron.stack(rows)
            if not _allclose(gradiron.zeros_like(expected) if got is None else got, expected, 1e-5, 1e-8):
                raise GradcheckError(f"For output {number} and input {j}:\n\n{BATCHED}\n\nGot:\n{got}\n\nExpected:\n{expected}")


@cache
def _forgets() -> Any:
    """The identity, which has no gradient to give; made late, as `autograd` may still be on its way in."""

    class Forgets(gradiron.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> None:
            return None

    return Forgets


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
        "existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=5,
    )


def _checked_inputs(inputs: Tensors) -> list[int]:
    """The numbers of the inputs that require a gradient."""
    numbers = []
    for number, x in enumerate(inputs):
        if not (isinstance(x, gradiron.Tensor) and x.requires_grad):
            continue
        numbers.append(number)
        if not x.dtype.is_floating_point:
            raise NotImplementedError(f"gradcheck of an input of type {x.dtype} is missing here")
        if x.dtype != gradiron.float64:
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not numbers:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    return numbers


def _direction(x: Tensor, draw: random.Random) -> Tensor:
    """A random vector of length one with positive components, drawn without touching the user's generator."""
    values = [draw.random() for _ in range(x.numel())]
    length = sum(value * value for value in values) ** 0.5
    return vector_like(x, [value / length for value in values])


def _spread(*directions: Tensor) -> float:
    """By how much errors of the elements of a Jacobian may add up in its projection."""
    return float(math.prod(u.sum().item() for u in directions))


def _allclose(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    if a.dtype != b.dtype:
        dtype = gradiron.promote_types(a.dtype, b.dtype)
        a, b = a.to(dtype), b.to(dtype)
    return bool(((a == b) | ((a - b).abs() <= atol + (b * rtol).abs())).all().item())
