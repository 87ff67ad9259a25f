"""Sequences, lists and dictionaries of modules and parameters."""

from collections import OrderedDict

import pytest

from library import T, assert_values

nn = T.nn


class A(nn.Module):
    def forward(self, x):
        return x + 1


class B(nn.Module):
    def forward(self, x):
        return x * 2


def kinds(modules):
    return "".join(type(m).__name__ for m in modules)


def refuses(kind, text, call):
    with pytest.raises(kind) as error:
        call()
    assert error.value.args[0] == text


def test_sequential():
    a, b = A(), B()
    s = nn.Sequential(a, b)
    assert_values(s(T.ones(1)), [4.0])
    assert len(s) == 2 and list(s) == [a, b] and s[0] is s[-2] is a and kinds(s[1:]) == "B" and list(s[1:]._modules) == ["1"]
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a and named[1] is b and list(named[:1]._modules) == ["first"]
    named[0] = b
    assert named.first is b
    assert kinds(s + s) == "ABAB" and kinds(s * 2) == kinds(2 * s) == "ABAB"
    assert s.append(B()) is s and kinds(s) == "ABB" and s.extend([A()]) is s and kinds(s) == "ABBA"
    assert s.insert(1, A()) is s and kinds(s) == "AABBA" and kinds(s.insert(-1, A())) == "AABBAA"
    assert s.pop(0) is a and kinds(s) == "ABBAA"
    del s[1:3]
    assert kinds(s) == "AAA" and list(s._modules) == ["0", "1", "2"]
    del s[-1]
    s += nn.Sequential(B())
    s *= 2
    assert kinds(s) == "AABAAB" and list(s._modules) == list("012345")
    assert repr(nn.Sequential(A())) == "Sequential(\n  (0): A()\n)" and repr(nn.Sequential()) == "Sequential()"


def test_sequential_refuses():
    s = nn.Sequential(A(), B())
    kind = type(s)
    refuses(IndexError, "index 7 is out of range", lambda: s[7])
    refuses(IndexError, "index -3 is out of range", lambda: s.__delitem__(-3))
    refuses(TypeError, "int is not a Module subclass", lambda: nn.Sequential(4))
    refuses(TypeError, "int is not a Module subclass", lambda: s.append(4))
    refuses(ValueError, "add operator supports only objects of Sequential class, but <class 'int'> is given.", lambda: s + 3)
    refuses(ValueError, f"Non-positive multiplication factor 0 for {kind}", lambda: s * 0)
    refuses(TypeError, f"unsupported operand type(s) for *: {kind} and <class 'float'>", lambda: s * 1.5)
    refuses(IndexError, "Index out of range: 7", lambda: s.insert(7, A()))
    refuses(AssertionError, f"module should be of type: {nn.Module}", lambda: s.insert(0, 3))
    refuses(TypeError, "'str' object cannot be interpreted as an integer", lambda: s["0"])


