"""`Work`, a collective in progress, and the thread that advances it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..futures import Future
from .engine.requests import Request

__all__ = ["Work"]

# Lets another process run; where the system has no such call, the shortest sleep does.
_yield_processor: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))

# Seconds between two looks of the progress thread.
_LOOK = 1e-4
# A wait looks without a pause this long, and a while longer for what a piece of a long message takes.
_SPIN = 2e-4
_SPIN_PER_BYTE = 2.5e-9
_LONGEST_PAUSE = 1e-3
# A rank that left in order may still have sent the message.
_GRACE = 1.0
# A message of a rank that died may have arrived already.
_LAST_LOOKS = 0.1
_SAY_AFTER = 60.0


class Work:
    """Collective in progress, which collectives return with `async_op=True`.

    Programs do not create it, except for the result of a backend of their own: `Work()` is done at once.

    Args:
        request: request of the engine; finished if `None`.
        group, name: group and name of the collective, for messages. Default: none
        number: number of the collective in its group. Default: `0`
        tensors: memory that the engine uses until the work is done. Default: `()`
        result: tensors that `result` returns.
        finish: function to call when the request is done.
        largest: size of the largest message in bytes. Default: `0`
        timeout: default timeout of `wait`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> work = torch.distributed.all_reduce(torch.ones(2), async_op=True)
        >>> work.wait()
        True
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        request: Request | None = None,
        *,
        group: Any = None,
        name: str = "",
        number: int = 0,
        tensors: Sequence[Any] = (),
        result: Any = None,
        finish: Callable[[], None] | None = None,
        largest: int = 0,
        timeout: timedelta | None = None,
    ) -> None:
        self._request = request if request is not None else Request.finished()
        self._group, self._name, self._number = group, name, number
        self._tensors = tensors  # Memory that the engine reads and writes until the work is done.
        self._result = result
        self._finish = finish
        self._spin = _SPIN + largest * _SPIN_PER_BYTE
        self._timeout = timeout
        self._lock = threading.RLock()
        self._done = False
        self._error: BaseException | None = None
        self._future: Future | None = None

    def _poll(self) -> bool:
        """Tells whether the work is done, after moving it along; what must follow it happens here, once."""
        if self._done:
            return True
        if not self._request.test():
            return False
        with self._lock:
            if self._done:
                return True
            error: BaseException | None = self._request.error
            if error is not None:
                error = self._group._translate(error, self._describe())
                self._group._break(error)
            elif self._finish is not None:
                try:
                    self._finish()
                except Exception as raised:
                    error = raised
            self._end(error)
        return True

    def _end(self, error: BaseException | None) -> None:
        self._error, self._done = error, True
        self._finish = None
        if error is None:
            self._tensors = ()
        if self._future is not None:
            self._tell(self._future)

    def _fail(self, error: BaseException) -> None:
        """Ends the work with an error; the memory stays, since the engine may still write it."""
        with self._lock:
            if not self._done:
                _abandoned.append(self)
                self._end(error)

    def _tell(self, future: Future) -> None:
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._result)

    def _describe(self) -> str:
        return f"{self._name} #{self._number} of group {self._group._label()}"

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the work is done; raises its error, or a description of what is missing after `timeout`."""
        if not self._poll():
            limit = timeout if timeout is not None and timeout.total_seconds() > 0 else self._timeout
            try:
                self._wait(limit.total_seconds() if limit is not None else None)
            except KeyboardInterrupt:
                progress.add(self)
                raise
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, seconds: float | None) -> None:
        begin = now = time.monotonic()
        spin_until, seen, pause, told, left_since = begin + self._spin, 0, 2e-5, False, None
        while not self._poll():
            now = time.monotonic()
            if self._request.progress != seen:
                seen, spin_until, pause = self._request.progress, now + self._spin, 2e-5
            if now < spin_until:
                _yield_processor()
                continue
            if failure := self._group._failure():
                if self._polls_for(_LAST_LOOKS):
                    return None
                return self._fail_with(f"{failure} during {self._describe()}")
            if missing := self._group._left():
                left_since = left_since or now
                if now - left_since > _GRACE:
                    return self._fail_with(f"{missing} ended during {self._describe()}")
            if seconds is not None and now - begin > seconds:
                return self._fail_with(
                    f"{self._describe()}: Timed out after {seconds:g} s. {self._group._whereabouts(self._number)}", timeout=True
                )
            if not told and now - begin > _SAY_AFTER:
                told = True
                self._group._say(
                    f"waiting for {self._describe()} for {_SAY_AFTER:g} s. {self._group._whereabouts(self._number)}"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _polls_for(self, seconds: float) -> bool:
        """Looks for a while whether what is there already is enough."""
        end = time.monotonic() + seconds
        while not self._poll():
            if time.monotonic() > end:
                return False
            _yield_processor()
        return True

    def _fail_with(self, text: str, timeout: bool = False) -> None:
        error = self._group._error_class(timeout)(text)
        self._group._break(error)
        self._fail(error)

    def is_completed(self) -> bool:
        """Return whether the work is done."""
        return self._poll()

    def is_success(self) -> bool:
        """Return whether the work is done without an error."""
        return self._poll() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error that ended the work."""
        return self._error

    def synchronize(self) -> None:
        """Wait like `wait`."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait like `wait`."""
        self.wait()

    def result(self) -> Any:
        """Return the tensors of finished work."""
        if not self._poll():
            raise RuntimeError("Work needs to be completed before calling result()")
        return self._result

    def source_rank(self) -> int:
        """Return the rank that sent what was received."""
        if self._name not in ("recv", "recv_anysource"):
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        self.wait()
        return int(self._request.status.Get_source()) if self._request.status is not None else 0

    _source_rank = source_rank

    def _get_sequence_number(self) -> int:
        return self._number

    def _get_op_type(self) -> str:
        return self._name

    def get_future(self) -> Future:
        """Return a future that is complete when the work is done."""
        with self._lock:
            if self._future is None:
                self._future = _WorkFuture(self)
                if self._done:
                    self._tell(self._future)
                else:
                    progress.add(self)
            return self._future

    def __deepcopy__(self, memory: Any) -> Any:
        raise TypeError("a Work cannot be copied")


