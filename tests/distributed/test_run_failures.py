"""`gradiron-run`: failures, signals and restarts, on one machine and on several; nothing stays behind."""

import contextlib
import json
import signal
import socket
import time

import pytest
from launches import PLAIN, REDUCE, finish, root_cause
from pool import free_port

pytestmark = [pytest.mark.gradiron, pytest.mark.timeout(90)]


def test_a_failure_is_told_in_a_table(launches):
    path = launches.script(
        """
        import os, time
        from torch.distributed.elastic.multiprocessing.errors import record
        @record
        def main():
            if os.environ["RANK"] == "1":
                raise ValueError("out of ideas")
            time.sleep(60)
        main()
        """
    )
    begin = time.monotonic()
    status, _, err = launches.run("--nproc-per-node", "2", path)
    assert time.monotonic() - begin < 25
    assert status == 1
    table = err[err.index("=====") :].splitlines()
    assert table[1] == f"{path} FAILED" and table[3] == "Failures:"
    assert table[4] == "[1]:" and table[-1] == table[0] == "=" * 60
    assert "  rank      : 0 (local_rank: 0)" in table[:12]
    assert any(line.endswith("received by PID " + line.split()[-1]) and "Signal 15 (SIGTERM)" in line for line in table)
    root = root_cause(err)
    assert "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: " in root
    assert "    ValueError: out of ideas" in root or "\n  ValueError: out of ideas" in root


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("raise ValueError('enough')", "ValueError: enough"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "Signal 9 (SIGKILL) received by PID"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("os._exit(4)", "exitcode  : 4"),
    ],
)
def test_the_first_failure_is_the_cause(launches, end, says):
    """The others fail, too, since it does not come to the next collective."""
    path = launches.script(REDUCE, f"if dist.get_rank() == 2: {end}\ndist.barrier()")
    status, _, err = launches.run("--nproc-per-node", "3", path)
    assert status == 1
    root = root_cause(err)
    assert "rank      : 2 (local_rank: 2)" in root and says in root, err


def test_a_worker_that_does_not_end_is_killed(launches):
    path = launches.script(
        """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.environ["RANK"] == "1":
            time.sleep(0.5)
            sys.exit(3)
        time.sleep(60)
        """
    )
    status, _, err = launches.run("--nproc-per-node", "2", "--shutdown-timeout", "0.5", *PLAIN, path)
    assert status == 1
    assert "exitcode  : -9" in err and "exitcode  : 3" in root_cause(err)


def test_what_workers_have_started_ends_with_them(launches):
    path = launches.script(
        """
        import os, subprocess, sys
        child = subprocess.Popen(["sleep", "300"])
        if os.environ["RANK"] == "1":
            sys.exit(3)
        child.wait()
        """
    )
    status, _, _ = launches.run("--nproc-per-node", "2", *PLAIN, path)
    assert status == 1
    assert not launches.wait_for_the_last()


def test_shared_memory_of_killed_ranks_goes(launches):
    """No rank is left that could remove it."""
    path = launches.script(REDUCE, "os.kill(os.getpid(), signal.SIGKILL)")
    status, _, err = launches.run("--nproc-per-node", "2", path)
    assert status == 1 and "Signal 9" in err


def test_commands_and_scripts_that_are_not_there(launches):
    status, _, err = launches.run("--no-python", "no-such-command")
    assert status == 1 and err == "gradiron-run: [Errno 2] No such file or directory: 'no-such-command'\n"
    status, _, err = launches.run("no_such.py")
    assert status == 1 and "can't open file" in err and "no_such.py FAILED" in err


def test_the_launchers_own_starter_is_told(launches):
    path = launches.script("raise ValueError('deep inside')")
    told = launches.folder / "told.json"
    launches.run(path, TORCHELASTIC_ERROR_FILE=str(told))
    assert json.loads(told.read_text())["message"]["message"] == "ValueError: deep inside"


