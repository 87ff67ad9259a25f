"""The engine's switches: how a leaf's first gradient lies, and those that are kept without effect."""

import threading

import pytest

from library import T

policy = T.autograd.enforce_grad_layout_policy
threads = T.autograd.set_multithreading_enabled


def strides_of_a_gradient():
    """Of a leaf that lies as (1, 12, 4), whose gradient comes in order."""
    p = T.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
    (p * T.ones(p.shape)).sum().backward()
    assert p.stride() == (1, 12, 4)
    return p.grad.stride()


ENFORCED, RELAXED = (1, 12, 4), (6, 3, 1)


def test_a_gradient_lies_as_its_leaf_unless_that_is_switched_off():
    assert strides_of_a_gradient() == ENFORCED
    with policy(False):
        assert strides_of_a_gradient() == RELAXED
        with policy(True):
            assert strides_of_a_gradient() == ENFORCED
        assert strides_of_a_gradient() == RELAXED
    assert strides_of_a_gradient() == ENFORCED


def test_the_policy_switches_at_once_and_only_in_its_thread():
    switch = policy(False)
    seen = []
    worker = threading.Thread(target=lambda: seen.append(strides_of_a_gradient()))
    worker.start()
    worker.join()
    assert seen == [ENFORCED]
    assert strides_of_a_gradient() == RELAXED
    switch.__exit__(None, None, None)
    assert strides_of_a_gradient() == ENFORCED


def test_the_policy_as_a_decorator():
    decorated = policy(False)(strides_of_a_gradient)
    assert strides_of_a_gradient() == ENFORCED
    assert decorated() == RELAXED
    assert strides_of_a_gradient() == ENFORCED


def test_multithreading_is_kept():
    enabled = T.autograd.is_multithreading_enabled
    assert enabled()
    with threads(False):
        assert not enabled()
    assert enabled()
    threads(False)(enabled)
    assert not enabled()  # switched at once, as a decorator too
    threads(True)
    assert enabled()


def test_view_replay_is_kept():
    force = T.autograd.grad_mode._force_original_view_tracking
    enabled = T.autograd.is_view_replay_enabled
    with force(True):
        assert enabled()
    assert not enabled()
    assert force(True)(enabled)()
    assert not enabled()


@pytest.mark.parametrize(
    ("switch", "name"), [(policy, "set_grad_layout_enforcement_enabled"), (threads, "set_multithreading_enabled")]
)
@pytest.mark.parametrize("wrong", [3, "a", None])
def test_switches_are_bools(switch, name, wrong):
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'enabled' \(position 1\) must be bool, not"):
        switch(wrong)


@pytest.mark.parametrize("name", ["set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch"])
def test_switches_for_streams_are_accepted(name):
    switch = getattr(T.autograd.graph, name)
    assert switch(False) is None
    with pytest.raises(RuntimeError, match="enabled must be a bool, but got int"):
        switch(1)


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        (True, TypeError, "expects a float, got bool"),
        ("1", TypeError, "expects a float, got str"),
        (2, ValueError, r"must be in \[0, 1\], got 2"),
        (0.5, RuntimeError, "it has no effect in eager mode"),
    ],
)
def test_budgets_are_for_compiled_regions(budget, error, message):
    with pytest.raises(error, match=message):
        T.autograd.graph.region_activation_memory_budget(budget)
