"""Sizes that an object or a call only claims: refused, without the memory for them and without an end of the process.

Each entry runs under a memory cap, in one process of its own, which would die of an allocation that cannot be refused.
"""

import pytest

from library import python_ok

LIARS = """
import resource, itertools

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

class Long:
    'A sequence that claims more than it has.'
    def __init__(self, claimed, have=3):
        self.claimed, self.have = claimed, have
    def __len__(self):
        return self.claimed
    def __getitem__(self, i):
        if not 0 <= i < self.have:
            raise IndexError("no such element")
        return 1

class Endless(Long):
    def __getitem__(self, i):
        return 1

class LongTuple(tuple):
    def __len__(self):
        return 2**62

class LongList(list):
    def __len__(self):
        return 2**62

class Array:
    def __init__(self, **told):
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": (2,), "data": (0, False), **told}

def refused(what, call):
    try:
        made = call()
    except (RuntimeError, MemoryError, IndexError, ValueError, TypeError, OverflowError):
        return
    raise AssertionError(f"{what} gave {type(made)}")

SIZES = [2**31, 2**40, 2**62]
x = T.ones(3)
"""

ENTRIES = {
    "tensor": "T.tensor(seq)",
    "tensor with a dtype": "T.tensor(seq, dtype=T.int8)",
    "nested": "T.tensor([seq, seq])",
    "as_tensor": "T.as_tensor(seq)",
    "asarray": "T.asarray(seq)",
    "Tensor": "T.Tensor(seq)",
    "LongTensor": "T.LongTensor(seq)",
    "new_tensor": "x.new_tensor(seq)",
    "index": "x[seq]",
    "index in a tuple": "x[seq, None]",
    "assignment": "x.__setitem__(slice(None), seq)",
    "assignment to an index": "x.__setitem__(seq, 1.0)",
    "resize_": "x.resize_(seq)",
    "set_": "x.set_(x.untyped_storage(), 0, seq, (1,))",
    "set_ with strides": "x.set_(x.untyped_storage(), 0, (1,), seq)",
    "view": "x.view(seq)",
    "zeros": "T.zeros(seq)",
    "permute": "x.permute(seq)",
    "sum": "x.sum(seq)",
    "cat": "T.cat(seq)",
    "stack": "T.stack(seq)",
    "einsum": "T.einsum(x, seq)",
    "split": "x.split(seq)",
    "tensordot": "T.tensordot(x, x, (seq, seq))",
    "backward": "T.autograd.backward(seq)",
    "grad": "T.autograd.grad(seq, x)",
    "Size": "T.zeros(T.Size(seq))",
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_sequence_that_is_shorter_than_it_says(entry):
    python_ok(f"""{LIARS}
for n in SIZES:
    for seq in (range(n), Long(n)):
        refused({entry!r}, lambda: {ENTRIES[entry]})
""")


@pytest.mark.gradiron
@pytest.mark.parametrize("entry", ["tensor", "as_tensor", "Tensor", "new_tensor", "index", "assignment", "cat"])
def test_subclasses_of_tuple_and_list_that_lie(entry):
    python_ok(f"""{LIARS}
for seq in (LongTuple((1, 2)), LongList([1, 2]), Endless(2**40), Endless(2**62)):
    refused({entry!r}, lambda: {ENTRIES[entry]})
""")


COUNTS = [
    "T.chunk(T.zeros(0), n)",
    "T.unsafe_chunk(T.zeros(0), n)",
    "T.tensor_split(T.ones(2), n)",
    "T.hsplit(T.ones(0), n)",
    "T.vsplit(T.ones(0, 2), n)",
    "T.dsplit(T.ones(2, 2, 0), n)",
    "T.zeros(n, 0).unbind()",
    "T.zeros(n, 0).split(1)",
    "T.zeros(n, 0).tolist()",
    "list(T.zeros(n, 0))",
    "T.ones(1).repeat(n)",
    "T.ones(1).tile(n)",
    "T.ones(1).repeat_interleave(n)",
    "T.repeat_interleave(T.tensor([n]))",
    "T.eye(n)",
    "T.arange(n)",
    "T.linspace(0, 1, n)",
    "T.randperm(n)",
    "T.zeros(n)",
    "T.ones(1).expand(n).clone()",
    "T.ones(1).expand(n).tolist()",
    "T.tril_indices(n, n)",
    "T.nn.functional.one_hot(T.tensor([0]), n)",
    "T.multinomial(T.ones(2), n, replacement=True)",
    "T.cartesian_prod(*[T.ones(1).expand(n)] * 2)",
    "T.combinations(T.arange(100), n)",
    "T.ones(1).unfold(0, 1, 1).expand(1, n).sort()",
    "T.normal(T.ones(1).expand(n), T.ones(1).expand(n))",
    "T.bernoulli(T.ones(1).expand(n))",
    "T.nn.functional.binary_cross_entropy(T.ones(1).expand(n), T.ones(1).expand(n), reduction='none')",
]


@pytest.mark.gradiron
@pytest.mark.parametrize("call", COUNTS)
def test_more_parts_or_copies_than_memory(call):
    python_ok(f"""{LIARS}
for n in (2**31 - 1, 2**32, 2**62):
    try:
        call = lambda: {call}
        call()
    except AttributeError:
        break
    except (RuntimeError, MemoryError, ValueError, TypeError, OverflowError):
        continue
    raise AssertionError(n)
""")


def test_nothing_repeated_often_is_nothing():
    python_ok("""
assert T.ones(2).repeat(2, 2**63 - 1, 0).shape == (2, 2**63 - 1, 0)
assert T.ones(0).repeat(2**63 - 1).shape == (0,)
assert "size=" in repr(T.ones(2).repeat(2, 2**63 - 1, 0))
""")


@pytest.mark.gradiron
def test_arrays_that_describe_no_memory():
    python_ok(f"""{LIARS}
null = Array()
huge = Array(shape=(2**62, 2**62), data=(4096, False))
negative = Array(shape=(-1,), data=(4096, False))
strides = Array(shape=(3,), strides=(2**62,), data=(4096, False))
uneven = Array(shape=(3,), strides=(4, 4), data=(4096, False))
lying = Array(shape=Long(2**62), data=(4096, False))
for array in (null, huge, negative, strides, uneven, lying):
    for make in (T.tensor, T.as_tensor, T.asarray, T.from_numpy, lambda a: T.tensor([a, a])):
        refused(vars(array), lambda: make(array))
assert T.from_dlpack(T.ones(2)).tolist() == [1.0, 1.0]
""")


@pytest.mark.gradiron
def test_ctrl_c_ends_the_reading_of_a_long_sequence():
    python_ok("""
import signal, threading, _thread
class Slow:
    def __len__(self):
        return 10**7
    def __getitem__(self, i):
        return 1.0
threading.Timer(0.3, _thread.interrupt_main).start()
try:
    T.tensor([Slow()] * 10)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("read to its end")
""")


SMALL = """
import resource

# Address space for what a case makes; threads and caches are there already.
T.rand(100_000).sort()
with open("/proc/self/statm") as f:
    now = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (24 << 20), resource.RLIM_INFINITY))

x = T.ones(1000)
leaf = T.ones(3, requires_grad=True)
recorded = leaf * 2

def chain(step):
    y = T.ones(3, requires_grad=True)
    while True:
        y = step(y)

def more(make):
    kept = []
    while True:
        kept.append(make())

def ended(call):
    try:
        call()
    except (T.OutOfMemoryError, MemoryError):
        return
    raise AssertionError("no end")
"""

CHAINS = ["y + 1", "y.view(3)", "y[:]", "y.exp()", "y.sum().expand(3)"]
HEAPS = [
    "T.ones(1)",
    "x.clone()",
    "x.unbind()",
    "x.tolist()",
    "x[0]",
    "x.sort()",
    "T.empty(100_000)",
    "T.tensor([1.0, 2.0])",
    "T.matmul(x, x)",
    "x.split(1)",
    "x.shape",
    "x.view(1, 10, 1, 10, 1, 10).shape",
    "x.stride()",
    "x.numel()",
    "x.data_ptr()",
    "x.storage_offset() + 2**40",
    "float(x[1])",
    "x[1].item()",
    "x.max(0)",
    "recorded.grad_fn",
    "recorded.grad_fn.next_functions",
    "T.autograd.grad(recorded.sum(), leaf, retain_graph=True)",
    "str(x.dtype)",
]


@pytest.mark.gradiron
@pytest.mark.parametrize("step", CHAINS)
def test_a_chain_until_memory_is_gone(step):
    """What each step needs is small. The last one is refused, and the next works once there is room again."""
    python_ok(f"""{SMALL}
ended(lambda: chain(lambda y: {step}))
assert (T.ones(2) + 1).tolist() == [2.0, 2.0]
""")


@pytest.mark.gradiron
@pytest.mark.parametrize("make", HEAPS)
def test_many_small_things_until_memory_is_gone(make):
    """The same of what a list keeps: tensors, and the numbers, tuples and lists that tell of them."""
    python_ok(f"""{SMALL}
ended(lambda: more(lambda: {make}))
assert (T.ones(2) + 1).tolist() == [2.0, 2.0]
""")


STARVED = """
import resource

F, N = T.nn.functional, 1 << 20
T.rand(100_000).sort()

def room():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()

def starved(call):
    '''Calls with more and more room, until there is enough; what kernels need beside their results is refused before.'''
    for more in (0, 4, 12, 24, 48, 96, 200, 400, 1000, 4000):
        resource.setrlimit(resource.RLIMIT_AS, (room() + (more << 20), resource.RLIM_INFINITY))
        try:
            return call()
        except (T.OutOfMemoryError, MemoryError):
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    raise AssertionError("never enough")

def trained(f, *shapes):
    xs = [T.rand(*shape, requires_grad=True) for shape in shapes]
    return lambda: f(*xs).sum().backward()

"""

# Their kernels list something for each channel, sample, place, step or tensor, or keep a matrix of their own.
HUNGRY = {
    "fft": "lambda x=T.rand(N): T.fft.fft(x)",
    "fft of a prime length": "lambda x=T.rand(300_007): T.fft.fft(x)",
    "eigh": "lambda x=T.eye(300): T.linalg.eigh(x)",
    "svd": "lambda x=T.eye(200, 20).repeat(100, 1): T.linalg.svd(x, full_matrices=False)",
    "batch_norm": "trained(lambda x: F.batch_norm(x, None, None, training=True), (2, N // 2))",
    "batch_norm of planes": "trained(lambda x: F.batch_norm(x, None, None, training=True), (1, N // 2, 2))",
    "instance_norm": "trained(lambda x: F.instance_norm(x), (1, N // 2, 2))",
    "group_norm": "trained(lambda x: F.group_norm(x, N // 4), (1, N // 2, 1))",
    "conv of channels": "trained(F.conv2d, (1, N // 8, 1, 1), (1, N // 8, 1, 1))",
    "conv of taps": "trained(lambda x, w: F.conv2d(x, w, padding=1), (1, N // 64, 2, 2), (2, N // 64, 2, 2))",
    "conv of rows": "trained(lambda x, w: F.conv2d(x, w), (1, 1, N // 4, 2), (1, 1, 2, 2))",
    "interpolate": "trained(lambda x: F.interpolate(x, size=N // 8, mode='linear'), (1, 1, N // 8))",
    "pool": "trained(lambda x: F.adaptive_avg_pool1d(x, N // 8), (1, 1, N // 4))",
    "pdist": "lambda x=T.rand(700, 2): F.pdist(x)",
    "nonzero": "lambda x=T.ones(N): x.nonzero()",
    "repeat_interleave": "lambda n=T.ones(N, dtype=T.int64): T.repeat_interleave(n)",
    "multi_dot": "lambda xs=[T.ones(1, 1)] * 150: T.linalg.multi_dot(xs)",
    "ctc_loss": "lambda x=T.zeros(1, N // 8, 2).log_softmax(2), t=T.ones(N // 8, 1, dtype=T.int64),"
    " n=T.ones(N // 8, dtype=T.int64): F.ctc_loss(x, t, n, n)",
    "cat": "lambda xs=[T.ones(1)] * (N // 4): T.cat(xs)",
    "stack, backward": "lambda xs=[T.ones(1, requires_grad=True)] * (N // 16): T.stack(xs).sum().backward()",
    "grad of many": "lambda xs=[T.ones(1, requires_grad=True) for _ in range(N // 64)]: T.autograd.grad([x * 2 for x in xs], xs)",
}


@pytest.mark.gradiron
@pytest.mark.parametrize("name", HUNGRY)
def test_kernels_with_too_little_room(name):
    python_ok(f"{STARVED}\nstarved({HUNGRY[name]})\n")


WINDOWS = [
    "F.adaptive_avg_pool1d(T.ones(1, 1, 4), n)",
    "F.interpolate(T.ones(1, 1, 4), n)",
    "F.interpolate(T.ones(1, 1, 4), n, mode='linear')",
    "F.max_pool1d(T.ones(1, 1, 4), 2 * n, padding=n)",
    "F.max_pool1d(T.ones(1, 1, 4), 2 * n, padding=n, stride=1)",
    "F.avg_pool1d(T.ones(1, 1, 4), 2 * n, padding=n, stride=1)",
    "F.unfold(T.ones(1, 1, 4, 4), 2, padding=n)",
    "T.tensor_split(T.ones(2), T.zeros(1, dtype=T.int64).expand(n))",
    "T.vmap(lambda x: T.nn.functional.unfold(x, 1))(T.zeros(n, 1, 0, 0))",
]


@pytest.mark.gradiron
@pytest.mark.parametrize("call", WINDOWS)
def test_more_windows_than_memory(call):
    """Kernels list their windows and taps: what there is no room for is refused before."""
    python_ok(f"""{LIARS}
F = T.nn.functional
for n in (2**28 + 8, 2**33, 2**61):
    try:
        {call}
    except (RuntimeError, MemoryError, ValueError, TypeError, OverflowError):
        continue
    raise AssertionError(n)
""")


LONG = """
text, many = "a" * (80 << 20), (1,) * (2 << 20)
x = T.ones(4, 4)

def refused(call):
    '''Ends in an error, with more and more room, or with none of memory's.'''
    for more in (0, 12, 48, 96, 200, 500):
        resource.setrlimit(resource.RLIMIT_AS, (room() + (more << 20), resource.RLIM_INFINITY))
        try:
            call()
            return
        except (T.OutOfMemoryError, MemoryError):
            pass
        except Exception:
            return
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
"""

TEXTS = [
    "T.device(text)",
    "x.to(text)",
    "T.einsum(text, x)",
    "T.add(x, x, **{text: 1})",
    "x.norm(text)",
    "T.div(x, x, rounding_mode=text)",
    "F.mse_loss(x, x, reduction=text)",
    "T.Generator(text)",
]
LISTS = [
    "T.zeros(many)",
    "T.zeros(list(many))",
    "x.view(many)",
    "x.reshape(many)",
    "x.view(*many)",
    "x.add(*[x] * len(many))",
    "x.repeat(many)",
    "x.sum(many)",
    "x[many]",
    "x.__setitem__(many, 1)",
    "x.split(many)",
    "x.as_strided(many, many)",
    "F.conv2d(x, x, stride=many)",
    "T.fft.fftn(x, dim=many)",
]


@pytest.mark.gradiron
@pytest.mark.parametrize("call", TEXTS + LISTS)
def test_texts_and_lists_beyond_memory(call):
    """What an operator and its message make of them is refused before, where there is no room for it."""
    python_ok(f"{STARVED}\n{LONG}\nrefused(lambda: {call})\n")


# What is named by a text of the caller's: attributes, keywords, classes, files, messages.
NAMES = [
    "getattr(recorded.grad_fn, text)",
    "getattr(recorded.grad_fn, '_saved_' + text)",
    "setattr(recorded.grad_fn, text, 1)",
    "delattr(recorded.grad_fn, text)",
    "x.backward(**{text: 1})",
    "T.zeros(3, layout=text)",
    "T.vmap(lambda a: a, randomness=text)(x)",
    "forbidden(text)",
    "failing(text)",
    "recorded + type(text, (), {})()",
    "T.tensor([type(text, (), {})()])",
    "anomaly(compile('y = leaf.exp() * float(\"nan\")\\ny.sum().backward()', text, 'exec'))",
]
NAMED = """
leaf = T.ones(3, requires_grad=True)
recorded = leaf * 2

def forbidden(text):
    with T.autograd.graph.disable_saved_tensors_hooks(text):
        with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            leaf.exp()

def failing(text):
    parts = {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, g: (1, 2))}
    made = type(text, (T.autograd.Function,), parts).apply(leaf)
    repr(made), made.grad_fn.name(), repr(made.grad_fn)
    made.sum().backward()

def anomaly(code):
    with T.autograd.detect_anomaly():
        exec(code, globals())
"""


@pytest.mark.gradiron
@pytest.mark.parametrize("call", NAMES)
def test_names_beyond_memory(call):
    """What messages repeat of them is asked for before, or cut."""
    python_ok(f"{STARVED}\n{LONG}\n{NAMED}\nrefused(lambda: {call})\n")


# So many that their lists alone are beyond the reserve, each of them small.
CROWDS = {
    "hooks of a tensor": "[leaf.register_hook(lambda g: None) for _ in range(N // 4)], (leaf * 2).sum().backward()",
    "hooks of a node": "[y.grad_fn.register_prehook(lambda g: None) for _ in range(N // 4)], y.sum().backward()",
    "kept gradients": "[part.retain_grad() for part in leaf.expand(N // 16, 3).unbind()]",
    "saved tensors": "Many.apply(*[leaf] * (N // 8)).sum().backward()",
    "next functions": "T.stack([leaf] * (N // 8)).grad_fn.next_functions",
    "keywords": "T.add(leaf, leaf, **{str(i): 1 for i in range(N // 8)})",
    "inputs": "T.autograd.grad((leaf * 2).sum(), [leaf] * (N // 8))",
    "leaves as outputs": "(lambda all: T.autograd.grad(all, all, all))([T.ones(1, requires_grad=True) for _ in range(N // 10)])",
    "leaves as inputs": "(lambda all: Many.apply(*all).sum().backward())([T.ones(1, requires_grad=True) for _ in range(N // 10)])",
    "leaves of a transform": "T.func.vjp(lambda *all: all[0] * 2, *[T.ones(1) for _ in range(N // 16)])",
    "meshgrid": "T.meshgrid(*[T.ones(1)] * 2000, indexing='ij')",
    "leaves of one node": "T.cat([T.ones(1, requires_grad=True) for _ in range(N // 16)]).sum().backward()",
    "leaves in anomaly mode": "told(lambda: T.cat([T.ones(1, requires_grad=True) for _ in range(N // 32)]))",
}
MANY = """
leaf = T.ones(3, requires_grad=True)
y = leaf * 2

def told(call):
    with T.autograd.detect_anomaly():
        call()

class Many(T.autograd.Function):
    @staticmethod
    def forward(ctx, *all):
        ctx.save_for_backward(*all)
        return all[0] * 2
    @staticmethod
    def backward(ctx, g):
        return (g,) * len(ctx.saved_tensors)
"""


@pytest.mark.gradiron
@pytest.mark.parametrize("name", CROWDS)
def test_crowds_beyond_memory(name):
    python_ok(f"{STARVED}\n{LONG}\n{MANY}\nrefused(lambda: ({CROWDS[name]}))\n")
