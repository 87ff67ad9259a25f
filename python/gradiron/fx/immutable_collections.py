"""Lists and dicts that cannot be changed: the arguments of nodes, whose users are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..utils._pytree import _dict_flatten_with_keys, _list_flatten_with_keys, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]

_ADVICE = """\
If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _refuse_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_ADVICE}")


class immutable_list(list[Any]):
    """A list that cannot be changed.

    Args:
        iterable: elements of the list. Default: none

    Examples:
        >>> torch.fx.immutable_collections.immutable_list([1, 2])[0]
        1
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse_mutation
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed.

    Args:
        items: keys with their values.

    Examples:
        >>> torch.fx.immutable_collections.immutable_dict({"a": 1})["a"]
        1
    """

    __delitem__ = __ior__ = __setitem__ = _refuse_mutation
    clear = pop = popitem = setdefault = update = _refuse_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


def _list_parts(items: immutable_list) -> tuple[list[Any], None]:
    return list(items), None


def _list_again(items: Iterable[Any], context: None) -> immutable_list:
    return immutable_list(items)


def _dict_parts(items: immutable_dict) -> tuple[list[Any], list[Any]]:
    return list(items.values()), list(items)


def _dict_again(items: Iterable[Any], keys: list[Any]) -> immutable_dict:
    return immutable_dict(zip(keys, items, strict=True))


register_pytree_node(immutable_list, _list_parts, _list_again, flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(immutable_dict, _dict_parts, _dict_again, flatten_with_keys_fn=_dict_flatten_with_keys)
