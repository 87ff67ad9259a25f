"""FLOPs of whole programs, with their backward; the small things of the profiler's modules."""

import importlib

import pytest

from library import NAME, T, leaf

profiler = importlib.import_module(f"{NAME}.autograd.profiler")
parts = importlib.import_module(f"{NAME}.autograd.profiler_util")


def flops(act):
    """All operations of a program: PyTorch counts those of inner calls, gradiron those of the calls themselves."""
    with profiler.profile(record_shapes=True, with_flops=True) as found:
        act()
    return sum(event.flops or 0 for event in found.function_events)


def ones(*shape, grad=True):
    return T.ones(*shape, requires_grad=grad)


@pytest.mark.parametrize(
    ("forward", "shapes", "expected"),
    [
        (lambda a, b: a @ b, [(5, 4), (4, 3)], 3 * 120),
        (lambda a, b: T.mm(a, b), [(5, 4), (4, 3)], 3 * 120),
        (lambda a, b: T.bmm(a, b), [(2, 5, 4), (2, 4, 3)], 3 * 240),
        (lambda a, b, c: T.addmm(c, a, b), [(5, 4), (4, 3), (5, 3)], 3 * 120),
        (lambda a, b: a * b, [(5, 4), (5, 4)], 3 * 20),
        (lambda a, b: a + b, [(5, 4), (5, 4)], 20),
        (lambda a, b: T.einsum("ij,jk->ik", a, b), [(5, 4), (4, 3)], 3 * 120),
        (lambda a, b: T.einsum("ij,ij->", a, b), [(5, 3), (5, 3)], 3 * 30),
        (lambda a, b: T.einsum("bij,bjk->bik", a, b), [(2, 5, 4), (2, 4, 3)], 3 * 240),
    ],
)
def test_a_backward_counts_each_gradient(forward, shapes, expected):
    tensors = [ones(*shape) for shape in shapes]
    start = forward(*tensors).detach()
    assert flops(lambda: forward(*tensors).backward(start)) == expected


def test_gradients_that_nobody_wants_do_not_count():
    x, w = ones(5, 4, grad=False), ones(4, 3)
    start = T.ones(5, 3)
    assert flops(lambda: (x @ w).backward(start)) == 2 * 120


def test_a_derivative_has_the_shapes_of_what_it_is_given():
    w = ones(4, 3)
    with profiler.profile(record_shapes=True) as found:
        (T.ones(5, 4) @ w).backward(T.ones(5, 3))
    (node,) = [event for event in found.function_events if event.name == "MmBackward0"]
    assert node.input_shapes == [[5, 3]]


def test_events_have_what_programs_ask_for():
    with profiler.profile() as found:
        leaf([1.0]) * 2
    event = next(event for event in found.function_events if event.name == "aten::mul")
    assert event.activity_type == "cpu_op"
    assert (event.node_id, event.kernels, event.external_id) == (-1, [], event.external_id)
    assert (event.is_python_function, event.python_id, event.flow_start) == (False, -1, event.flow_start)
    assert int(event.device_type) == 0
    assert event.device_type == parts.DeviceType.CPU


def test_events_made_by_hand():
    event = parts.FunctionEvent(3, "name", 1, 10.0, 12.5, None, None, [[2]], ["here"])
    assert event.cpu_time_total == 2.5
    assert (event.input_shapes, event.stack) == ([[2]], ["here"])
    event.append_kernel("kernel", 0, 7)
    assert event.kernels == [parts.Kernel("kernel", 0, 7)]


def test_records_in_an_interval():
    class Record:
        def __init__(self, start):
            self.start = start

        def start_ns(self):
            return self.start

    records = [(Record(start), start) for start in (30, 10, 20)]
    found = parts.MemRecordsAcc(records)
    assert [r[1] for r in found.in_interval(10, 20)] == [10, 20]
    assert list(parts.MemRecordsAcc([]).in_interval(0, 100)) == []


def test_steps_of_many():
    tracker = profiler.KinetoStepTracker
    start = tracker.current_step()
    tracker.init_step_count("a")
    assert tracker.increment_step("a") == start + 1
    assert tracker.increment_step("b") == start + 2  # begins where all are
    assert tracker.increment_step("a") == start + 2
    assert tracker.current_step() == start + 2
    assert tracker.erase_step_count("a")
    assert not tracker.erase_step_count("a")
    tracker.erase_step_count("b")


def test_a_key_is_seen_once():
    with pytest.warns(FutureWarning, match="EnforceUnique` is deprecated"):
        unique = profiler.EnforceUnique()
    unique.see("a", 1)
    with pytest.raises(RuntimeError, match=r"duplicate key: \('a', 1\)"):
        unique.see("a", 1)


def test_narrow_columns_of_shapes():
    with profiler.profile(record_shapes=True) as found:
        T.ones(100, 100) * 2
    lines = found.key_averages(group_by_input_shape=True).table(sort_by="count", max_shapes_column_width=8).splitlines()
    assert any("[[100, 1" in line and "[[100, 10" not in line for line in lines)