@pytest.mark.parametrize("words", [["--master-port"], ["--rdzv-backend", "c10d", "--rdzv-endpoint"]])
def test_a_port_that_is_taken(launches, words):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        where = f"127.0.0.1:{port}" if "c10d" in words else port
        status, _, err = launches.run(*words, where, launches.script("pass"))
    assert status == 1
    assert f"port: {port}" in err and "Address already in use" in err and "Traceback" not in err


# Restarts.


def test_restarts(launches):
    path = launches.script(
        REDUCE,
        """
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        sys.stdout.write(f"{attempt}\\n")
        sys.stdout.flush()
        dist.barrier()
        if attempt != "2" and dist.get_rank() == 0:
            os._exit(3)
        dist.barrier()
        """,
    )
    status, out, err = launches.run("--nproc-per-node", "2", "--max-restarts", "2", path)
    assert status == 0, err
    assert sorted(out.splitlines()) == ["0", "0", "1", "1", "2", "2"]
    assert err.count("rank 0 failed (exitcode: 3): all ranks start again") == 2


def test_restarts_come_to_an_end(launches):
    status, out, err = launches.run("--max-restarts", "2", launches.script("print('begins')\nraise ValueError('again')"))
    assert status == 1
    assert out.count("begins") == 3 and err.count("FAILED") == 1


# Signals.


def runs(launches, *words, after="time.sleep(60)", begin="import os, signal, sys, time", **options):
    """A launcher whose two ranks run."""
    path = launches.script(begin, f"\nsys.stdout.write('runs\\n')\nsys.stdout.flush()\n{after}")
    how = () if "torch" in begin else PLAIN
    launcher = launches.start("--nproc-per-node", "2", *words, *how, path, **options)
    assert [launcher.stdout.readline() for _ in range(2)] == ["runs\n"] * 2
    return launcher


def test_a_program_goes_on_from_the_checkpoint_that_all_ranks_reached(launches, tmp_path):
    path = launches.script(f"""
        import os, torch, torch.distributed as dist
        from torch.distributed import checkpoint
        dist.init_process_group()
        state = {{"step": 0}}
        folder = {str(tmp_path / "saved")!r}
        if os.path.exists(folder + "/state.pt"):
            checkpoint.load(state, checkpoint_id=folder)
        begin = state["step"]
        for step in range(begin, 4):
            if step == 2 and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                raise SystemExit(3)
            state["step"] = step + 1
            checkpoint.save(state, checkpoint_id=folder)
        os.write(1, f"{{begin}} to {{state['step']}}\\n".encode())
        dist.destroy_process_group()
    """)
    status, out, err = launches.run("--nproc-per-node", "2", "--max-restarts", "1", path)
    assert (status, out.split("\n")) == (0, ["2 to 4", "2 to 4", ""]), err


@pytest.mark.parametrize("begin", ["import os, signal, sys, time", REDUCE])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_launcher_ends(launches, number, begin):
    launcher = runs(launches, begin=begin)
    launcher.send_signal(number)
    status, _, err = finish(launcher, 25)
    assert not launches.wait_for_the_last()
    if number == signal.SIGKILL:
        assert status == -9
        return
    assert status == 1
    assert f"gradiron-run: Process {launcher.pid} got signal: {number}" in err
    assert err.count("KeyboardInterrupt") == (2 if number == signal.SIGINT else 0)


def test_workers_may_end_in_order(launches):
    after = (
        "signal.signal(signal.SIGTERM, lambda *_: (sys.stdout.write('saved\\n'), sys.exit(0)))\ntime.sleep(0.2)\ntime.sleep(60)"
    )
    launcher = runs(launches, after=after)
    time.sleep(0.3)
    launcher.send_signal(signal.SIGTERM)
    status, out, _ = finish(launcher, 25)
    assert status == 1 and out.count("saved") == 2


