"""Reasons why a function runs as it is: each with its words and its line."""

import array
import inspect
import random
import threading
import time

import gradiron as torch
import pytest
from gradiron import nn

CASES = []


def case(words):
    """Register a function that cannot be captured: its line is the one that ends in `# here`."""

    def keep(function):
        CASES.append(pytest.param(function, words, id=function.__name__))
        return function

    return keep


class Plain:
    pass


OLD = Plain()
OLD.values, OLD.table, OLD.group, OLD.count = [1.0], {"a": 1}, {1}, 0
OLD.tensor, OLD.leaf = torch.ones(3), torch.ones(3, requires_grad=True)
OLD.hooked = torch.ones(3, requires_grad=True)
OLD.hooked.register_hook(abs)
OLD.generator = (i for i in range(1000))
OLD.bytes = array.array("f", [1.0, 2.0])
STREAM = open(__file__)  # noqa: SIM115


class WithSlots:
    __slots__ = ("value",)


class WithOwnGetattribute:
    def __getattribute__(self, name):
        return 3


class Overriding(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


OWN, TAGGED = WithOwnGetattribute(), torch.ones(3).as_subclass(Overriding)


@torch.compiler.disable
def disabled(x):
    return x + 1


@torch.compiler.disable(reason="it talks to a robot")
def disabled_with_reason(x):
    return x + 1


@case("it calls time.time, a C function that is not known to be free of hidden inputs and outputs")
def asks_the_time(x):
    return x * (time.time() > 0)  # here


@case("it calls print, a C function that is not known")
def prints(x):
    print(end="")  # here
    return x


@case("it calls random() of a Random, which is not known")
def draws(x):
    return x + 0 * random.random()  # here


@case("it calls readable() of a TextIOWrapper, which is not known")
def reads_a_file(x):
    return x * STREAM.readable()  # here


@case("it calls disabled, which is disabled")
def calls_disabled(x):
    return disabled(x)  # here


@case("it calls disabled_with_reason, which is disabled: it talks to a robot")
def calls_disabled_with_reason(x):
    return disabled_with_reason(x)  # here


@case("it calls graph_break, which is disabled")
def breaks(x):
    torch._dynamo.graph_break()  # here
    return x


@case("it decides by the elements of a tensor after it changed a tensor that is older than the call")
def decides_after_a_write(x):
    x.add_(1)
    return x + 1 if x.sum() > 0 else x  # here


@case("it computes or decides with a number that it read from a tensor (.item())")
def converts(x):
    return x * float(x[0])  # here


@case("it calls tolist() of a tensor")
def lists(x):
    return x * x.tolist()[0]  # here


@case("it calls data_ptr() of a tensor")
def asks_the_address(x):
    return x * (x.data_ptr() > 0)  # here


@case("it reads _version of a tensor")
def asks_the_version(x):
    return x * (x._version >= 0)  # here


@case("it shows a tensor")
def shows(x):
    return x * len(f"{x}")  # here


@case("it sets requires_grad of a tensor that is older than the call")
def sets_requires_grad(x):
    OLD.tensor.requires_grad = not OLD.tensor.requires_grad  # here
    return x


@case("it sets data of a tensor that is older than the call")
def sets_data(x):
    OLD.tensor.data = torch.ones(3)  # here
    return x


@case("it calls unsqueeze_() of a tensor that is older than the call")
def reshapes(x):
    OLD.tensor.unsqueeze_(0)  # here
    return x


@case("it calls resize_() of a tensor")
def resizes(x):
    return x.clone().resize_(2)  # here


@case("it calls register_hook() of a tensor")
def hooks(x):
    OLD.leaf.register_hook(lambda grad: grad)  # here
    return x


@case("a backward that it runs reaches a tensor that has hooks")
def runs_hooks(x):
    (OLD.hooked * x).sum().backward()
    return x


@case("a tensor of class Overriding, which has __torch_function__")
def overrides(x):
    return x + TAGGED.sum()  # here


@case("it takes the next of a generator that is older than the call")
def takes_next(x):
    return x * next(OLD.generator)  # here


@case("it iterates over a generator that is older than the call")
def iterates(x):
    for i in OLD.generator:  # here
        return x * i
    return x


@case("__getattribute__ in")
def own_getattribute(x):
    return x * OWN.anything  # here


@case("it passes a array to a function of C")
def passes_a_buffer(x):
    return x[0] + torch.tensor(OLD.bytes)  # here


@case("it calls eval() in line")
def evaluates(x):
    return x * eval("3")


@case("it defines a class, Inner")
def defines_a_class(x):
    class Inner:
        k = 3

    return x * Inner.k


@case("it has an async function")
def defines_a_coroutine(x):
    async def inner():
        return 3

    return x


@case("it reads a list that it changed before")
def reads_what_it_changed(x):
    OLD.values.append(2.0)
    return x * len(OLD.values)  # here


@case("it changes a dict that is older than the call by |=")
def adds_in_place(x):
    table = OLD.table
    table |= {"c": 1}  # here
    return x


@case("it deletes an item of a dict that is older than the call")
def deletes(x):
    OLD.table["b"] = 1
    del OLD.table["b"]  # here
    return x


@case("it calls add() of a set that is older than the call")
def adds_to_a_set(x):
    OLD.group.discard(5)
    OLD.group.add(5)  # here
    OLD.group.discard(5)
    return x


@case("it changes class Plain")
def changes_a_class(x):
    Plain.k = OLD.count  # here
    OLD.count += 1
    return x


@case("it returns or stores a WithSlots that it made")
def returns_an_object(x):
    return WithSlots()


@case("'count' of a Plain differs from call to call")
def counts(x):
    OLD.count += 1
    return x.repeat(OLD.count)


@case("it leaves a mode of the thread changed")
def leaves_a_mode(x):
    torch.set_grad_enabled(not torch.is_grad_enabled())
    return x


@case("it asks whether a str is the same object as another")
def compares_identity(x):
    return x if str(OLD.count) is str(3) else x + 1  # here


@case("it compares a _ObjectId")
def asks_for_an_id(x):
    return x * (id([]) > 0)  # here


@case("it sorts by tensors or objects")
def sorts_tensors(x):
    return sorted([x, x + 1], key=torch.sum)[0]  # here


@case("which is not known to be free of hidden inputs and outputs")
def starts_a_thread(x):
    threading.Thread(target=len, args=("",)).start()
    return x


@pytest.fixture(autouse=True)
def _old():
    yield
    torch.set_grad_enabled(True)
    OLD.tensor = torch.ones(3)
    OLD.values, OLD.count = [1.0], 0


def lines(function):
    source, first = inspect.getsourcelines(function)
    return [first + number for number, line in enumerate(source) if line.rstrip().endswith("# here")]


@pytest.mark.parametrize(("function", "words"), CASES)
def test_the_reason_is_told_with_its_line(function, words):
    compiled, x = torch.compile(function), torch.tensor([1.0, 2.0, 3.0])
    for _ in range(12):
        compiled(x)
    reasons = compiled._compiled.reasons
    assert reasons, "it was captured"
    assert words in reasons[0].words, reasons
    if lines(function):
        assert [reasons[0].line] == lines(function), reasons
    assert str(torch._dynamo.explain(compiled)).count(reasons[0].words) == 1


def test_fullgraph_raises_with_the_line():
    compiled = torch.compile(prints, fullgraph=True)
    x = torch.ones(3)
    compiled(x)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"it calls print.*test_reasons.py:{lines(prints)[0]}\)"):
        compiled(x)
    assert torch.compiler.is_compiling() is False
    whole = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
    assert [whole(x).tolist() for _ in range(3)] == [[3.0] * 3] * 3


def test_a_reason_inside_a_module_names_the_user_s_line():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            print(end="")  # here
            return self.layer(x)

    model = Model()
    compiled = torch.compile(model)
    for _ in range(3):
        compiled(torch.ones(3))
    (reason,) = compiled._compiled.reasons
    assert (reason.file, reason.line) == (__file__, lines(Model.forward)[0])


def test_logs_tell_reasons_and_recompiles(monkeypatch, capsys):
    monkeypatch.setenv("TORCH_LOGS", "graph_breaks,recompiles,+guards")
    factor = 2

    def scaled(x):
        return x * factor

    compiled, printing = torch.compile(scaled), torch.compile(prints)
    x = torch.ones(3)
    for _ in range(3):
        compiled(x)
        printing(x)
    factor = 3
    compiled(x)
    told = capsys.readouterr().err
    assert "prints runs as it is: it calls print" in told
    assert "a variable of an enclosing function differs from the captured call" in told
    assert "[guards]" in told
