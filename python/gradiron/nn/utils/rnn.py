"""Batches of sequences of different lengths: padded, or packed step by step."""

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
    """The elements of sequences step by step: of each step those sequences that go so far, the longest first.

    `batch_sizes` says how many they are in each step, `sorted_indices` where each came from.
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
        """The same in memory that uploads are quick from."""
        return self._changed(self.data.pin_memory(), Tensor.pin_memory)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on another device or of another dtype; itself if it is that already."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._changed(data, lambda t: t.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the GPU."""
        return self._placed("cuda", args, kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same in host memory."""
        return self._placed("cpu", args, kwargs)

    def _placed(self, kind: str, args: Any, kwargs: Any) -> PackedSequence:
        dtype, device, copy, _ = parse_to(args, dict(kwargs))
        named = device is not None and _core.device(device).type == kind
        return self.to(device if named else kind, dtype, copy=copy)

    def double(self) -> PackedSequence:
        """As float64."""
        return self.to(dtype=_core.float64)

    def float(self) -> PackedSequence:
        """As float32."""
        return self.to(dtype=_core.float32)

    def half(self) -> PackedSequence:
        """As float16."""
        return self.to(dtype=_core.float16)

    def long(self) -> PackedSequence:
        """As int64."""
        return self.to(dtype=_core.int64)

    def int(self) -> PackedSequence:
        """As int32."""
        return self.to(dtype=_core.int32)

    def short(self) -> PackedSequence:
        """As int16."""
        return self.to(dtype=_core.int16)

    def char(self) -> PackedSequence:
        """As int8."""
        return self.to(dtype=_core.int8)

    def byte(self) -> PackedSequence:
        """As uint8."""
        return self.to(dtype=_core.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lie on the GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data lie in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    count = _core.arange(0, permutation.numel(), device=permutation.device)
    return _core.empty_like(permutation).scatter_(0, permutation, count)


def _places(steps: int, lengths: Tensor) -> Tensor:
    """Where the elements are among `steps` times as many as there are sequences, step by step."""
    there = _core.arange(steps).unsqueeze(1) < lengths
    return there.reshape(-1).nonzero().squeeze(1)


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Packs padded sequences, which come longest first unless `enforce_sorted` is False."""
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
    """The padded sequences that were packed, and their lengths."""
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
    """The sequences in one tensor, the shorter ones filled up."""
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
    """The sequences without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:size] for row, size in zip(padded_sequences, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences."""
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
