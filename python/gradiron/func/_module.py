"""Modules called with other parameters than their own.

Any object will do as a module if its tensors are attributes under dotted names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._core import Tensor, stack

# Marks a name that a module does not have.
_NOTHING = object()


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given parameters and buffers in place of its own.

    Args:
        module: module to call; it is left unchanged.
        parameter_and_buffer_dicts: dict from names to tensors, or several dicts with different names.
        args: argument or tuple of arguments of the call.
        kwargs: keyword arguments of the call.
        tie_weights: replace a tensor that has several names under all of them. Default: `True`
        strict: require exactly the names of the module's parameters and buffers. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> parameters = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
        >>> torch.func.functional_call(model, parameters, torch.ones(3, 2))
        tensor([[2.],
                [2.],
                [2.]])
    """
    given = _merged(parameter_and_buffer_dicts)
    own = _names(module)
    if strict:
        _check_names(given, own, type(module).__name__)
    if tie_weights:
        given = _tied(given, own)
    positional = args if isinstance(args, tuple) else () if args is None else (args,)
    # Tensors that the call itself assigns are returned in the dict.
    out = parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, dict) else {}
    with _replaced(module, given, out):
        return module(*positional, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, Sequence):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def _names(module: Any) -> dict[str, Any]:
    """The module's own tensors by name, a shared one under each of its names."""
    found: dict[str, Any] = {}
    for method in ("named_parameters", "named_buffers"):
        listing = getattr(module, method, None)
        if listing is not None:
            try:
                found.update(listing(remove_duplicate=False))
            except TypeError:
                found.update(listing())
    return found


def _check_names(given: dict[str, Any], own: dict[str, Any], kind: str) -> None:
    missing = sorted(set(own) - set(given))
    unexpected = sorted(set(given) - set(own))
    parts = []
    if unexpected:
        parts.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        parts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if parts:
        raise RuntimeError(f"Error(s) in reparametrizing for {kind}:\n\t" + "\n\t".join(parts))


def _tied(given: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    by_tensor: dict[int, list[str]] = {}
    for name, value in own.items():
        by_tensor.setdefault(id(value), []).append(name)
    out = dict(given)
    for names in by_tensor.values():
        values = {name: given[name] for name in names if name in given}
        if len({id(v) for v in values.values()}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(values)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for value in list(values.values())[:1]:
            out.update(dict.fromkeys(names, value))
    return out


@contextmanager
def _replaced(module: Any, given: dict[str, Any], out: dict[str, Any]) -> Iterator[None]:
    """The tensors in their places; the module's own ones come back, whatever happens."""
    before: list[tuple[Any, str, str, Any]] = []
    try:
        for name, value in given.items():
            *path, last = name.split(".")
            owner = module
            for part in path:
                owner = getattr(owner, part) if not _holds(owner, part) else owner[_key(owner, part)]
            before.append((owner, last, name, _exchange(owner, last, value)))
        yield
    finally:
        for owner, last, name, value in reversed(before):
            now = _exchange(owner, last, value)
            if name in out:
                out[name] = now


def _holds(owner: Any, part: str) -> bool:
    return isinstance(owner, dict) or (isinstance(owner, list) and part.isdigit())


def _key(owner: Any, part: str) -> Any:
    return int(part) if isinstance(owner, list) else part


def _exchange(owner: Any, name: str, value: Any) -> Any:
    """Puts `value` under a name, or takes the name away; returns what was there, if anything."""
    if value is not _NOTHING and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for store in ("_parameters", "_buffers"):
        kept = owner.__dict__.get(store) if hasattr(owner, "__dict__") else None
        if isinstance(kept, dict) and name in kept:
            # Bypass the module's checks, as any tensor may replace a parameter.
            old = kept.pop(name) if value is _NOTHING else kept[name]
            if value is not _NOTHING:
                kept[name] = value
            return old
    if _holds(owner, name):
        key = _key(owner, name)
        old, owner[key] = owner[key], value
        return old
    old = getattr(owner, name, _NOTHING)
    if old is not _NOTHING and old is not None and not isinstance(old, Tensor):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if value is _NOTHING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
    return old


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and the buffers of models of one class, to run them as an ensemble by `vmap`.

    Args:
        models: models with equal names and shapes.

    Returns:
        A dict of parameters and a dict of buffers, with the models along dimension 0.

    Examples:
        >>> models = [nn.Linear(2, 1) for _ in range(3)]
        >>> parameters, buffers = torch.func.stack_module_state(models)
        >>> call = lambda p, x: torch.func.functional_call(models[0], p, x)
        >>> torch.func.vmap(call, in_dims=(0, None))(parameters, torch.ones(4, 2)).shape
        torch.Size([3, 4, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(method: str, leaf: bool) -> dict[str, Any]:
        names = [name for name, _ in getattr(models[0], method)()]
        rows = [dict(getattr(m, method)()) for m in models]
        out = {name: stack([row[name] for row in rows]) for name in names}
        if not leaf:
            return out
        return {name: _leaf(name, value, [row[name] for row in rows]) for name, value in out.items()}

    return stacked("named_parameters", True), stacked("named_buffers", False)


def _leaf(name: str, stacked: Tensor, parts: list[Tensor]) -> Tensor:
    """What was stacked, as a parameter in its own right where its parts are."""
    wanted = parts[0].requires_grad
    if any(part.requires_grad != wanted for part in parts):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return stacked.detach().requires_grad_(wanted) if parts[0].is_leaf else stacked


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch normalization layers of a module stop tracking running statistics, in place.

    `vmap` does not allow the in-place updates of these statistics.

    Args:
        root: module to change.

    Returns:
        `root`.

    Examples:
        >>> model = torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> model[0].track_running_stats
        False
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "running_mean"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