def test_a_second_signal_kills(launches):
    begin = "import os, signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"
    launcher = runs(launches, begin=begin)
    launcher.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert launcher.poll() is None
    launcher.send_signal(signal.SIGINT)
    status, _, _ = finish(launcher, 15)
    assert status == 1


def test_nohup(launches):
    """Signals that are ignored stay so."""
    launcher = runs(launches, after="time.sleep(1)", ignores=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    launcher.send_signal(signal.SIGHUP)
    status, _, err = finish(launcher, 25)
    assert status == 0, err


def test_a_signal_while_machines_meet(launches):
    port = free_port()
    launcher = launches.start("--nnodes", "2", "--master-port", port, launches.script("pass"))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # Its store listens as soon as it waits for the other machine.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", int(port)), 1).close()
            break
        time.sleep(0.05)
    launcher.send_signal(signal.SIGINT)
    status, _, err = finish(launcher, 15)
    assert status == 1 and "got signal: 2" in err


# Several machines.


def test_two_launchers(launches):
    path = launches.script(
        REDUCE,
        """
        names = "GROUP_RANK RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_WORLD_SIZE TORCHELASTIC_RUN_ID".split()
        sys.stdout.write(" ".join(map(os.environ.get, names)) + "\\n")
        """,
    )
    each = [["--nproc-per-node", "1", "--rdzv-id", "big"], ["--nproc-per-node", "2"]]
    ends = [finish(launcher) for launcher in launches.nodes(path, each=each)]
    assert [status for status, _, _ in ends] == [0, 0], ends
    lines = sorted("".join(out for _, out, _ in ends).splitlines())
    assert lines == ["0 0 0 3 1 2 big", "1 1 0 3 2 2 big", "1 2 1 3 2 2 big"]


def start_c10d(launches, *words, each=((), ())):
    endpoint = f"127.0.0.1:{free_port()}"
    words = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, *words]
    return [launches.start(*own, *words) for own in each]


