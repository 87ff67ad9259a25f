"""Spectral normalization by a hook before each call."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from ..parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


def default_dim(module: Any) -> int:
    """Return the dimension of the weight that corresponds to the outputs."""
    from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class SpectralNorm:
    """Hook of `spectral_norm` that runs before each call.

    Args:
        name: name of the weight. Default: `"weight"`
        n_power_iterations: number of power iterations for each call in training. Default: `1`
        dim: dimension that corresponds to the outputs. Default: `0`
        eps: lower bound of norms, for numerical stability. Default: `1e-12`
    """

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix with one row for each output."""
        if self.dim != 0:
            weight = weight.permute((self.dim, *(d for d in range(weight.dim()) if d != self.dim)))
        return weight.reshape((weight.size(0), -1))

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Return the weight divided by its largest singular value, after power iterations if requested."""
        weight, u, v = (getattr(module, self.name + ending) for ending in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    # In place, so that the buffers are updated.
                    v = F.normalize(_core.mv(matrix.t(), u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(_core.mv(matrix, v), dim=0, eps=self.eps, out=u)
                # The graph saves copies: another call before the backward would change the buffers.
                u, v = u.clone(), v.clone()
        return weight / _core.dot(u, _core.mv(matrix, v))

    def remove(self, module: Any) -> None:
        """Make the normalized weight an ordinary parameter."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for ending in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + ending)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Rename the parameter and register the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying spectral normalization"
            )
        with no_grad():
            height, width = made.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (height, width))
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # The value until the first call.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Hook that adds the second singular vector to state dicts of old versions, which lack it."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *_: Any
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + self.fn.name
        if version is None and key not in state_dict and all(key + end in state_dict for end in ("_orig", "_u", "_v")):
            return
        lacking = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if lacking:
            missing_keys += lacking if strict else []
            return
        with no_grad():
            weight, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            largest = (weight / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(weight)
            v = _core.mv(matrix.pinverse(), u)
            state_dict[key + "_v"] = v * (largest / _core.dot(u, _core.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Hook that writes the version into the metadata of a state dict."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight of a module by its largest singular value before each call (spectral normalization).

    The singular value is estimated by power iteration. The trained parameter is `<name>_orig`. Prefer
    `parametrizations.spectral_norm`.

    Args:
        module: module that has the weight.
        name: name of the weight. Default: `"weight"`
        n_power_iterations: number of power iterations for each call in training. Default: `1`
        eps: lower bound of norms, for numerical stability. Default: `1e-12`
        dim: dimension that corresponds to the outputs; 1 for transposed convolutions and else 0 if `None`.

    Returns:
        The module.

    Examples:
        >>> layer = nn.utils.spectral_norm(nn.Linear(4, 2))
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight_orig']
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Remove spectral normalization from a module; the weight keeps its normalized value.

    Args:
        module: module with spectral normalization.
        name: name of the weight. Default: `"weight"`

    Raises:
        ValueError: if the weight has no spectral normalization.

    Examples:
        >>> layer = nn.utils.spectral_norm(nn.Linear(4, 2))
        >>> nn.utils.remove_spectral_norm(layer)
        Linear(in_features=4, out_features=2, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in list(module._state_dict_hooks.items()):
        if isinstance(hook, SpectralNormStateDictHook) and hook.fn.name == name:
            del module._state_dict_hooks[key]
    for key, hook in list(module._load_state_dict_pre_hooks.items()):
        # Hooks are stored in a wrapper.
        inner = getattr(hook, "hook", hook)
        if isinstance(inner, SpectralNormLoadStateDictPreHook) and inner.fn.name == name:
            del module._load_state_dict_pre_hooks[key]
    return module
