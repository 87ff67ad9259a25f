"""The base class of distributions, with the checks of parameters and samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from ..autograd.grad_mode import no_grad
from . import constraints
from .utils import broadcast_all, is_tensor_like, lazy_property

__all__ = ["Distribution"]

NO_SHAPE: Any = Size(())


def _told_by_subclasses() -> Any:
    def lacking(self: Any) -> Any:
        raise NotImplementedError

    return property(lacking)


def _listed(sizes: Any) -> Size:
    return sizes if isinstance(sizes, Size) else Size(sizes)


class Distribution:
    """Base class of probability distributions.

    An instance is a batch of independent distributions. Samples have the shape
    `sample_shape + batch_shape + event_shape`, and log-probabilities `sample_shape + batch_shape`.

    Args:
        batch_shape: shape of the batch. Default: `torch.Size([])`
        event_shape: shape of one sample of one distribution. Default: `torch.Size([])`
        validate_args: check the parameters and samples; the default setting if `None`.

    Examples:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The parameters that have the batch's shape, of classes that are no more than these.
    _held: tuple[str, ...] = ()

    arg_constraints: Any = _told_by_subclasses()
    support: Any = _told_by_subclasses()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their parameters and samples by default."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = NO_SHAPE,
        event_shape: Any = NO_SHAPE,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            rules = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` "
                "or initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, rule in rules.items():
            # What is still to be computed from another parameter is right if that is.
            if constraints.is_dependent(rule) or self._is_pending(name):
                continue
            value = getattr(self, name)
            if not rule.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {rule!r}, but found invalid values:\n{value}"
                )

    def _is_pending(self, name: str) -> bool:
        return name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)

    def _hold(self, validate_args: bool | None, **given: Any) -> None:
        """Takes parameters over, broadcast to the shape of the batch; numbers alone have none."""
        held = broadcast_all(*given.values())
        vars(self).update(zip(given, held, strict=False))
        shape = held[0].size() if any(map(is_tensor_like, given.values())) else Size(())
        Distribution.__init__(self, shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the distribution with its parameters expanded to a new batch shape.

        Args:
            batch_shape: batch shape of the result.
        """
        if not self._held:
            raise NotImplementedError
        owner = next(kind for kind in type(self).__mro__ if "_held" in vars(kind))
        new = self._get_checked_instance(owner, _instance)
        shape = _listed(batch_shape)
        for name in self._held:
            if name in vars(self):
                setattr(new, name, vars(self)[name].expand(shape))
        return self._grown(new, shape)

    def _grown(self, new: Any, batch_shape: Size, event_shape: Any = None) -> Any:
        """Finishes an instance that `expand` made."""
        Distribution.__init__(new, batch_shape, self._event_shape if event_shape is None else event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The mode, the most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        """Draw samples without gradients.

        Args:
            sample_shape: shape in front of the batch shape. Default: `torch.Size([])`
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        """Draw reparameterized samples, through which gradients flow to the parameters.

        Args:
            sample_shape: shape in front of the batch shape. Default: `torch.Size([])`
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draw `n` samples; deprecated, use `sample((n,))`."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability density or mass at `value`.

        Args:
            value: value of a shape that broadcasts with `batch_shape + event_shape`.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the cumulative distribution function at `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the inverse of the cumulative distribution function (the quantile) at `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along the first dimension.

        Args:
            expand: expand the result to the batch shape. Default: `True`
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Compute the entropy in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Compute the perplexity, the exponential of the entropy."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Iterable[int] = ()) -> Size:
        """The shape of samples: theirs, the batch's, the event's."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _room(self, parameter: Tensor, sample_shape: Any) -> Tensor:
        """Room for samples, to be drawn into: of a parameter's dtype, without a history."""
        return torch.empty(self._extended_shape(sample_shape), dtype=parameter.dtype, device=parameter.device)

    def _validate_sample(self, value: Any) -> None:
        """Refuses what cannot be a sample."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, events = value.size(), len(self._event_shape)
        if shape[len(shape) - events :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for have, want in zip(reversed(shape), reversed(expected), strict=False):
            if have != want and have != 1 and want != 1:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check_sample(self, value: Any) -> None:
        """The same, where arguments are checked at all."""
        if self._validate_args:
            self._validate_sample(value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A new instance for `expand`; a subclass that begins otherwise has to say how it expands."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Values along a new first dimension, for each of the batch if asked for."""
        values = values.view((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def __repr__(self) -> str:
        held = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        shown = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in held]
        return f"{type(self).__name__}({', '.join(shown)})"
