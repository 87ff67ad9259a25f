"""The address space ends while the GPU (here its software) works: an exception follows, never a death, and the next call works."""

import pytest

from library import NO_GPU, gpu_is_software, python, python_ok

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

STARVED = """
import resource

x = T.ones(3, device="cuda")
host, far = T.ones(8 << 20), T.ones(8 << 20, device="cuda")
assert (x + 1).tolist() == [2.0, 2.0, 2.0] and (x * 5)[0].item() == 5
waiting = x * 5
kept, most = [], 0

def room():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()

def starved(call):
    '''Calls with more and more room; whatever became of it, what was asked for before is there, and there is more to be had.'''
    global most
    # Mesa's software compiles a kernel when it runs for the first time, and ends the process where memory does not suffice.
    call()
    most, refused = 1 << 62, 0
    for more in (0, 8, 40, 160):
        T.cuda.empty_cache()
        resource.setrlimit(resource.RLIMIT_AS, (room() + (more << 20), resource.RLIM_INFINITY))
        try:
            call()
        except (T.OutOfMemoryError, MemoryError):
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        kept.clear()
        assert waiting.tolist() == [5.0, 5.0, 5.0]
        assert (x + 1).tolist() == [2.0, 2.0, 2.0]
    return refused

def heap(make):
    make()
    while room() < most:
        kept.append(make())
    kept.clear()
"""

CALLS = [
    "host.to('cuda')",
    "far.cpu()",
    "far.clone()",
    "far.copy_(host)",
    "(far * 2 + 1).sum().item()",
    "heap(lambda: T.empty(1 << 20, device='cuda'))",
    "heap(lambda: far + 1)",
]


@pytest.mark.parametrize("call", CALLS)
def test_the_address_space_ends(call):
    if not gpu_is_software():
        pytest.skip("memory of a GPU takes no addresses")
    for _ in range(3):
        done = python(f"{STARVED}\nassert starved(lambda: {call}) > 0\n")
        # Mesa's threads may still be compiling when the room ends: then Mesa ends the process, and not what is tested here.
        if "LLVM ERROR" not in done.stderr:
            break
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("size", ["1 << 50", "1 << 62", "10**12"])
def test_more_than_one_buffer_may_have(size):
    python_ok(f"""
x = T.ones(3, device="cuda")
for make in (lambda: T.empty({size}, device="cuda"), lambda: x.expand({size}, 3).clone(), lambda: x.repeat({size})):
    try:
        make()
    except (T.OutOfMemoryError, RuntimeError):
        assert (x + 1).tolist() == [2.0, 2.0, 2.0]
    else:
        raise AssertionError("made")
""")
