"""`utils._pytree`: nested containers, mapped and taken apart as packages for PyTorch do it."""

from collections import OrderedDict, namedtuple

import pytest

from library import T

tree = T.utils._pytree
Pair = namedtuple("Pair", "x y")


def test_flatten_and_back():
    value = {"a": [1, (2, None)], "b": OrderedDict(c=Pair(3, 4))}
    leaves, spec = tree.tree_flatten(value)
    assert leaves == [1, 2, None, 3, 4]
    assert tree.tree_unflatten(leaves, spec) == value
    assert tree.tree_leaves(value) == leaves and tree.tree_structure(value) == spec
    with pytest.raises(ValueError):
        tree.tree_unflatten([1], spec)


def test_maps():
    assert tree.tree_map(lambda x: x + 1, [1, {"a": 2}]) == [2, {"a": 3}]
    assert tree.tree_map(lambda x, y: x * y, [1, (2,)], [3, (4,)]) == [3, (8,)]
    assert tree.tree_map_only(int, str, [1, 2.0]) == ["1", 2.0]
    assert tree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: isinstance(x, list) and isinstance(x[0], int)) == [2, 1]
    assert tree.tree_all(bool, [1, 2]) and tree.tree_any(bool, [0, 2]) and not tree.tree_all(bool, [0])
    with pytest.raises(ValueError):
        tree.tree_map(lambda x, y: x, [1, 2], [1])


def test_depth():
    def nested(depth, leaf):
        for _ in range(depth):
            leaf = [leaf]
        return leaf

    def both(depth):
        spec = tree.tree_structure(nested(depth, 1))
        yield lambda: spec == tree.tree_structure(nested(depth, 2)) and spec != tree.tree_structure(nested(depth - 1, 2))
        yield lambda: tree.tree_leaves(tree.tree_map(lambda x: x + 1, nested(depth, 1))) == [2]
        yield lambda: repr(spec).count("[") == depth

    # Too deep for Python is its own error, around a circle too.
    circle = []
    circle.append(circle)
    for value in (nested(20_000, 1), circle):
        for call in (tree.tree_flatten, tree.tree_leaves, T.utils.data.default_convert, lambda v: tree.tree_map(len, v)):
            with pytest.raises(RecursionError):
                call(value)
    assert all(call() for call in both(100))
