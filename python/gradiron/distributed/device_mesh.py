"""Ranks in rows and columns: `DeviceMesh`, with a group for each row and column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import tensor as make_tensor
from . import distributed_c10d as c10d

__all__ = ["DeviceMesh", "init_device_mesh"]

# The dimensions of the root mesh that one dimension of a mesh runs over: several where it has been flattened.
Axes = tuple[int, ...]
Stride = int | tuple[int, ...]
Override = tuple[str | None, Any]


class DeviceMesh:
    """The ranks of the world as an array of any number of dimensions.

    Args:
        device_type: the kind of device that the ranks compute on, "cpu" or "cuda".
        mesh: the ranks, as a tensor or nested lists. All ranks of the world give the same.
        mesh_dim_names: names of the dimensions, by which a mesh can be sliced: `mesh["dp"]`.

    Each rank belongs to one group for each dimension, which `get_group` returns: the ranks that differ from it there alone.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: tuple[Override, ...] | None = None,
        preserve_rank_order: bool = False,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        self._device_type = device_type
        ranks = mesh.detach().to("cpu") if isinstance(mesh, Tensor) else make_tensor(mesh)
        self._ranks: Tensor = ranks.to(_core.int32).contiguous()
        self._mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._root_mesh: DeviceMesh | None = None
        self._axes: tuple[Axes, ...] = tuple((at,) for at in range(self._ranks.dim()))
        self._flattened: dict[str, DeviceMesh] = {}
        self._group_names: list[str | None] | None = None
        if self._mesh_dim_names is not None and len(self._mesh_dim_names) != self._ranks.dim():
            raise RuntimeError(
                f"mesh and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(self._mesh_dim_names)} and "
                f"mesh.ndim: {self._ranks.dim()}."
            )
        if _init_backend or _rank is None:
            self._find_world()
        self._rank = c10d.get_rank() if _rank is None else _rank
        self._check_ranks()
        if _init_backend and _rank is None:
            overrides = backend_override or ((None, None),) * self.ndim
            self._group_names = [
                self._make_groups((dim,), self._describe(dim), overrides[dim], not preserve_rank_order)
                for dim in range(self.ndim)
            ]

    def _find_world(self) -> None:
        """Begins the world where the program has not, and compares its size with that of the mesh."""
        if not c10d.is_initialized():
            c10d.init_process_group()
        size = c10d.get_world_size()
        if self._ranks.numel() > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found {self._ranks.numel()} ranks!"
            )

    def _check_ranks(self) -> None:
        ranks = self._ranks.reshape(-1).tolist()
        if c10d.is_initialized():
            size = c10d.get_world_size()
            for rank in ranks:
                if not 0 <= rank < size:
                    raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"the ranks of a mesh must differ, but got {self._ranks.tolist()}")

    def _describe(self, dim: int) -> str:
        return f"mesh_{self._mesh_dim_names[dim] if self._mesh_dim_names else f'dim_{dim}'}"

    def _make_groups(self, axes: Axes, description: str, override: Override, sort_ranks: bool) -> str | None:
        """Makes the groups along dimensions of the root mesh, on all ranks; the name of this rank's."""
        lines = self._root._lines(axes)
        world = list(range(c10d.get_world_size()))
        if override == (None, None) and [sorted(line) if sort_ranks else line for line in lines] == [world]:
            return c10d._get_process_group_name(c10d._get_default_group())
        mine = None
        for line in lines:
            group = c10d.new_group(
                line, backend=override[0], pg_options=override[1], group_desc=description, sort_ranks=sort_ranks
            )
            if self._rank in line:
                mine = c10d._get_process_group_name(group)
        return mine

    @property
    def _root(self) -> DeviceMesh:
        return self if self._root_mesh is None else self._root_mesh

    def _lines(self, axes: Axes) -> list[list[int]]:
        """The ranks of the root mesh along some of its dimensions, for every place in the others."""
        others = [at for at in range(self._ranks.dim()) if at not in axes]
        size = math.prod(self._ranks.shape[at] for at in axes)
        flat = self._ranks.permute(*others, *axes) if self._ranks.dim() else self._ranks
        return flat.reshape(-1, size).tolist()

    # What it looks like.

    @property
    def device_type(self) -> str:
        """The kind of device that the ranks compute on."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions."""
        return self._mesh_dim_names

    @property
    def mesh(self) -> Tensor:
        """The ranks; for a slice, those that this rank is among."""
        if self._root_mesh is None:
            return self._ranks
        root = self._root_mesh._ranks
        used = [axis for axes in self._axes for axis in axes]
        others = [at for at in range(root.dim()) if at not in used]
        place = self._root_mesh._coordinate or (0,) * root.dim()
        picked = root.permute(*others, *used) if root.dim() else root
        for at in others:
            picked = picked[place[at]]
        return picked.reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        root = self._root._ranks
        return tuple(math.prod(root.shape[axis] for axis in axes) for axes in self._axes)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._axes)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, in all or along one dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def _strides(self) -> tuple[Stride, ...]:
        """How far apart in the root mesh neighbours along each dimension are."""
        root = self._root._ranks
        found: list[Stride] = []
        for axes in self._axes:
            merged: list[int] = []
            for axis, following in itertools.zip_longest(axes, axes[1:]):
                step = root.stride(axis)
                if root.shape[axis] != 1 and (following is None or step != root.stride(following) * root.shape[following]):
                    merged.append(step)
            found.append(merged[0] if len(merged) == 1 else tuple(merged))
        return tuple(found)

    def __repr__(self) -> str:
        names = self._mesh_dim_names or ("",) * self.ndim
        sizes = [f"{name}={size}" if name else str(size) for name, size in zip(names, self.shape, strict=True)]
        comma = "," if self._mesh_dim_names is None and self.ndim == 1 else ""
        return f"DeviceMesh(({', '.join(sizes)}{comma}), '{self._device_type}', stride={self._strides()})"

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.mesh.reshape(-1).tolist()), self.shape, self._device_type, self._mesh_dim_names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *error: object) -> None:
        """The mesh stays."""

    # Where this rank stands.

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return c10d.get_rank()

    @property
    def _coordinate(self) -> tuple[int, ...] | None:
        found = (self._ranks == self._rank).nonzero().tolist()
        return tuple(found[0]) if found else None

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This rank's place in the mesh; None outside of it."""
        place = self._root._coordinate
        if place is None:
            return None
        root = self._root._ranks
        coordinate = []
        for axes in self._axes:
            at = 0
            for axis in axes:
                at = at * root.shape[axis] + place[axis]
            coordinate.append(at)
        return tuple(coordinate)

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self.get_coordinate() is not None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's rank in the group of a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return c10d.get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    # Groups.

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of this rank along a dimension."""
        if self._group_names is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` instead.",
            )
        if isinstance(mesh_dim, str):
            flat = self._root._flattened.get(mesh_dim) if mesh_dim not in (self._mesh_dim_names or ()) else None
            if flat is not None:
                return flat.get_group()
            mesh_dim = self._get_mesh_dim_by_name(mesh_dim)
        names = [name for name in self._group_names if name is not None]
        return c10d._resolve_process_group(names[mesh_dim or 0])

    def get_all_groups(self) -> list[Any]:
        """The groups of this rank along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if not self._mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self._mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._mesh_dim_names}",
            )
        return self._mesh_dim_names.index(mesh_dim_name)

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root

    # Slices.

    def _part(self, axes: tuple[Axes, ...], names: tuple[str, ...], group_names: list[str | None] | None) -> DeviceMesh:
        part = object.__new__(DeviceMesh)
        part._device_type, part._rank = self._device_type, self._rank
        part._ranks, part._root_mesh = self._root._ranks, self._root
        part._axes, part._mesh_dim_names, part._group_names = axes, names, group_names
        part._flattened = {}
        return part

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some of the dimensions, in the order they have here, or of what `_flatten` has made of them."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        flattened = self._root._flattened if self._root_mesh is None else {}
        valid = [*self._mesh_dim_names, *flattened]
        if any(name not in valid for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        if len(names) == 1 and names[0] in flattened:
            return flattened[names[0]]
        axes: list[Axes] = []
        groups: list[str | None] = []
        for name in names:
            mesh = flattened.get(name, self)
            dim = mesh._get_mesh_dim_by_name(name)
            axes.append(mesh._axes[dim])
            groups += [] if mesh._group_names is None else [mesh._group_names[dim]]
        used = [axis for each in axes for axis in each]
        if len(set(used)) != len(used):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if used != sorted(used):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        return self._part(tuple(axes), names, None if self._group_names is None else groups)

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """The same ranks in one dimension, with a group of their own; all ranks of the world call it."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        root, axes = self._root, tuple(itertools.chain(*self._axes))
        if self.ndim == 1 and name == self._mesh_dim_names[0]:
            return self
        if name in (root._mesh_dim_names or ()):
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {root._mesh_dim_names}. "
                "Please specify another valid mesh_dim_name.",
            )
        if name in root._flattened:
            known = root._flattened[name]
            if known._axes == (axes,):
                return known
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid mesh_dim_name."
            )
        override = _pair(backend_override)
        group = self._make_groups(axes, f"mesh_{name}", override, True)
        root._flattened[name] = self._part((axes,), (name,), [group])
        return root._flattened[name]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that exist: of one, or of one for each dimension of `mesh`."""
        groups = list(group) if isinstance(group, Sequence) else [group]
        if not isinstance(group, Sequence):
            ranks = c10d.get_process_group_ranks(group)
            given = mesh.reshape(-1).tolist() if isinstance(mesh, Tensor) else mesh
            if mesh is not None and list(given) != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        elif not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        elif mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        made = make_tensor(mesh) if not isinstance(mesh, Tensor) else mesh
        if made.dim() != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made.tolist()} and "
                f"{len(groups)} ProcessGroups"
            )
        found = DeviceMesh(device_type, made, mesh_dim_names=mesh_dim_names, _init_backend=False)
        found._group_names = [None if c10d._rank_not_in_group(each) else c10d._get_process_group_name(each) for each in groups]
        return found