def test_machines_without_numbers(launches):
    path = launches.script("import os, sys\nsys.stdout.write(os.environ['RANK'])")
    ends = [finish(launcher) for launcher in start_c10d(launches, *PLAIN, path)]
    assert [status for status, _, _ in ends] == [0, 0], ends
    assert sorted(out for _, out, _ in ends) == ["0", "1"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_on_one_machine_ends_all(launches, failing):
    path = launches.script(
        f"import os, sys, time\nif os.environ['RANK'] == '{failing}': raise ValueError('enough')\ntime.sleep(60)"
    )
    begin = time.monotonic()
    ends = [finish(launcher) for launcher in launches.nodes(path, each=[[], []])]
    assert time.monotonic() - begin < 20
    for status, _, err in ends:
        assert status == 1
        assert f"rank      : {failing} (local_rank: 0)" in root_cause(err) and "ValueError: enough" in root_cause(err), err


def test_all_machines_start_again(launches):
    path = launches.script(
        REDUCE,
        """
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        dist.barrier()
        if attempt == "0" and dist.get_rank() == 1:
            os._exit(3)
        dist.barrier()
        sys.stdout.write(f"{attempt} {os.environ['TORCHELASTIC_MAX_RESTARTS']}")
        """,
    )
    ends = [finish(launcher) for launcher in launches.nodes(path, each=[["--max-restarts", "2"], []])]
    assert [(status, out) for status, out, _ in ends] == [(0, "1 2"), (0, "1 2")], ends


@pytest.mark.parametrize("lost", [0, 1])
def test_a_launcher_that_dies_ends_all(launches, lost):
    path = launches.script("import sys, time\nsys.stdout.write('runs\\n')\nsys.stdout.flush()\ntime.sleep(60)")
    launchers = launches.nodes(*PLAIN, path, each=[[], []])
    for launcher in launchers:
        assert launcher.stdout.readline() == "runs\n"
    launchers[lost].kill()
    status, _, err = finish(launchers[1 - lost], 25)
    assert status == 1
    assert f"gradiron-run: the launcher of node {lost} ended" in err
    finish(launchers[lost])


def test_a_signal_on_one_machine_ends_all(launches):
    path = launches.script("import sys, time\nsys.stdout.write('runs\\n')\nsys.stdout.flush()\ntime.sleep(60)")
    launchers = launches.nodes(*PLAIN, path, each=[[], []])
    for launcher in launchers:
        assert launcher.stdout.readline() == "runs\n"
    launchers[0].send_signal(signal.SIGTERM)
    ends = [finish(launcher, 25) for launcher in launchers]
    assert [status for status, _, _ in ends] == [1, 1]
    assert "the launcher of node 0: it ended its workers (SignalException" in ends[1][2]


def test_a_machine_that_is_done_waits_for_the_others(launches):
    path = launches.script("import os, sys, time\nif os.environ['RANK'] == '1': time.sleep(1.5); sys.exit(3)")
    ends = [finish(launcher) for launcher in launches.nodes(*PLAIN, path, each=[[], []])]
    assert [status for status, _, _ in ends] == [1, 1], ends
    assert "exitcode  : 3" in root_cause(ends[0][2])


def test_a_machine_that_never_comes(launches):
    words = ("--nnodes", "3", "--rdzv-conf", "timeout=2", "--master-port", free_port())
    launchers = [launches.start(*words, "--node-rank", node, launches.script("pass")) for node in (0, 2)]
    ends = [finish(launcher, 20) for launcher in launchers]
    assert [status for status, _, _ in ends] == [1, 1]
    assert "the launchers of nodes [1] have not come to 127.0.0.1:" in ends[0][2] and "within 2 seconds" in ends[0][2]


def test_launchers_of_different_jobs_do_not_meet(launches):
    path = launches.script("pass")
    one, other = start_c10d(launches, "--rdzv-conf", "timeout=4", path, each=[["--rdzv-id", "a"], ["--rdzv-id", "b"]])
    ends = [finish(one, 20), finish(other, 20)]
    assert [status for status, _, _ in ends] == [1, 1]
    said = ends[0][2] + ends[1][2]
    assert "serves the job a, not --rdzv-id b" in said or "serves the job b, not --rdzv-id a" in said


def test_two_launchers_with_one_number(launches):
    words = ("--nnodes", "2", "--rdzv-conf", "timeout=20", "--master-port", free_port())
    launchers = [launches.start(*words, "--node-rank", node, launches.script("pass")) for node in (1, 1)]
    time.sleep(1.5)
    launchers.append(launches.start(*words, "--node-rank", "0", launches.script("import time; time.sleep(1)")))
    ends = [finish(launcher, 20) for launcher in launchers]
    assert sum("two launchers have --node-rank 1" in err for _, _, err in ends) == 1


# What programs write themselves.


def test_record(tmp_path, monkeypatch):
    from gradiron.distributed.elastic.multiprocessing.errors import ProcessFailure, record

    path = tmp_path / "deep" / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def leave(code):
        raise SystemExit(code)

    with pytest.raises(SystemExit):
        leave(0)
    assert not path.exists()

    @record
    def fail(text):
        raise ValueError(text)

    before = time.time()
    for text in ("first", "second"):
        with pytest.raises(ValueError, match=text):
            fail(text)
    failure = ProcessFailure(0, 17, 1, str(path))
    assert "ValueError: first" in failure.message and before <= failure.timestamp <= time.time()
    assert record(lambda x: x + 1)(1) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"message": 3}', '{"message": {"extraInfo": {"py_callstack": "x"}}}'])
def test_files_that_are_no_errors(tmp_path, text):
    from gradiron.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    path = tmp_path / "error.json"
    path.write_text(text)
    failure = ProcessFailure(0, 17, -15, str(path))
    assert isinstance(failure.message, str) and failure.message
    assert "exitcode  : -15 (pid: 17)  (SIGTERM)" in str(ChildFailedError("train.py", {0: failure}))
