"""Sequences of different lengths, padded and packed."""

import pytest

from library import T, assert_values

nn = T.nn
R = nn.utils.rnn


def sequences(grad=False):
    return [T.tensor(v, requires_grad=grad) for v in ([1.0, 2.0, 3.0], [4.0, 5.0], [6.0])]


def test_pad_sequence():
    assert_values(R.pad_sequence(sequences()), [[1.0, 4.0, 6.0], [2.0, 5.0, 0.0], [3.0, 0.0, 0.0]])
    assert_values(R.pad_sequence(sequences(), True, 9.0), [[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [6.0, 9.0, 9.0]])
    assert_values(R.pad_sequence(sequences(), True, padding_side="left"), [[1.0, 2.0, 3.0], [0.0, 4.0, 5.0], [0.0, 0.0, 6.0]])
    ints = R.pad_sequence([T.tensor([1, 2]), T.tensor([3])], batch_first=True)
    assert ints.dtype == T.int64 and ints.tolist() == [[1, 2], [3, 0]]
    assert R.pad_sequence([T.ones(2, 4), T.ones(3, 4)]).shape == (3, 2, 4)
    with pytest.raises(RuntimeError, match="^pad_sequence: Expected iterable for input sequences, but got arg of type"):
        R.pad_sequence(3)
    parts = sequences(True)
    R.pad_sequence(parts).sum().backward()
    assert_values(parts[1].grad, [1.0, 1.0])
    padded = R.pad_sequence(sequences(), batch_first=True)
    for part, original in zip(R.unpad_sequence(padded, T.tensor([3, 2, 1]), batch_first=True), sequences()):
        assert_values(part, original)


def test_pack():
    packed = R.pack_sequence(sequences())
    assert isinstance(packed, R.PackedSequence) and packed.sorted_indices is None
    assert_values(packed.data, [1.0, 4.0, 6.0, 2.0, 5.0, 3.0])
    assert packed.batch_sizes.tolist() == [3, 2, 1] and packed.batch_sizes.dtype == T.int64
    padded, lengths = R.pad_packed_sequence(packed)
    assert lengths.tolist() == [3, 2, 1]
    assert_values(padded, [[1.0, 4.0, 6.0], [2.0, 5.0, 0.0], [3.0, 0.0, 0.0]])
    padded, _ = R.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=4)
    assert_values(padded, [[1.0, 2.0, 3.0, -1.0], [4.0, 5.0, -1.0, -1.0], [6.0, -1.0, -1.0, -1.0]])
    for part, original in zip(R.unpack_sequence(packed), sequences()):
        assert_values(part, original)
    with pytest.raises(ValueError, match="^Expected total_length to be at least the length of the longest sequence in input"):
        R.pad_packed_sequence(packed, total_length=2)


def test_pack_in_any_order():
    parts = [T.tensor([6.0]), T.tensor([1.0, 2.0, 3.0]), T.tensor([4.0, 5.0])]
    packed = R.pack_sequence(parts, enforce_sorted=False)
    assert packed.sorted_indices.tolist() == [1, 2, 0] and packed.unsorted_indices.tolist() == [2, 0, 1]
    assert_values(packed.data, [1.0, 4.0, 6.0, 2.0, 5.0, 3.0])
    padded, lengths = R.pad_packed_sequence(packed, batch_first=True)
    assert lengths.tolist() == [1, 3, 2]
    assert_values(padded, [[6.0, 0.0, 0.0], [1.0, 2.0, 3.0], [4.0, 5.0, 0.0]])


def test_pack_padded():
    x = T.arange(12.0).reshape(2, 3, 2).requires_grad_()
    packed = R.pack_padded_sequence(x, [2, 1], batch_first=True)
    assert_values(packed.data, [[0.0, 1.0], [6.0, 7.0], [2.0, 3.0]])
    assert packed.batch_sizes.tolist() == [2, 1]
    packed.data.sum().backward()
    assert_values(x.grad, [[[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]])
    for lengths, text in (
        ([1, 2], "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True."),
        ([2, 0], "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"),
        ([2], "Expected `len\\(lengths\\)` to be equal to batch_size, but got 1"),
    ):
        with pytest.raises(RuntimeError, match=f"^{text}"):
            R.pack_padded_sequence(x, lengths, batch_first=True)
    with pytest.raises(RuntimeError, match="^Cannot pack empty tensors."):
        R.pack_padded_sequence(x[:, :0], T.ones(2, 1))


def test_moves():
    packed = R.pack_sequence(sequences())
    assert packed.to(T.float32) is packed and packed.cpu() is packed and not packed.is_cuda
    assert packed.double().data.dtype == T.float64 and packed.to("cpu", T.float16).data.dtype == T.float16
    with pytest.raises(AssertionError):
        R.PackedSequence(3)


def test_on_devices(device):
    packed = R.pack_sequence([t.to(device) for t in sequences()][::-1], enforce_sorted=False)
    assert packed.data.device.type == device and packed.batch_sizes.device.type == "cpu"
    padded, _ = R.pad_packed_sequence(packed, batch_first=True)
    assert_values(padded, [[6.0, 0.0, 0.0], [4.0, 5.0, 0.0], [1.0, 2.0, 3.0]])


def test_sequences_of_every_kind_of_input():
    pack, pad = nn.utils.rnn.pack_sequence, nn.utils.rnn.pad_packed_sequence
    rows = [T.arange(1.0, n + 1) for n in (2, 4, 1)]
    packed = pack(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.data.tolist() == [1, 1, 1, 2, 2, 3, 4]
    padded, lengths = pad(packed, batch_first=True, padding_value=-1.0, total_length=5)
    assert lengths.tolist() == [2, 4, 1] and padded.tolist() == [[1, 2, -1, -1, -1], [1, 2, 3, 4, -1], [1, -1, -1, -1, -1]]
    assert [row.tolist() for row in nn.utils.rnn.unpack_sequence(packed)] == [[1, 2], [1, 2, 3, 4], [1]]
    with pytest.raises(ValueError, match="Expected total_length to be at least the length of the longest sequence"):
        pad(packed, total_length=3)
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        pack(rows)


def test_packed_sequences_change_their_kind_together():
    packed = nn.utils.rnn.pack_sequence([T.ones(2), T.ones(1)])
    for convert, kind in (("double", T.float64), ("half", T.float16), ("int", T.int32)):
        made = getattr(packed, convert)()
        assert made.data.dtype is kind and made.batch_sizes is packed.batch_sizes
    assert packed.to(T.float32) is packed
    assert not packed.is_pinned() and not packed.is_cuda
