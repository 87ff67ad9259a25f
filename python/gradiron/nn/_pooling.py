"""Pooling whose result or size depends on options, and image patches as columns, on top of the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _core

if TYPE_CHECKING:
    from .. import Tensor

_nn = _core._nn
_Sizes: TypeAlias = int | Sequence[int]
__all__ = ["fold", "unfold"]
# Functions of the core that have other names here.
RENAMED = [function.__name__ for function in (_nn.im2col, _nn.col2im)]


def _public(function: Callable[..., Any], name: str, doc: str, n: int) -> None:
    """Publish a function for `n` spatial dimensions under a name, with the docstring that a template gives."""
    function.__name__ = function.__qualname__ = name
    dims, keep = ("L", "H, W", "D, H, W")[n - 1], "" if n == 1 else ", `None` to keep it"
    function.__doc__ = doc.format(name=name, n=n, dims=dims, keep=keep, eights=", 8" * n, fours=", 4" * n)
    globals()[name] = function
    __all__.append(name)


# Templates of the docstrings.

_POOL_ARGS = """
Args:
    input: tensor `(N, C, {dims})` or `(C, {dims})`.
    kernel_size: size of the windows.
    stride: step between windows; `kernel_size` if `None`.
    padding: number of minus infinities added on both sides, at most half of `kernel_size`. Default: `0`
    dilation: spacing between the elements of a window. Default: `1`
    ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`
"""
_INDICES_ARG = "    return_indices: whether to return the flat positions of the maxima, too. Default: `False`\n"
_UNUSED_ARG = "    return_indices: has no effect. Default: `False`\n"
_MAX_POOL = f"""Take the maximum of each sliding window ({{n}}D max pooling).
{_POOL_ARGS}{_INDICES_ARG}
Examples:
    >>> F.{{name}}(torch.randn(2, 4{{eights}}), 2).shape
    torch.Size([2, 4{{fours}}])
"""
_MAX_POOL_WITH_INDICES = f"""Take the maximum of each sliding window ({{n}}D max pooling), and return its flat position, too.
{_POOL_ARGS}{_UNUSED_ARG}
Examples:
    >>> output, indices = F.{{name}}(torch.randn(2, 4{{eights}}), 2)
    >>> indices.shape
    torch.Size([2, 4{{fours}}])
"""
_ADAPTIVE_ARGS = """
Args:
    input: tensor `(N, C, {dims})` or `(C, {dims})`.
    output_size: size of the output: one integer, or one for each spatial dimension{keep}.
"""
_ADAPTIVE_AVG_POOL = f"""Average down to a given output size ({{n}}D adaptive average pooling).
{_ADAPTIVE_ARGS}
Examples:
    >>> F.{{name}}(torch.randn(2, 4{{eights}}), 4).shape
    torch.Size([2, 4{{fours}}])
"""
_ADAPTIVE_MAX_POOL = f"""Take maxima down to a given output size ({{n}}D adaptive max pooling).
{_ADAPTIVE_ARGS}{_INDICES_ARG}
Examples:
    >>> F.{{name}}(torch.randn(2, 4{{eights}}), 4).shape
    torch.Size([2, 4{{fours}}])
"""
_ADAPTIVE_MAX_POOL_WITH_INDICES = f"""Take maxima down to a given output size, and return their flat positions, too.
{_ADAPTIVE_ARGS}{_UNUSED_ARG}
Examples:
    >>> output, indices = F.{{name}}(torch.randn(2, 4{{eights}}), 4)
    >>> indices.shape
    torch.Size([2, 4{{fours}}])
"""
_MAX_UNPOOL = """Invert `max_pool{n}d` partially: put the maxima back at their positions, with zeros elsewhere.

Args:
    input: maxima `(N, C, {dims})` or `(C, {dims})`.
    indices: their flat positions, as `max_pool{n}d` returns them.
    kernel_size: size of the windows of the pooling.
    stride: step between windows; `kernel_size` if `None`.
    padding: padding of the pooling. Default: `0`
    output_size: size of the result, where several are possible.

Examples:
    >>> output, indices = F.max_pool{n}d(torch.randn(2, 4{eights}), 2, return_indices=True)
    >>> F.{name}(output, indices, 2).shape
    torch.Size([2, 4{eights}])
"""
_FRACTIONAL_ARGS = """
Give either `output_size` or `output_ratio`.

Args:
    input: tensor `(N, C, {dims})` or `(C, {dims})`.
    kernel_size: size of the windows.
    output_size: size of the output: one integer, or one for each spatial dimension.
    output_ratio: sizes of the output as fractions of those of the input, one for each spatial dimension.
"""
_FRACTIONAL_MAX_POOL = f"""Take the maxima of randomly placed windows ({{n}}D fractional max pooling).
{_FRACTIONAL_ARGS}{_INDICES_ARG}
Examples:
    >>> F.{{name}}(torch.randn(2, 4{{eights}}), 2, output_size=4).shape
    torch.Size([2, 4{{fours}}])
"""
_FRACTIONAL_MAX_POOL_WITH_INDICES = f"""Take the maxima of randomly placed windows, and return their flat positions, too.
{_FRACTIONAL_ARGS}{_UNUSED_ARG}
Examples:
    >>> output, indices = F.{{name}}(torch.randn(2, 4{{eights}}), 2, output_size=4)
    >>> indices.shape
    torch.Size([2, 4{{fours}}])
"""


def _max_pool(n: int) -> None:
    both = getattr(_nn if n > 1 else _core, f"max_pool{n}d_with_indices")
    largest = getattr(_core, f"max_pool{n}d")

    def with_indices(
        input: Tensor,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        return both(input, kernel_size, stride, padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        call = both if return_indices else largest
        return call(input, kernel_size, stride, padding, dilation, ceil_mode)

    _public(with_indices, f"max_pool{n}d_with_indices", _MAX_POOL_WITH_INDICES, n)
    _public(pool, f"max_pool{n}d", _MAX_POOL, n)


def _filled(sizes: Any, input: Tensor) -> Any:
    """Return the sizes, with those of the input in place of `None`."""
    if not isinstance(sizes, (tuple, list)):
        return sizes
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    own = input.shape[input.dim() - len(sizes) :]
    return [n if size is None else size for size, n in zip(sizes, own, strict=True)]


def _adaptive(n: int) -> None:
    where = _nn if n > 1 else _core
    mean, both = getattr(where, f"adaptive_avg_pool{n}d"), getattr(where, f"adaptive_max_pool{n}d")
    sizes = _filled if n > 1 else lambda sizes, input: sizes

    def average(input: Tensor, output_size: Any) -> Tensor:
        return mean(input, sizes(output_size, input))

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        return both(input, sizes(output_size, input))

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        found = with_indices(input, output_size)
        return found if return_indices else found[0]

    _public(average, f"adaptive_avg_pool{n}d", _ADAPTIVE_AVG_POOL, n)
    _public(with_indices, f"adaptive_max_pool{n}d_with_indices", _ADAPTIVE_MAX_POOL_WITH_INDICES, n)
    _public(pool, f"adaptive_max_pool{n}d", _ADAPTIVE_MAX_POOL, n)


def _listed(sizes: _Sizes, n: int) -> list[int]:
    return [sizes] * n if isinstance(sizes, int) else list(sizes)


def _unpooled_size(
    input: Tensor, kernel: list[int], stride: list[int], padding: list[int], output_size: Sequence[int] | None
) -> list[int]:
    n = len(kernel)
    shape = input.shape[input.dim() - n :]
    usual = [(shape[d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return usual
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for d in range(n):
        low, high = usual[d] - stride[d], usual[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return list(output_size)


def _unpool(n: int) -> None:
    put = getattr(_nn, f"max_unpool{max(n, 2)}d")

    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        kernel, padding = _listed(kernel_size, n), _listed(padding, n)
        stride = _listed(stride, n) if stride is not None else kernel
        size = _unpooled_size(input, kernel, stride, padding, output_size)
        if n == 1:
            return put(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
        return put(input, indices, size) if n == 2 else put(input, indices, size, stride, padding)

    _public(unpool, f"max_unpool{n}d", _MAX_UNPOOL, n)


def _fractional(n: int) -> None:
    both, name = getattr(_nn, f"fractional_max_pool{n}d"), f"fractional_max_pool{n}d"

    def with_indices(
        input: Tensor,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio: Any = output_ratio
            if len(ratio) > n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(d - n) * ratio[d]) for d in range(n)]
        if _random_samples is None:
            count = 1 if input.dim() == n + 1 else input.size(0)
            shape = (count, input.size(-n - 1), n)
            _random_samples = _core.rand(shape, dtype=input.dtype, device=input.device)
        return both(input, _listed(kernel_size, n), _listed(output_size, n), _random_samples)

    def pool(
        input: Tensor,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        found = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return found if return_indices else found[0]

    _public(with_indices, f"{name}_with_indices", _FRACTIONAL_MAX_POOL_WITH_INDICES, n)
    _public(pool, name, _FRACTIONAL_MAX_POOL, n)


for _n in (1, 2, 3):
    _max_pool(_n)
    _adaptive(_n)
    _unpool(_n)
for _n in (2, 3):
    _fractional(_n)


def _pair(sizes: _Sizes) -> list[int]:
    return _listed(sizes, 2)


def unfold(input: Tensor, kernel_size: _Sizes, dilation: _Sizes = 1, padding: _Sizes = 0, stride: _Sizes = 1) -> Tensor:
    """Extract sliding patches of images as columns (im2col).

    Args:
        input: images `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the patches.
        dilation: spacing between the elements of a patch. Default: `1`
        padding: number of zeros added on both sides of the image. Default: `0`
        stride: step between patches. Default: `1`

    Returns:
        A tensor `(N, C * prod(kernel_size), L)` for `L` patches.

    Examples:
        >>> F.unfold(torch.randn(1, 3, 4, 4), 2, stride=2).shape
        torch.Size([1, 12, 4])
    """
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(
    input: Tensor,
    output_size: _Sizes,
    kernel_size: _Sizes,
    dilation: _Sizes = 1,
    padding: _Sizes = 0,
    stride: _Sizes = 1,
) -> Tensor:
    """Combine patches into images, summing where they overlap (col2im).

    Args:
        input: columns `(N, C * prod(kernel_size), L)`, or without `N`, for `L` patches.
        output_size: height and width of the images.
        kernel_size: size of the patches.
        dilation: spacing between the elements of a patch. Default: `1`
        padding: number of zeros added on both sides of the image. Default: `0`
        stride: step between patches. Default: `1`

    Examples:
        >>> F.fold(torch.randn(1, 3 * 4, 4), (4, 4), 2, stride=2).shape
        torch.Size([1, 3, 4, 4])
    """
    return _nn.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
