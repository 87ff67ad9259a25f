"""Batches of sequences of different lengths: padded, or packed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import _core
from ..._core import Tensor
from ..._tensor import parse_to

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _if_any(value: Tensor | None, fn: Callable[[Tensor], Tensor]) -> Tensor | None:
    return None if value is None else fn(value)


class PackedSequence(PackedSequence_):
    """A batch of sequences of different lengths without padding, as recurrent layers accept it.

    It is made by `pack_sequence` or `pack_padded_sequence`. The elements are stored step by step, the longest
    sequence first.

    Args:
        data: the elements of all steps.
        batch_sizes: number of sequences that reach each step, on the CPU.
        sorted_indices: where each sequence was before they were sorted by length.
        unsorted_indices: the inverse of this permutation.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
                "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _changed(self, data: Tensor, fn: Callable[[Tensor], Tensor]) -> PackedSequence:
        order, back = _if_any(self.sorted_indices, fn), _if_any(self.unsorted_indices, fn)
        return type(self)(data, self.batch_sizes, order, back)

    def pin_memory(self) -> PackedSequence:
        """Return the sequence in pinned memory."""
        return self._changed(self.data.pin_memory(), Tensor.pin_memory)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequence on another device or with another dtype; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._changed(data, lambda t: t.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequence on a GPU."""
        return self._placed("cuda", args, kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequence on the CPU."""
        return self._placed("cpu", args, kwargs)

    def _placed(self, kind: str, args: Any, kwargs: Any) -> PackedSequence:
        dtype, device, copy, _ = parse_to(args, dict(kwargs))
        named = device is not None and _core.device(device).type == kind
        return self.to(device if named else kind, dtype, copy=copy)

    def double(self) -> PackedSequence:
        """Return the sequence with `float64` data."""
        return self.to(dtype=_core.float64)

    def float(self) -> PackedSequence:
        """Return the sequence with `float32` data."""
        return self.to(dtype=_core.float32)

    def half(self) -> PackedSequence:
        """Return the sequence with `float16` data."""
        return self.to(dtype=_core.float16)

    def long(self) -> PackedSequence:
        """Return the sequence with `int64` data."""
        return self.to(dtype=_core.int64)

    def int(self) -> PackedSequence:
        """Return the sequence with `int32` data."""
        return self.to(dtype=_core.int32)

    def short(self) -> PackedSequence:
        """Return the sequence with `int16` data."""
        return self.to(dtype=_core.int16)

    def char(self) -> PackedSequence:
        """Return the sequence with `int8` data."""
        return self.to(dtype=_core.int8)

    def byte(self) -> PackedSequence:
        """Return the sequence with `uint8` data."""
        return self.to(dtype=_core.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether the data are in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation.

    Args:
        permutation: the permutation as a vector of indices, or `None`, which is returned.

    Examples:
        >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    count = _core.arange(0, permutation.numel(), device=permutation.device)
    return _core.empty_like(permutation).scatter_(0, permutation, count)


def _places(steps: int, lengths: Tensor) -> Tensor:
    """Return the positions of the elements in the padded batch, step by step."""
    there = _core.arange(steps).unsqueeze(1) < lengths
    return there.reshape(-1).nonzero().squeeze(1)


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a batch of padded sequences of different lengths.

    Args:
        input: padded sequences `(T, B, *)`.
        lengths: length of each sequence: a list, or a tensor on the CPU.
        batch_first: whether the batch is the first dimension instead of the second. Default: `False`
        enforce_sorted: whether the sequences must be sorted by length, longest first; else they are sorted here.
            Default: `True`

    Raises:
        RuntimeError: if a length is not positive, or the sequences are not sorted as required.

    Examples:
        >>> packed = nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2])
        >>> packed.data
        tensor([1, 4, 2, 5, 3])
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=_core.int64)
    else:
        lengths = _core.make_tensor(lengths, _core.int64, "cpu", False)
    order = None
    if not enforce_sorted:
        lengths, order = _core.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dim() != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device.type} Long tensor"
        )
    if batch_first:
        input = input.transpose(0, 1)
    sizes = lengths.tolist()
    _check_lengths(sizes, input.size(0), input.size(1))
    places = _places(sizes[0], lengths)
    rows = input[: sizes[0]].reshape((-1, *input.shape[2:]))
    batch_sizes = (_core.arange(sizes[0]).unsqueeze(1) < lengths).sum(1)
    return PackedSequence(rows.index_select(0, places.to(input.device)), batch_sizes, order)


def _check_lengths(sizes: list[int], steps: int, count: int) -> None:
    if len(sizes) != count:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={count})")
    if any(size <= 0 for size in sizes):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(after > before for before, after in itertools.pairwise(sizes)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
            "need ONNX exportability."
        )
    if sizes[0] > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the size of the input, but got {sizes[0]}")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Unpack a packed batch into padded sequences and their lengths, the inverse of `pack_padded_sequence`.

    Args:
        sequence: packed sequences.
        batch_first: whether the batch is the first dimension instead of the second. Default: `False`
        padding_value: value of the padding. Default: `0.0`
        total_length: number of steps to pad to; that of the longest sequence if `None`.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    data, batch_sizes, _, back = sequence
    steps = batch_sizes.size(0)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    count = int(batch_sizes[0])
    lengths = (_core.arange(count).unsqueeze(1) < batch_sizes).sum(1)
    places = _places(steps, lengths).to(data.device)
    rows = data.new_full((steps * count, *data.shape[1:]), padding_value).index_copy(0, places, data)
    padded = rows.reshape((steps, count, *data.shape[1:]))
    if batch_first:
        padded = padded.transpose(0, 1)
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Pad sequences to the length of the longest one and stack them.

    Args:
        sequences: tensors `(L, *)` of different lengths.
        batch_first: whether the batch is the first dimension instead of the second. Default: `False`
        padding_value: value of the padding. Default: `0.0`
        padding_side: where to pad: `"right"` or `"left"`. Default: `"right"`

    Examples:
        >>> nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(part.size(0) for part in parts)
    filled = []
    for part in parts:
        missing = longest - part.size(0)
        if missing:
            filler = part.new_full((missing, *part.shape[1:]), padding_value)
            part = _core.cat([filler, part] if padding_side == "left" else [part, filler])
        filled.append(part)
    return _core.stack(filled, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split padded sequences into a list of sequences without padding.

    Args:
        padded_sequences: padded sequences `(T, B, *)`.
        lengths: length of each sequence.
        batch_first: whether the batch is the first dimension instead of the second. Default: `False`

    Examples:
        >>> nn.utils.rnn.unpad_sequence(torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:size] for row, size in zip(padded_sequences, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences of different lengths.

    Args:
        sequences: tensors `(L, *)` of different lengths.
        enforce_sorted: whether the sequences must be sorted by length, longest first; else they are sorted here.
            Default: `True`

    Examples:
        >>> nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).data
        tensor([1, 4, 2, 5, 3])
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Unpack a packed batch into a list of sequences, the inverse of `pack_sequence`.

    Args:
        packed_sequences: packed sequences.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