class _WorkFuture(Future):
    """The future of a work. Who waits for it moves the work along, since callbacks run in the thread that otherwise does."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = weakref.ref(work)

    def wait(self) -> Any:
        work = self._work()
        if work is not None:
            work.wait()
        return super().wait()


# Works that ended with an error while the engine may still touch their memory.
_abandoned: list[Work] = []


class _Progress:
    """A daemon thread that moves open works along: MPI does so only inside of its calls."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: list[Work] = []
        self._thread: threading.Thread | None = None

    def add(self, work: Work) -> None:
        """Moves a work along until it is done."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gradiron-distributed", daemon=True)
                self._thread.start()
            if not any(work is other for other in self._open):
                self._open.append(work)
            self._changed.notify()

    def forget(self) -> None:
        """In a forked child: the thread is not there, and its lock may be held."""
        self.__init__()  # type: ignore[misc]

    def has_open(self) -> bool:
        """Tells whether works are open."""
        return bool(self._open)

    def _run(self) -> None:
        pause, known = _LOOK, 0
        while True:
            with self._changed:
                if not self._open:
                    self._changed.wait()
                works = list(self._open)
            if len(works) > known:
                pause = _LOOK
            known = len(works)
            done = [work for work in works if self._look(work)]
            if done:
                with self._changed:
                    self._open = [work for work in self._open if not any(work is other for other in done)]
                pause = _LOOK
            time.sleep(pause)
            pause = min(pause * 1.01, _LONGEST_PAUSE)

    @staticmethod
    def _look(work: Work) -> bool:
        if work._poll():
            return True
        if failure := work._group._failure():
            error = RuntimeError(f"{failure} during {work._describe()}")
            work._group._break(error)
            work._fail(error)
            return True
        return False


progress = _Progress()
