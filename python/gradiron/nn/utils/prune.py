"""Pruning: masks that set weights to zero, chosen at random, by magnitude, or by the user."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ... import _core
from ..._core import Tensor
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """Base class of pruning methods: hooks that multiply a parameter by a mask before each call.

    The trained parameter is `<name>_orig`, and the mask the buffer `<name>_mask`. Subclasses define `PRUNING_TYPE`
    and `compute_mask`.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> issubclass(prune.L1Unstructured, prune.BasePruningMethod)
        True
    """

    PRUNING_TYPE: str
    _tensor_name: Any = None

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of a tensor.

        Args:
            t: importance scores of the elements.
            default_mask: mask from earlier pruning, to which the new one is added.
        """

    def apply_mask(self, module: Any) -> Tensor:
        """Return the original parameter multiplied by the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module, in addition to earlier pruning."""
        found = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        for key, old in found:
            del module._forward_pre_hooks[key]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        orig = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} "
                f"vs {orig.shape}"
            )
        first = not found
        if first:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            mask = _core.ones_like(orig)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        try:
            scores = orig if importance_scores is None else importance_scores
            module.register_buffer(name + "_mask", method.compute_mask(scores, default_mask=mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a tensor with zeros where this method would prune it; no module is changed."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        mask = _core.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Make the pruned parameter an ordinary one."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(name + "_orig")
        orig.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """A sequence of pruning methods of one parameter, of which each prunes what the earlier ones left.

    Args:
        *args: the methods.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> len(prune.PruningContainer(prune.L1Unstructured(0.5)))
        1
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        made = default_mask.to(t.dtype)
        part = self._left(method, t, default_mask)
        made = made.clone() if made is default_mask else made
        made[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(made.dtype)
        return made

    def _left(self, method: Any, t: Tensor, mask: Tensor) -> Any:
        """Return the part of the tensor that earlier methods left unpruned."""
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        part: list[Any] = [slice(None)] * t.dim()
        if method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
            dim = method.dim + t.dim() if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            part[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        return tuple(part)


class Identity(BasePruningMethod):
    """Pruning method that prunes nothing.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.Identity().prune(torch.ones(3))
        tensor([1., 1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Pruning method that prunes random elements.

    Args:
        amount: how much to prune: a fraction between 0 and 1, or a number of elements.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.RandomUnstructured(0.5).prune(torch.ones(4)).sum()
        tensor(2.)
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[_core.topk(_core.rand_like(t).view(-1), count)[1]] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Pruning method that prunes the elements of smallest magnitude.

    Args:
        amount: how much to prune: a fraction between 0 and 1, or a number of elements.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.L1Unstructured(2).prune(torch.tensor([1.0, -3.0, 2.0, 4.0]))
        tensor([ 0., -3.,  0.,  4.])
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[_core.topk(t.abs().view(-1), count, largest=False)[1]] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Pruning method that prunes random channels.

    Args:
        amount: how much to prune: a fraction between 0 and 1, or a number of channels.
        dim: dimension of the channels. Default: `-1`

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.RandomStructured(1, dim=0).prune(torch.ones(2, 3)).sum()
        tensor(3.)
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.size(self.dim)
        count = _count(self.amount, channels)
        if count == 0:
            return default_mask
        chances = _core.rand(channels)
        kept = chances > _core.kthvalue(chances, count)[0]
        return _channels(t, self.dim, kept) * default_mask.to(t.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Pruning method that prunes the channels with the smallest norms.

    Args:
        amount: how much to prune: a fraction between 0 and 1, or a number of channels.
        n: exponent of the norm, or `"fro"`.
        dim: dimension of the channels. Default: `-1`

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.LnStructured(1, 2, dim=0).prune(torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
        tensor([[3., 4.],
                [0., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.size(self.dim)
        count = _count(self.amount, channels)
        if count == 0:
            return default_mask
        largest = _core.topk(_compute_norm(t, self.n, self.dim), channels - count)[1]
        return _channels(t, self.dim, largest) * default_mask.to(t.dtype)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Pruning method that applies a given mask.

    Args:
        mask: mask of the shape of the parameter; zeros are pruned.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.CustomFromMask(torch.tensor([1, 0])).prune(torch.ones(2))
        tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def identity(module: Any, name: str) -> Any:
    """Add the mask of a pruned parameter without pruning anything.

    Args:
        module: module that has the parameter.
        name: name of the parameter.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.identity(nn.Linear(4, 2), "weight")
        >>> layer.weight_mask.sum()
        tensor(8.)
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune random elements of a parameter.

    Args:
        module: module that has the parameter.
        name: name of the parameter.
        amount: how much to prune: a fraction between 0 and 1, or a number of elements.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.random_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> layer.weight_mask.sum()
        tensor(4.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:
    """Prune the elements of a parameter with the smallest magnitude (L1 norm).

    Args:
        module: module that has the parameter.
        name: name of the parameter.
        amount: how much to prune: a fraction between 0 and 1, or a number of elements.
        importance_scores: scores, of the shape of the parameter, to use instead of its values.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> layer.weight_mask.sum()
        tensor(4.)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune random channels of a parameter.

    Args:
        module: module that has the parameter.
        name: name of the parameter.
        amount: how much to prune: a fraction between 0 and 1, or a number of channels.
        dim: dimension of the channels.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.random_structured(nn.Linear(4, 2), "weight", amount=1, dim=0)
        >>> layer.weight_mask.sum()
        tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None) -> Any:
    """Prune the channels of a parameter with the smallest norms.

    Args:
        module: module that has the parameter.
        name: name of the parameter.
        amount: how much to prune: a fraction between 0 and 1, or a number of channels.
        n: exponent of the norm, or `"fro"`.
        dim: dimension of the channels.
        importance_scores: scores, of the shape of the parameter, to use instead of its values.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.ln_structured(nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
        >>> layer.weight_mask.sum()
        tensor(4.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune elements of several parameters as if they were one.

    Args:
        parameters: pairs of module and name of the parameter.
        pruning_method: class of an unstructured method, such as `L1Unstructured`.
        importance_scores: dictionary from such pairs to scores to use instead of the values.
        **kwargs: arguments of the method, such as `amount`.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> first, second = nn.Linear(4, 4), nn.Linear(4, 2)
        >>> pairs = [(first, "weight"), (second, "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=6)
        >>> int(first.weight_mask.sum() + second.weight_mask.sum())
        18
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    scores = parameters_to_vector(given.get((module, name), getattr(module, name)) for module, name in pairs)
    before = parameters_to_vector(
        getattr(module, name + "_mask", _core.ones_like(getattr(module, name))) for module, name in pairs
    )
    container = PruningContainer()
    container._tensor_name = "temp"  # of no module
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(scores, before)
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=mask[start : start + param.numel()].view_as(param))
        start += param.numel()


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune a parameter by a given mask.

    Args:
        module: module that has the parameter.
        name: name of the parameter.
        mask: mask of the shape of the parameter; zeros are pruned.

    Returns:
        The module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.custom_from_mask(nn.Linear(2, 1), "weight", torch.tensor([[1, 0]]))
        >>> layer.weight_mask.sum()
        tensor(1.)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one; the pruned elements stay zero.

    Args:
        module: module that has the parameter.
        name: name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: if the parameter is not pruned.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> layer = prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> prune.remove(layer, "weight")
        Linear(in_features=4, out_features=2, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Return whether a module or one of its submodules has a pruned parameter.

    Args:
        module: the module.

    Examples:
        >>> from gradiron.nn.utils import prune
        >>> prune.is_pruned(nn.Linear(4, 2))
        False
    """
    return any(isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values())


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if float(amount) < 0 or (not whole and float(amount) > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _count(amount: Any, total: int) -> int:
    """Return the number of elements or channels to prune."""
    count = _compute_nparams_toprune(amount, total)
    _validate_pruning_amount(count, total)
    return count


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with "
            f"{t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _channels(t: Tensor, dim: int, kept: Tensor) -> Tensor:
    """Return a mask of ones in the channels that are kept and zeros in the others."""
    mask = _core.zeros_like(t)
    part: list[Any] = [slice(None)] * t.dim()
    part[dim] = kept
    mask[tuple(part)] = 1
    return mask


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Return the norm of each channel."""
    dims = [d for d in range(t.dim()) if d != dim % t.dim()]
    return _core.norm(t, 2 if n == "fro" else n, dims)
