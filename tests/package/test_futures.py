"""Futures: results that are set once and waited for."""

import threading

import pytest

from library import T

Future = T.futures.Future


def test_a_result_is_waited_for():
    future = Future()
    assert not future.done()
    threading.Timer(0.01, lambda: future.set_result(3)).start()
    assert future.wait() == 3 == future.value() and future.done()
    with pytest.raises(RuntimeError):
        future.set_result(4)


def test_what_follows():
    future, seen = Future(), []
    future.add_done_callback(lambda f: seen.append(f.value()))
    after = future.then(lambda f: f.value() + 1).then(lambda f: f.wait() * 2)
    future.set_result(1)
    assert after.wait() == 4 and seen == [1]
    future.add_done_callback(lambda f: seen.append("late"))
    assert seen == [1, "late"]


def test_exceptions_arrive():
    future = Future()
    after = future.then(lambda f: f.wait())
    future.set_exception(ValueError("mine"))
    for each in (future, after):
        with pytest.raises((ValueError, RuntimeError), match="mine"):
            each.wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception("text")


def test_several():
    futures = [Future() for _ in range(3)]
    every = T.futures.collect_all(futures)
    for i, future in enumerate(futures):
        assert not every.done()
        future.set_result(i)
    assert [f.value() for f in every.wait()] == [0, 1, 2] == T.futures.wait_all(futures)
    assert T.futures.collect_all([]).wait() == []
