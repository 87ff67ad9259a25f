"""L-BFGS: a quasi-Newton method that estimates the curvature from the last few steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradiron as torch

from .._core import Tensor
from .optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["LBFGS"]


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic with these values and slopes at two points has its minimum, kept inside the bounds."""
    low, high = bounds or ((x1, x2) if x1 <= x2 else (x2, x1))
    slope = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = slope**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    root = square.sqrt()
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + root - slope) / (g2 - g1 + 2 * root))
    else:
        best = x1 - (x1 - x2) * ((g1 + root - slope) / (g1 - g2 + 2 * root))
    return min(max(best, low), high)


class _Point:
    """A step along the direction: its length, the loss there, the gradient, and the slope along the direction."""

    def __init__(self, t: Any, loss: Any, grad: Tensor, slope: Any) -> None:
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


class _StrongWolfe:
    """Looks along a direction for a step that lowers the loss enough and flattens the slope."""

    def __init__(
        self, evaluate: Callable[[Any], tuple[Any, Tensor]], d: Tensor, start: _Point, c1: float = 1e-4, c2: float = 0.9
    ) -> None:
        self.evaluate, self.d, self.start, self.c1, self.c2 = evaluate, d, start, c1, c2
        self.looks, self.rounds, self.done = 0, 0, False

    def at(self, t: Any) -> _Point:
        self.looks += 1
        loss, grad = self.evaluate(t)
        return _Point(t, loss, grad, grad.dot(self.d))

    def is_high(self, point: _Point) -> Any:
        return point.loss > self.start.loss + self.c1 * point.t * self.start.slope

    def is_flat(self, point: _Point) -> Any:
        return abs(point.slope) <= -self.c2 * self.start.slope

    def bracket(self, t: Any, most: int) -> list[_Point]:
        """A good step, or two between which there is one: longer and longer ones are tried."""
        before, point = self.start, self.at(t)
        while self.rounds < most:
            if self.is_high(point) or (self.rounds > 1 and point.loss >= before.loss):
                return [before, point]
            if self.is_flat(point):
                self.done = True
                return [point]
            if point.slope >= 0:
                return [before, point]
            bounds = (point.t + 0.01 * (point.t - before.t), point.t * 10)
            t = _cubic_interpolate(before.t, before.loss, before.slope, point.t, point.loss, point.slope, bounds)
            before, point = point, self.at(t)
            self.rounds += 1
        return [self.start, point]

    def zoom(self, bracket: list[_Point], most: int, tolerance_change: float) -> _Point:
        """The better end of a bracket that was narrowed until it is good, or too short."""
        length = self.d.abs().max()
        stuck = False
        low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
        while not self.done and self.rounds < most:
            a, b = bracket
            if abs(b.t - a.t) * length < tolerance_change:
                break
            t, stuck = self.between(a, b, stuck)
            point = self.at(t)
            self.rounds += 1
            if self.is_high(point) or point.loss >= bracket[low].loss:
                bracket[high] = point
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            if self.is_flat(point):
                self.done = True
            elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
        return bracket[low]

    @staticmethod
    def between(a: _Point, b: _Point, stuck: bool) -> tuple[Any, bool]:
        """The next step to try. One that comes near an end for the second time is moved a tenth inwards."""
        t = _cubic_interpolate(a.t, a.loss, a.slope, b.t, b.loss, b.slope)
        first, last = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) >= margin:
            return t, False
        if not (stuck or t >= last or t <= first):
            return t, True
        return (last - margin if abs(t - last) < abs(t - first) else first + margin), False


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Any], tuple[Any, Tensor]],
    x: Any,
    t: Any,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Any, Tensor, Any, int]:
    """The loss and gradient after a good step along `d`, its length, and how often `obj_func(x, t, d)` was called."""
    start = _Point(0, f, g.clone(memory_format=torch.contiguous_format), gtd)
    search = _StrongWolfe(lambda length: obj_func(x, length, d), d, start, c1, c2)
    best = search.zoom(search.bracket(t, max_ls), max_ls, tolerance_change)
    return best.loss, best.grad, best.t, search.looks


