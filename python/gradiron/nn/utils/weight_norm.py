"""Weight normalization by a hook before each call."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core import Tensor, norm
from ..parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norm over all dimensions but `dim`, or over all dimensions if it is -1."""
    if dim == -1:
        return norm(v, pow)
    others = [d for d in range(v.dim()) if d != dim]
    return norm(v, pow, others, True) if others else v.abs()


def weigh(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return `v` scaled to the norm `g` along every dimension but `dim`."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """Hook of `weight_norm` that runs before each call."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """Return the weight computed from magnitude and direction."""
        return weigh(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Split the parameter and register the hook."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Split a weight into magnitude and direction, `w = g * v / |v|` (weight normalization).

    The trained parameters are `<name>_g` and `<name>_v`. Deprecated in favour of `parametrizations.weight_norm`.

    Args:
        module: module that has the weight.
        name: name of the weight. Default: `"weight"`
        dim: dimension along which each slice has its own magnitude; `None` for a single magnitude. Default: `0`

    Returns:
        The module.

    Examples:
        >>> layer = nn.utils.weight_norm(nn.Linear(4, 2))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([2, 1]), torch.Size([2, 4]))
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Remove weight normalization from a module; the weight keeps its value.

    Args:
        module: module with weight normalization.
        name: name of the weight. Default: `"weight"`

    Raises:
        ValueError: if the weight has no weight normalization.

    Examples:
        >>> layer = nn.utils.weight_norm(nn.Linear(4, 2))
        >>> nn.utils.remove_weight_norm(layer)
        Linear(in_features=4, out_features=2, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