def _pair(given: Any) -> Override:
    """The backend and the options of a group, of which either may be given alone."""
    if given is None or isinstance(given, str):
        return given, None
    return given if isinstance(given, tuple) else (None, given)


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict[int | str, Any] | None = None,
) -> DeviceMesh:
    """Puts the ranks of the world into a mesh of this shape, row by row. All ranks call it with the same arguments."""
    shape = tuple(mesh_shape)
    names = tuple(mesh_dim_names) if mesh_dim_names is not None else None
    if names is not None:
        if len(set(names)) != len(names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(names) != len(shape):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}."
            )
    overrides = _overrides(backend_override, len(shape), names or ())
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    if any(size < 0 for size in shape):
        raise RuntimeError(f"the sizes of a mesh must not be negative, but got {shape}")
    mesh = _core.arange(math.prod(shape), dtype=_core.int32).reshape(shape)
    return DeviceMesh(device_type, mesh, mesh_dim_names=names, backend_override=overrides)


def _overrides(given: dict[int | str, Any] | None, ndim: int, names: tuple[str, ...]) -> tuple[Override, ...]:
    """Backends by dimension, where some are given by the number or name of theirs."""
    left = dict(given or {})
    found = []
    for dim in range(ndim):
        name = names[dim] if names else None
        if dim in left and name in left:
            raise RuntimeError(f"Found redundant dim index {dim} and name {name} in backend_override")
        found.append(_pair(left.pop(dim, None) if dim in left else left.pop(name, None) if name is not None else None))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in range [0, {ndim}) or "
            f"one of {names}"
        )
    return tuple(found)
