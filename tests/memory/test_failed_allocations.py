"""Python's own allocations fail, one after another, while calls run: what follows is an exception, never a death or a panic."""

import inspect
import sys

import pytest

from library import Square, python_ok

pytest.importorskip("_testcapi")
pytestmark = pytest.mark.gradiron

# Each call is made with the k-th allocation failing, alone and with those after it, for k from 1 until enough calls in a row
# ended as if nothing had failed. (More failures in a row than these, and Python itself does not come back from some.)
FAILING = """
import _testcapi

x, v, i = T.ones(4, 4), T.ones(8), T.tensor([0, 1])
leaf = T.ones(3, requires_grad=True)
y = leaf * 2
F = T.nn.functional

def starved(call):
    for _ in range(2):
        try:
            call()
        except Exception:
            pass
    for many in (1, 12):
        k = quiet = 0
        while quiet < 12 + many and k < 2000:
            k += 1
            quiet += 1
            try:
                _testcapi.set_nomemory(k, k + many)
                call()
                _testcapi.remove_mem_hooks()
            except Exception as error:
                _testcapi.remove_mem_hooks()
                text = str(error)
                if isinstance(error, MemoryError):
                    quiet = 0
                assert "internal check" not in text and "null" not in text, (k, text)
            # A panic is no Exception: it ends the test here.
"""

CALLS = {
    "arithmetic": [
        "x + x",
        "1 + x",
        "x + 'a'",
        "T.add(x, x, out=T.ones(4, 4))",
        "T.add(x, x, foo=1)",
        "x == 'a'",
        "x @ v",
        "x.add_('a')",
    ],
    "views": [
        "x.view(3)",
        "x[1:3]",
        "x[i]",
        "x[99]",
        "x['a']",
        "x.clone().__setitem__(0, 'a')",
        "x.permute(1, 5)",
        "x.split(2)",
    ],
    "properties": [
        "x.shape",
        "x.stride()",
        "x.T",
        "leaf.is_leaf",
        "x.size(9)",
        "x.foo",
        "x.type()",
        "x.names",
        "x.untyped_storage()",
    ],
    "texts": ["repr(x)", "str(x.dtype)", "repr(x.device)", "repr(y)", "T.viz.graph(y.sum())"],
    "numbers": ["x.tolist()", "x[0, 0].item()", "float(x[0, 0])", "bool(x)", "hash(x)", "list(x)", "x.numel() * 2**40"],
    "making": ["T.tensor([[1, 2], [3, 4]])", "T.tensor([1, 'a'])", "T.zeros(-1)", "T.zeros('a')", "T.rand(3)", "T.Size(['a'])"],
    "devices": ["T.device('cuda:1')", "T.device('foo')", "T.device('cpu').type", "x.to('foo')", "x.to(T.float64)"],
    "several": ["x.max(1)", "x.sort()", "x.unbind()", "T.cat([x, v])", "T.linalg.svd(x)", "T.linalg.inv(T.zeros(3, 3))"],
    "nn": ["F.linear(x, v)", "F.conv2d(x, x)", "F.cross_entropy(x, T.arange(4))", "T.nn.Linear(2, 2)", "T.nn.Parameter(x)"],
    "assigned": [
        "setattr(leaf, 'grad', T.ones(4))",
        "setattr(leaf, 'grad', 1)",
        "setattr(leaf, 'requires_grad', 'a')",
        "setattr(T.ones(3), 'data', 4)",
        "setattr(leaf, 'foo', 1)",
    ],
    "backward": [
        "(leaf * 2).sum().backward()",
        "x.backward()",
        "T.autograd.grad((leaf * 2).sum(), leaf, create_graph=True)",
        "T.autograd.grad(y.sum(), x)",
        "Square.apply(leaf).sum().backward()",
        "T.utils.checkpoint.checkpoint(lambda a: a * 2, leaf, use_reentrant=False)",
    ],
    "nodes": [
        "y.grad_fn.name()",
        "y.grad_fn.next_functions",
        "y.grad_fn.metadata",
        "y.grad_fn._saved_self",
        "y.grad_fn._raw_saved_self",
        "y.grad_fn.register_hook(lambda a, b: None).remove()",
        "T.autograd.graph.get_gradient_edge(y)",
    ],
    "hooks": [
        "leaf.register_hook(lambda g: g * 2).remove()",
        "leaf.register_post_accumulate_grad_hook(lambda p: None).remove()",
        "x.register_hook(1)",
        "x.register_hook()",
        "y.retain_grad()",
    ],
    "func": [
        "T.vmap(lambda a: a * 2)(x)",
        "T.func.jvp(lambda a: a * a, (v,), (v,))",
        "T.func.grad(lambda a: (a * a).sum())(v)",
    ],
    "modes": [
        "T.set_num_threads(-2)",
        "T.set_num_threads('a')",
        "T.set_default_dtype(T.int64)",
        "T.can_cast(1, 2)",
        "T.no_grad().__enter__()",
    ],
    "elsewhere": ["T.from_dlpack(x)", "__import__('copy').deepcopy(x)", "__import__('pickle').dumps(x)", "T.Generator('foo')"],
}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="CPython itself dies when memory fails while it makes a function")
@pytest.mark.parametrize("topic", CALLS)
def test_python_has_no_memory(topic):
    calls = "".join(f"starved(lambda: {call})\n" for call in CALLS[topic])
    python_ok(f"{inspect.getsource(Square)}\n{FAILING}\n{calls}\nassert (T.ones(2) + 1).tolist() == [2.0, 2.0]\n")
