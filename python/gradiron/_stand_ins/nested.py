"""Nested tensors, which are refused by name: programs that only name them run."""

from __future__ import annotations

from gradiron._as_torch.refused import refused

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_INSTEAD = "gradiron has no nested tensors; pad them (nn.utils.rnn.pad_sequence), or pack sequences (pack_padded_sequence)"

as_nested_tensor = refused("nested.as_nested_tensor", _INSTEAD)
masked_select = refused("nested.masked_select", _INSTEAD)
narrow = refused("nested.narrow", _INSTEAD)
nested_tensor = refused("nested.nested_tensor", _INSTEAD)
nested_tensor_from_jagged = refused("nested.nested_tensor_from_jagged", _INSTEAD)
to_padded_tensor = refused("nested.to_padded_tensor", _INSTEAD)
