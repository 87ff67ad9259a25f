"""Ranks that stay: a pool of processes in one group, which run functions that tests send them by name."""

import contextlib
import multiprocessing
import os
import socket
import time
import traceback

import library

T = library.T


class RankFailed(AssertionError):
    """A function raised on some ranks."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _serve(connection, rank, size, port, environment):
    os.environ.update(environment)
    T.set_num_threads(1)
    T.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    connection.send(("ready", None))
    with contextlib.suppress(EOFError):
        while True:
            function, arguments = connection.recv()
            if function is None:
                break
            T.manual_seed(0)
            try:
                answer = ("done", function(rank, *arguments))
            except BaseException as error:
                answer = ("raised", (type(error).__name__, str(error), traceback.format_exc()))
            connection.send(answer)
    T.distributed.destroy_process_group()


class Pool:
    """`size` ranks. `run(function, *arguments)` calls `function(rank, *arguments)` on each, and returns what each returned."""

    def __init__(self, size, **environment):
        self.size, self.environment = size, environment
        self._ranks = []

    def start(self):
        context = multiprocessing.get_context("spawn")
        port = free_port()
        for rank in range(self.size):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, rank, self.size, port, self.environment), daemon=True)
            process.start()
            there.close()
            self._ranks.append((process, here))
        self._answers(60)

    def run(self, function, *arguments, timeout=60):
        kinds, values = self.outcomes(function, *arguments, timeout=timeout)
        raised = [f"rank {rank}:\n{value[2]}" for rank, value in enumerate(values) if kinds[rank] == "raised"]
        if raised:
            raise RankFailed("\n".join(raised))
        return values

    def outcomes(self, function, *arguments, timeout=60):
        """Whether each rank is done or has raised, and the result, or the error's class, message and traceback."""
        if not self._ranks:
            self.start()
        for _, connection in self._ranks:
            connection.send((function, arguments))
        return self._answers(timeout)

    def _answers(self, timeout):
        end = time.monotonic() + timeout
        answers = []
        for rank, (_, connection) in enumerate(self._ranks):
            try:
                if not connection.poll(max(0, end - time.monotonic())):
                    raise RankFailed(f"rank {rank} has not answered in {timeout} s")
                answers.append(connection.recv())
            except (EOFError, ConnectionError, RankFailed) as error:
                self.kill()
                raise RankFailed(f"rank {rank}: {error or 'ended'}") from error
        return [kind for kind, _ in answers], [value for _, value in answers]

    def kill(self):
        for process, connection in self._ranks:
            connection.close()
            process.kill()
            process.join()
        self._ranks = []

    def stop(self):
        for _, connection in self._ranks:
            with contextlib.suppress(OSError):
                connection.send((None, ()))
        for process, _ in self._ranks:
            process.join(20)
            assert not process.is_alive(), "a rank of the pool does not end"
            assert process.exitcode == 0
        self._ranks = []
