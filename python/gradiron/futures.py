"""`Future`, a result that is set later, and functions that wait for several."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A result that is set once, possibly by another thread.

    Args:
        devices: accepted for compatibility.

    Examples:
        >>> future = torch.futures.Future()
        >>> after = future.then(lambda f: f.value() + 1)
        >>> future.set_result(1)
        >>> after.wait()
        2
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def __class_getitem__(cls, kind: Any) -> type[Future]:
        return cls

    def done(self) -> bool:
        """Return whether the result or an exception is set."""
        return self._done

    def wait(self) -> Any:
        """Wait for the result and return it, or raise the exception that was set."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> Any:
        """Return the result, which must be set."""
        if self._error is not None:
            raise self._error
        if not self._done:
            raise RuntimeError("Future: value() was called before the future was completed")
        return self._result

    def set_result(self, result: Any) -> None:
        """Set the result."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback(future)` when the result is set, or at once if it is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a future of `callback(future)`, which is called when the result is set."""
        after = Future()

        def run(future: Future) -> None:
            try:
                made = callback(future)
            except Exception as error:
                after.set_exception(error)
            else:
                after.set_result(made)

        self.add_done_callback(run)
        return after


def collect_all(futures: list[Future]) -> Future:
    """Return a future of the list of futures, which is complete when all of them are.

    Args:
        futures: list of futures.

    Examples:
        >>> future = torch.futures.Future()
        >>> future.set_result(1)
        >>> [f.value() for f in torch.futures.collect_all([future]).wait()]
        [1]
    """
    futures = list(futures)
    every = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one_less(future: Future) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            every.set_result(futures)

    if not futures:
        every.set_result([])
    for future in futures:
        future.add_done_callback(one_less)
    return every


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all futures and return their results, or raise the first exception among them.

    Args:
        futures: list of futures.

    Examples:
        >>> future = torch.futures.Future()
        >>> future.set_result(1)
        >>> torch.futures.wait_all([future])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