class LBFGS(Optimizer):
    """L-BFGS: a quasi-Newton method with limited memory.

    `step` needs a closure, which it calls several times. All parameters form a single group.

    Args:
        params: parameters to optimize.
        lr: step length, or initial step length of a line search. Default: `1`
        max_iter: maximal number of iterations per `step`. Default: `20`
        max_eval: maximal number of function evaluations per `step`; `max_iter * 5 // 4` if `None`.
        tolerance_grad: stop when no element of the gradient is larger. Default: `1e-7`
        tolerance_change: stop when the change of parameters and loss is smaller. Default: `1e-9`
        history_size: number of past updates that are kept. Default: `100`
        line_search_fn: `"strong_wolfe"`, or `None` for steps of fixed length.
        maximize: maximize the objective instead of minimizing it. Default: `False`

    Examples:
        >>> x = torch.zeros(2, requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - torch.tensor([1.0, 2.0])) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        5.0
        >>> x.detach().round(decimals=3)
        tensor([1., 2.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)
        return self._numel_cache

    def _gather_flat_grad(self) -> Tensor:
        views = []
        for p in self._params:
            view = p.new_zeros(p.numel()) if p.grad is None else p.grad.to_dense().reshape(-1)
            views.append(torch.view_as_real(view).reshape(-1) if view.is_complex() else view)
        flat = torch.cat(views, 0)
        return flat.neg_() if self.param_groups[0].get("maximize", False) else flat

    def _add_grad(self, step_size: Any, update: Tensor) -> None:
        offset = 0
        for p in self._params:
            part = torch.view_as_real(p) if p.is_complex() else p
            part.add_(update[offset : offset + part.numel()].view_as(part), alpha=step_size)
            offset += part.numel()

    def _clone_param(self) -> list[Tensor]:
        return [p.clone(memory_format=torch.contiguous_format) for p in self._params]

    def _set_param(self, params_data: list[Tensor]) -> None:
        for p, data in zip(self._params, params_data, strict=True):
            p.copy_(data)

    def _loss(self, closure: Callable[[], Any]) -> float:
        loss = float(closure())
        return -loss if self.param_groups[0].get("maximize", False) else loss

    def _directional_evaluate(self, closure: Callable[[], Any], x: list[Tensor], d: Tensor, t: Any) -> tuple[float, Tensor]:
        self._add_grad(t, d)
        loss = self._loss(closure)
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    @torch.no_grad()
    def step(self, closure: Any) -> Any:  # type: ignore[override]
        """Iterate until convergence or a limit, and return the loss of the first evaluation.

        Args:
            closure: function that clears the gradients, computes the loss, calls `backward` on it and returns it.
        """
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        closure = torch.enable_grad()(closure)
        if not self._params:
            return closure()
        group = self.param_groups[0]
        # The state belongs to the optimizer. It is stored under the first parameter, so that `state_dict` holds it.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        orig_loss = closure()
        loss = -float(orig_loss) if group.get("maximize", False) else float(orig_loss)
        evals = 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return orig_loss
        d, t = state.get("d"), state.get("t")
        curvature: dict[str, Any] = {name: state.get(name) for name in ("old_dirs", "old_stps", "ro", "H_diag")}
        prev_flat_grad, prev_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        lr = _to_scalar(group["lr"])

        for n_iter in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = flat_grad.neg()
                curvature = {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1}
                t = min(1.0, 1.0 / flat_grad.abs().sum()) * lr
            else:
                d = self._direction(state, curvature, d, t, flat_grad, prev_flat_grad)
                t = lr
            if prev_flat_grad is None:
                prev_flat_grad = flat_grad.clone(memory_format=torch.contiguous_format)
            else:
                prev_flat_grad.copy_(flat_grad)
            prev_loss = loss
            slope = flat_grad.dot(d)
            if slope > -group["tolerance_change"]:
                break

            looks, flat = 0, False
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = _Point(0, loss, flat_grad.clone(memory_format=torch.contiguous_format), slope)
                evaluate = partial(self._directional_evaluate, closure, self._clone_param(), d)
                search, most = _StrongWolfe(evaluate, d, start), group["max_eval"] - evals
                best = search.zoom(search.bracket(t, most), most, tolerance_change=1e-9)
                loss, flat_grad, t, looks = best.loss, best.grad, best.t, search.looks
                self._add_grad(t, d)
                flat = flat_grad.abs().max() <= group["tolerance_grad"]
            else:
                self._add_grad(t, d)
                # No evaluation is needed after the last iteration.
                if n_iter != group["max_iter"]:
                    loss = self._loss(closure)
                    flat_grad = self._gather_flat_grad()
                    flat = flat_grad.abs().max() <= group["tolerance_grad"]
                    looks = 1
            evals += looks
            state["func_evals"] += looks
            if n_iter == group["max_iter"] or evals >= group["max_eval"] or flat:
                break
            if d.mul(t).abs().max() <= group["tolerance_change"] or abs(loss - prev_loss) < group["tolerance_change"]:
                break

        state.update({"d": d, "t": t, **curvature, "prev_flat_grad": prev_flat_grad, "prev_loss": prev_loss})
        return orig_loss

    def _direction(
        self, state: dict[str, Any], curvature: dict[str, Any], d: Tensor, t: Any, grad: Tensor, prev_grad: Tensor
    ) -> Tensor:
        """The gradient times the inverse of the curvature, as far as it is remembered; the last step joins it first."""
        dirs, stps, ro = curvature["old_dirs"], curvature["old_stps"], curvature["ro"]
        y, s = grad.sub(prev_grad), d.mul(t)
        ys = y.dot(s)
        if ys > 1e-10:
            if len(dirs) == self.param_groups[0]["history_size"]:
                for old in (dirs, stps, ro):
                    old.pop(0)
            dirs.append(y)
            stps.append(s)
            ro.append(1.0 / ys)
            curvature["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * self.param_groups[0]["history_size"])
        q = grad.neg()
        for i in range(len(dirs) - 1, -1, -1):
            al[i] = stps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-al[i])
        r = torch.mul(q, curvature["H_diag"])
        for i in range(len(dirs)):
            r.add_(stps[i], alpha=al[i] - dirs[i].dot(r) * ro[i])
        return r