def test_module_list():
    a, b = A(), B()
    m = nn.ModuleList([a, b])
    assert m[0] is a and m[-1] is b and kinds(m[::-1]) == "BA" and kinds(m + [A()]) == "ABA" and type(m[:1]) is nn.ModuleList
    m += [B()]
    m.append(A())
    assert kinds(m) == "ABBA" and m.extend(nn.ModuleList([B()])) is m
    m.insert(0, B())
    assert kinds(m) == "BABBAB" and list(m._modules) == list("012345")
    m[1] = B()
    del m[0], m[-1]
    assert kinds(m) == "BBBA" and type(m.pop(-1)) is A
    del m[0:2]
    assert kinds(m) == "B" and list(m._modules) == ["0"]
    assert repr(nn.ModuleList([A(), A(), B(), nn.Sequential(A()), nn.Sequential(A())])) == (
        "ModuleList(\n  (0-1): 2 x A()\n  (2): B()\n  (3-4): 2 x Sequential(\n    (0): A()\n  )\n)"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    refuses(TypeError, "ModuleList.extend should be called with an iterable, but got int", lambda: m.extend(3))
    refuses(TypeError, "'int' object is not iterable", lambda: m + 3)
    refuses(IndexError, "index 1 is out of range", lambda: m[1])
    refuses(NotImplementedError, 'Module [ModuleList] is missing the required "forward" function', lambda: m(1))


def test_module_dict():
    a = A()
    m = nn.ModuleDict({"b": B(), "a": a})
    assert list(m) == ["b", "a"] and m["a"] is a and m.a is a and "b" in m and "c" not in m and len(m) == 2
    assert list(m.keys()) == ["b", "a"] and kinds(m.values()) == "BA" and list(m.items())[1] == ("a", a)
    m.update([["c", B()]])
    m.update(nn.ModuleDict({"b": A()}))
    assert list(m) == ["b", "a", "c"] and kinds(m.values()) == "AAB"
    del m["c"]
    assert m.pop("a") is a and list(m) == ["b"]
    m["x"] = B()
    m.clear()
    assert len(m) == 0
    refuses(KeyError, "x", lambda: m["x"])
    refuses(KeyError, "attribute 'keys' already exists", lambda: nn.ModuleDict({"keys": A()}))
    refuses(
        TypeError,
        "ModuleDict.update should be called with an iterable of key/value pairs, but got int",
        lambda: m.update(3),
    )
    refuses(TypeError, "ModuleDict update sequence element #0 should be Iterable; isint", lambda: m.update([3]))
    refuses(ValueError, "ModuleDict update sequence element #0 has length 3; 2 is required", lambda: m.update([(1, 2, 3)]))


def test_parameter_list():
    p = nn.ParameterList([T.ones(2, 3), nn.Parameter(T.ones(()))])
    assert len(p) == 2 and all(isinstance(v, nn.Parameter) for v in p) and len(list(p.parameters())) == 2
    p.append(3)
    p.extend(["x"])
    p += nn.ParameterList([T.zeros(1)])
    assert p[2] == 3 and p[-2] == "x" and len(p) == 5 and type(p[1:3]) is nn.ParameterList and len(p[1:3]) == 2
    p[0] = T.zeros(4)
    assert p[0].shape == (4,) and isinstance(p[0], nn.Parameter) and list(p.state_dict()) == ["0", "1", "4"]
    assert repr(p) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 4]\n"
        "    (1): Parameter containing: [torch.float32 of size ]\n    (2): Object of type: int\n    (3): Object of type: str\n"
        "    (4): Parameter containing: [torch.float32 of size 1]\n)"
    )
    refuses(RuntimeError, "ParameterList should not be called.", lambda: p(1))
    refuses(TypeError, "ParameterList.extend should be called with an iterable, but got int", lambda: p.extend(3))
    refuses(IndexError, "index 9 is out of range", lambda: p[9])
    refuses(
        TypeError, "cannot assign 'int' as parameter '0' (torch.nn.Parameter or None expected)", lambda: p.__setitem__(0, 3)
    )


def test_parameter_dict():
    d = nn.ParameterDict({"b": T.ones(2), "a": 5, "c": A()})
    assert list(d) == ["a", "b", "c"] and isinstance(d["b"], nn.Parameter) and d.a == 5 and len(d) == 3 and "b" in d
    assert list(nn.ParameterDict([("b", 1), ("a", 2)])) == ["b", "a"] == list(nn.ParameterDict(OrderedDict(b=1, a=2)))
    assert repr(d) == (
        "ParameterDict(\n    (a): Object of type: int\n    (b): Parameter containing: [torch.FloatTensor of size 2]\n"
        "    (c): Object of type: A\n  (c): A()\n)"
    )
    assert list(reversed(d)) == ["c", "b", "a"] and list(d.keys()) == ["a", "b", "c"] and list(d.values())[0] == 5
    assert list(d.items())[0] == ("a", 5) and d.get("no") is None and d.get("a") == 5 and d.get("no", 1) == 1
    assert isinstance(d.setdefault("d", T.ones(1)), nn.Parameter) and d.setdefault("a", 1) == 5
    other = d.copy()
    assert other["b"] is d["b"] and list(other) == list(d)
    assert list(d | {"z": 1}) == ["a", "b", "c", "d", "z"] and list({"z": 1} | d) == ["z", "a", "b", "c", "d"]
    d |= {"e": 1}
    assert d.pop("e") == 1 and d.popitem()[0] == "d" and list(d) == ["a", "b", "c"]
    del d["a"]
    assert not hasattr(d, "a")
    d.clear()
    assert len(d) == 0 and not list(d.parameters())
    assert list(d.fromkeys(["x", "y"], T.ones(1))) == ["x", "y"]
    refuses(RuntimeError, "ParameterDict should not be called.", lambda: d(1))
    refuses(KeyError, "popitem(): dictionary is empty", lambda: d.popitem())
    refuses(
        TypeError,
        "ParametersDict.update should be called with an iterable of key/value pairs, but got int",
        lambda: d.update(3),
    )
    refuses(TypeError, "ParameterDict update sequence element #0 should be Iterable; isint", lambda: d.update([3]))
    refuses(
        TypeError,
        "Index given to ParameterDict cannot be used as a key as it is not a string (type is 'int').",
        lambda: nn.ParameterDict({3: 4}),
    )


def test_subclasses_keep_their_class():
    class Mine(nn.ModuleList):
        pass

    assert type(Mine([A(), B()])[:1]) is Mine
    with pytest.warns(FutureWarning, match="^`nn.Container` is deprecated"):
        assert type(nn.Container(x=A()).x) is A
