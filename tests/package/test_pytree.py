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


def test_structures_tell_of_themselves():
    spec = tree.tree_structure({"a": [1, (2, 3)], "b": 4})
    assert isinstance(spec, tree.TreeSpec) and not spec.is_leaf()
    assert (spec.num_nodes, spec.num_leaves, spec.num_children) == (7, 4, 2)
    assert (spec.type, spec.context, spec.child(0).type) == (dict, ["a", "b"], list) and spec.children()[1].is_leaf()
    assert spec.unflatten([5, 6, 7, 8]) == tree.tree_unflatten([5, 6, 7, 8], spec) == {"a": [5, (6, 7)], "b": 8}
    assert hash(spec) == hash(tree.tree_structure({"a": [0, (0, 0)], "b": 0}))
    assert spec != tree.tree_structure({"a": [1, [2, 3]], "b": 4})
    with pytest.warns(FutureWarning, match="children_specs"):
        assert spec.children_specs[1].is_leaf()
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 4 items"):
        spec.unflatten([1])
    made = tree.treespec_dict({"x": tree.treespec_tuple([tree.treespec_leaf()])})
    assert made == tree.tree_structure({"x": (1,)}) and tree.treespec_pprint(made) == "{'x': (*,)}"


def test_ways():
    value = {"a": [1, Pair(2, (3,))], "b": OrderedDict(c=None)}
    pairs, spec = tree.tree_flatten_with_path(value)
    assert [tree.keystr(path) for path, _ in pairs] == ["['a'][0]", "['a'][1].x", "['a'][1].y[0]", "['b']['c']"]
    assert [tree.key_get(value, path) for path, _ in pairs] == [leaf for _, leaf in pairs] == tree.tree_leaves(value)
    assert spec == tree.tree_structure(value) and pairs[0][0] == (tree.MappingKey("a"), tree.SequenceKey(0))
    doubled = tree.tree_map_with_path(lambda path, x, y: (len(path), x, y), [1, [2]], [3, [4]])
    assert doubled == [(1, 1, 3), [(2, 2, 4)]]
    assert tree.tree_leaves_with_path([1, [2]], is_leaf=lambda x: x == [2])[1] == ((tree.SequenceKey(1),), [2])


def test_a_second_tree_may_be_deeper():
    assert tree.tree_map(lambda x, y: (x, y), [1, 2], [[3], {"a": 4}]) == [(1, [3]), (2, {"a": 4})]
    assert tree.tree_map(lambda x, y: x + y, {"a": 1, "b": 2}, OrderedDict(b=10, a=20)) == {"a": 21, "b": 12}
    seen = []
    assert tree.tree_map_(seen.append, [1, (2,)]) == [1, (2,)] and seen == [1, 2]
    for first, second, text in [
        ([1, 2], (1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>"),
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1"),
        ({"a": 1}, {"b": 1}, "Node keys mismatch; missing key"),
    ]:
        with pytest.raises(ValueError, match=text):
            tree.tree_map(max, first, second)


def test_own_containers_with_keys():
    class Box:
        def __init__(self, inside, label):
            self.inside, self.label = inside, label

    def with_keys(box):
        return [(tree.GetAttrKey("inside"), box.inside)], box.label

    tree.register_pytree_node(
        Box, lambda box: ([box.inside], box.label), lambda items, label: Box(*items, label), flatten_with_keys_fn=with_keys
    )
    box = tree.tree_map(lambda x: x + 1, Box([1, 2], "box"))
    assert (box.inside, box.label) == ([2, 3], "box")
    assert [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(box)] == [".inside[0]", ".inside[1]"]
    with pytest.raises(ValueError, match="already registered as pytree node"):
        tree.register_pytree_node(Box, with_keys, with_keys)


def test_dataclasses():
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: object
        y: object = None

    tree.register_dataclass(Point)
    assert tree.tree_map(lambda v: v * 2, Point(1)) == Point(2)
    assert tree.keystr(tree.tree_leaves_with_path(Point(1, [2]))[1][0]) == ".y[0]"


def test_chosen_leaves():
    assert tree.tree_all_only(int, bool, [1, "", 2]) and not tree.tree_any_only(int, bool, [0, "a"])
    assert tree.tree_map_only((int, float), str, [1, 2.0, None]) == ["1", "2.0", None]
    assert tree.tree_map_only(lambda x: x == 1, str, [1, 2]) == ["1", 2]
    assert list(tree.tree_iter([1, (2,)])) == tree.arg_tree_leaves(1, key=(2,)) == [1, 2]
    with pytest.raises(TypeError, match="Argument must be a type, a tuple of types, or a callable"):
        tree.tree_map_only(3, str, [1])
