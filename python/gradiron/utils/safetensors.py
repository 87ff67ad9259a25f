"""Files of the library safetensors, by the names of its module for PyTorch. The library itself is the user's to install."""

from __future__ import annotations

import importlib
import os
import struct
import sys
from collections import defaultdict
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._storage import UntypedStorage
from ..serialization._files import replacing

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]

_DTYPES = {
    "F64": _core.float64,
    "F32": _core.float32,
    "F16": _core.float16,
    "BF16": _core.bfloat16,
    "I64": _core.int64,
    "I32": _core.int32,
    "I16": _core.int16,
    "I8": _core.int8,
    "U8": _core.uint8,
    "BOOL": _core.bool,
    "C64": _core.complex64,
    "U16": _core.uint16,
    "U32": _core.uint32,
    "U64": _core.uint64,
    "F8_E4M3": _core.float8_e4m3fn,
    "F8_E5M2": _core.float8_e5m2,
}


def _library() -> Any:
    try:
        return importlib.import_module("safetensors")
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. Please install safetensors with: pip "
            "install safetensors"
        ) from error


def _kind(name: str) -> dtype:
    if name not in _DTYPES:
        raise RuntimeError(f"the file holds a tensor of {name}, which gradiron does not have")
    return _DTYPES[name]


def _shared(tensors: dict[str, Tensor]) -> list[list[str]]:
    """The names of those that share memory with others."""
    by_storage: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for name, tensor in tensors.items():
        if tensor.numel():
            first = tensor.storage_offset() * tensor.element_size()
            reach = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
            by_storage[tensor._storage_id()].append((first, first + reach * tensor.element_size(), name))
    found = []
    for areas in by_storage.values():
        groups: list[list[str]] = []
        end = -1
        for start, stop, name in sorted(areas):
            if start < end:
                groups[-1].append(name)
            else:
                groups.append([name])
            end = max(end, stop)
        found += [group for group in groups if len(group) > 1]
    return found


def _checked(tensors: Any) -> dict[str, Tensor]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    shared = _shared(tensors)
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading "
            f"them again: {shared}. A potential way to correctly save your model is to use `save_model`."
        )
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are "
                "trying to save tensors which are reference of each other in which case it's recommended to save only the full "
                "tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
    return tensors


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    library = _library()
    names = {kind: name for name, kind in _DTYPES.items()}
    described, kept = {}, []
    for name, tensor in _checked(tensors).items():
        if tensor.dtype not in names:
            raise RuntimeError(f"safetensors files do not hold tensors of {tensor.dtype}: `{name}`")
        # Nothing else of the storage, and in host memory.
        here = tensor.detach().cpu().resolve_conj().resolve_neg().clone()
        if sys.byteorder != "little":
            here.untyped_storage().byteswap(here.dtype)
        kept.append(here)
        kind, shape = str(here.dtype).removeprefix("torch."), list(here.shape)
        if hasattr(library, "TensorSpec"):
            size = here.numel() * here.element_size()
            described[name] = library.TensorSpec(dtype=kind, shape=shape, data_ptr=here.data_ptr(), data_len=size)
        else:
            described[name] = {"dtype": kind, "shape": shape, "data": _core.to_bytes(here)}
    return bytes(library.serialize(described, metadata=metadata))


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Writes a file with these tensors, in place of what was there when all is written."""
    data = save(tensors, metadata)
    with replacing(os.fspath(filename)) as file:
        file.write(data)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes."""
    found = {}
    for name, told in _library().deserialize(data):
        kind, shape = _kind(told["dtype"]), tuple(told["shape"])
        storage = UntypedStorage(_core.from_bytes(bytes(told["data"])))
        if sys.byteorder != "little":
            storage.byteswap(kind)
        found[name] = storage._as(kind).reshape(shape)
    return found


def load_file(filename: str | os.PathLike[str], device: Any = "cpu", *, backend: str = "mmap") -> dict[str, Tensor]:
    """The tensors of a file, whose bytes are read when they are used."""
    path = os.fspath(filename)
    found = {}
    # The library reads the header and checks it: tensors follow each other without gaps to the end of the file.
    with _library().safe_open(path, framework="numpy") as file:
        told = [(name, file.get_slice(name)) for name in file.offset_keys()]
        order = [(name, part.get_dtype(), tuple(part.get_shape())) for name, part in told]
    with open(path, "rb") as raw:
        (header,) = struct.unpack("<Q", raw.read(8))
    memory = UntypedStorage.from_file(path, False, os.path.getsize(path))
    start = 8 + header
    for name, code, shape in order:
        kind, size = _kind(code), _kind(code).itemsize
        for n in shape:
            size *= n
        part: Any = memory[start : start + size] if size else UntypedStorage(0)
        if start % kind.itemsize or sys.byteorder != "little":
            part = part.clone()
        if sys.byteorder != "little":
            part.byteswap(kind)
        found[name] = _core.convert(part._as(kind).reshape(shape), None, device, False)
        start += size
    return found


def _duplicates(tensors: dict[str, Tensor], there: Any = ()) -> dict[str, str]:
    """What need not be saved because another tensor is all of the memory: each name, and that of the other."""
    dropped: dict[str, str] = {}
    for group in _shared(tensors):
        whole = sorted(name for name in group if _is_whole(tensors[name]))
        if not whole:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for saving "
                f"amongst: {set(group)}. None is covering the entire storage.Refusing to save/load the model since you could "
                "be storing much more memory than needed."
            )
        keep = next((name for name in whole if name in there), whole[0])
        dropped.update((name, keep) for name in sorted(group) if name != keep)
    return dropped


def _is_whole(tensor: Tensor) -> bool:
    return tensor.storage_offset() == 0 and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def save_model(model: Any, filename: str, metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Writes a module's state; of tensors that share memory one only."""
    state = dict(model.state_dict())
    dropped = _duplicates(state)
    for name in dropped:
        del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(state, filename, {**dropped, **(metadata or {})} or None)


def load_model(
    model: Any, filename: str | os.PathLike[str], strict: bool = True, device: Any = "cpu", *, backend: str = "mmap"
) -> tuple[list[str], list[str]]:
    """Loads a module's state; names that are missing, and those that the module does not know."""
    state = load_file(filename, device, backend=backend)
    dropped = _duplicates(dict(model.state_dict()), state)
    missing, unexpected = model.load_state_dict(state, strict=False)
    left = sorted(name for name in missing if name not in dropped)
    if strict and (left or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        lines += [f"    Missing key(s) in state_dict: {left}"] if left else []
        lines += [f"    Unexpected key(s) in state_dict: {list(unexpected)}"] if unexpected else []
        raise RuntimeError("\n".join(lines))
    return left, list(unexpected)
