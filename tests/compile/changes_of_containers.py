"""Changes of lists, dicts and sets that a compiled function reads."""

import collections

import gradiron as torch
from changes import case, setter


@case
def list_appended():
    own = [1, 2]

    def f(x):
        return x * sum(own)

    return f, lambda: own.append(5), own.pop, own.clear


@case
def list_element():
    own = [1, 2, 3]

    def f(x):
        return x * own[1]

    return f, lambda: own.__setitem__(1, 7), own.reverse, lambda: own.insert(0, 9)


@case
def list_last_element():
    own = [1, 2, 3]

    def f(x):
        return x * own[-1]

    return f, lambda: own.append(9), lambda: own.__delitem__(0)


@case
def list_slice():
    own = [1, 2, 3]

    def f(x):
        return x * sum(own[:2])

    return f, lambda: own.__setitem__(1, 7), lambda: own.__setitem__(slice(0, 1), [4, 4])


@case
def list_length():
    own = [1, 2, 3]

    def f(x):
        return x * len(own)

    return f, own.pop, lambda: own.extend([1, 2])


@case
def list_truth():
    own = [1]

    def f(x):
        return x + 1 if own else x - 1

    return f, own.clear, lambda: own.append(0)


@case
def list_of_lists():
    own = [[1], [2, 3]]

    def f(x):
        for row in own:
            for value in row:
                x = x + value
        return x

    return f, lambda: own[1].append(4), lambda: own[0].__setitem__(0, 8), lambda: own.append([1])


@case
def list_unpacked():
    own = [1, 2]

    def f(x):
        a, b = own
        return x * a + b

    return f, lambda: own.__setitem__(0, 4), own.reverse


@case
def list_starred():
    own = [1, 2]

    def f(x):
        return x * max(*own)

    return f, lambda: own.append(6), own.pop


@case
def list_contains():
    own = [1, 2]

    def f(x):
        return x + 1 if 3 in own else x

    return f, lambda: own.append(3), own.pop


@case
def list_comprehension():
    own = [1, 2]

    def f(x):
        return x * sum([i * i for i in own if i > 1])

    return f, lambda: own.append(3), lambda: own.__setitem__(0, 5)


@case
def list_compared():
    own = [1, 2]

    def f(x):
        return x + 1 if own == [1, 2] else x

    return f, lambda: own.append(3), own.pop


@case
def list_added():
    own = [1, 2]

    def f(x):
        return x * sum(own + [3])

    return f, lambda: own.append(3), own.pop


@case
def list_copied():
    own = [1, 2]

    def f(x):
        mine = list(own)
        mine.append(4)
        return x * sum(mine)

    return f, lambda: own.append(3), own.pop


@case
def list_sorted():
    own = [3, 1]

    def f(x):
        return x * sorted(own)[0]

    return f, lambda: own.append(0), own.pop


@case
def list_joined():
    own = ["a", "b"]

    def f(x):
        return x * len("-".join(own))

    return f, lambda: own.append("cc"), own.clear


@case
def list_of_tensors_stacked():
    own = [torch.ones(3), torch.ones(3)]

    def f(x):
        return x * torch.stack(own).sum(0)

    return f, lambda: own.append(torch.ones(3)), lambda: own.__setitem__(0, torch.full((3,), 5.0))


@case
def list_shown():
    own = [1, 2]

    def f(x):
        return x * len(f"{own}")

    return f, lambda: own.append(300), own.clear


@case
def dict_item():
    own = {"a": 1, "b": 2}

    def f(x):
        return x * own["a"]

    return f, lambda: own.update(a=5), lambda: own.update(a=1, c=2)


@case
def dict_get():
    own = {}

    def f(x):
        return x * own.get("a", 3)

    return f, lambda: own.update(a=5), own.clear


@case
def dict_contains():
    own = {}

    def f(x):
        return x + 1 if "a" in own else x

    return f, lambda: own.update(a=5), own.clear


@case
def dict_keys():
    own = {"a": 1}

    def f(x):
        for key in own:
            x = x + len(key)
        return x

    return f, lambda: own.update(bb=5), lambda: own.pop("a")


@case
def dict_values():
    own = {"a": 1}

    def f(x):
        return x * sum(own.values())

    return f, lambda: own.update(a=5), lambda: own.update(b=5)


@case
def dict_items():
    own = {"a": 1}

    def f(x):
        for key, value in own.items():
            x = x * value + len(key)
        return x

    return f, lambda: own.update(a=5), lambda: own.update(bb=5), own.clear


@case
def dict_length():
    own = {"a": 1}

    def f(x):
        return x * len(own)

    return f, lambda: own.update(b=5), own.clear


@case
def dict_truth():
    own = {}

    def f(x):
        return x + 1 if own else x

    return f, lambda: own.update(b=5), own.clear


@case
def dict_copy():
    own = {"a": 1}

    def f(x):
        mine = own.copy()
        return x * mine["a"]

    return f, lambda: own.update(a=5), lambda: own.update(a=6)


@case
def dict_unpacked():
    own = {"other": 2.0}

    def f(x):
        return torch.mul(x, **own)

    return f, lambda: own.update(other=3.0), lambda: own.update(other=4.0)


@case
def dict_merged():
    own = {"a": 2}

    def f(x):
        return x * {**own, "b": 1}["a"]

    return f, lambda: own.update(a=3), lambda: own.update(a=4)


@case
def dict_by_object():
    class Key:
        pass

    key = Key()
    own = {key: 2}

    def f(x):
        return x * own[key]

    return f, lambda: own.update({key: 3}), lambda: own.update({key: 4})


@case
def default_dict():
    own = collections.defaultdict(int, a=2)

    def f(x):
        return x * own["a"]

    return f, lambda: own.update(a=3), lambda: own.update(a=4)


@case
def ordered_dict():
    own = collections.OrderedDict(a=1, b=2)

    def f(x):
        for value in own.values():
            x = x * 2 + value
        return x

    return f, lambda: own.move_to_end("a"), lambda: own.pop("b")


@case
def set_contains():
    own = {1}

    def f(x):
        return x + 1 if 2 in own else x

    return f, lambda: own.add(2), lambda: own.discard(2)


@case
def set_length():
    own = {1}

    def f(x):
        return x * len(own)

    return f, lambda: own.add(2), own.clear


@case
def frozen_set():
    class A:
        own = frozenset([1])

    def f(x):
        return x + 1 if 2 in A.own else x

    return f, setter(A, "own", frozenset([2])), setter(A, "own", frozenset())
