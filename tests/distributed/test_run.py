"""`gradiron-run`: options, variables, outputs, functions."""

import json
import os
import pathlib
import sys

import pytest
from launches import PLAIN, REDUCE, RUN
from pool import free_port

import library

pytestmark = [pytest.mark.gradiron, pytest.mark.timeout(90)]

TELL = """
import json, os, sys
sys.stdout.write(json.dumps([dict(os.environ), sys.argv[1:]]) + "\\n")
"""


def told(outcome):
    """What the ranks of TELL said, in order."""
    status, out, err = outcome
    assert status == 0, err
    return sorted((json.loads(line) for line in out.splitlines()), key=lambda pair: int(pair[0]["RANK"]))


def test_variables(launches):
    path = launches.script(
        TELL,
        """
        import torch
        assert torch.__name__ == "torch" and torch.distributed.is_torchelastic_launched()
        """,
    )
    ranks = told(
        launches.run(
            *("--nproc-per-node", "2", "--rdzv-id", "job7", "--max-restarts=3", "--role", "trainer"),
            *(path, "--epochs", "3", "-x"),
            PMI_RANK="5",
        )
    )
    own, arguments = ranks[1]
    assert arguments == ["--epochs", "3", "-x"]
    assert own["MASTER_ADDR"] == "127.0.0.1" and 0 < int(own["MASTER_PORT"]) < 65536
    assert own["TORCHELASTIC_ERROR_FILE"].endswith("attempt_0/1/error.json")
    assert "PMI_RANK" not in own
    expected = {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": "1",
        "ROLE_WORLD_SIZE": "2",
        "ROLE_NAME": "trainer",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "3",
        "TORCHELASTIC_RUN_ID": "job7",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 2)),
    }
    assert {name: own.get(name) for name in expected} == expected


def test_threads_are_the_users_choice(launches):
    path = launches.script(TELL)
    assert told(launches.run("--nproc_per_node=2", *PLAIN, path, OMP_NUM_THREADS="3"))[0][0]["OMP_NUM_THREADS"] == "3"
    assert "OMP_NUM_THREADS" not in told(launches.run(*PLAIN, path))[0][0]


def test_defaults_from_the_environment(launches):
    ranks = told(launches.run(*PLAIN, launches.script(TELL), PET_NPROC_PER_NODE="2", PET_ROLE="r", PET_STANDALONE="1"))
    assert [own["ROLE_NAME"] for own, _ in ranks] == ["r", "r"]


@pytest.mark.parametrize("start", ["module", "script", "launcher"])
def test_collectives(launches, start):
    path = launches.script(REDUCE, "sys.stdout.write('fine\\n')")
    command = {
        "module": RUN,
        "script": [str(pathlib.Path(sys.executable).parent / "gradiron-run")],
        "launcher": [sys.executable, "-m", library.NAME, "-m", "torch.distributed.run"],
    }[start]
    status, out, err = launches.run("--standalone", "--nproc_per_node=2", path, command=command)
    assert status == 0, err
    assert out.count("fine") == 2


def test_modules_and_commands(launches):
    launches.script("import sys, os\nsys.stdout.write(f\"{os.environ['RANK']} {sys.argv[1]}\\n\")")
    status, out, err = launches.run("--nproc-per-node", "2", "-m", "train", "hello")
    assert sorted(out.splitlines()) == ["0 hello", "1 hello"], err
    status, out, err = launches.run("--nproc-per-node", "2", "--no-python", "echo", "hello")
    assert (status, out) == (0, "hello\nhello\n"), err


def test_the_older_launcher_passes_the_local_rank(launches):
    path = launches.script(TELL)
    launch = [sys.executable, "-m", library.NAME, "-m", "torch.distributed.launch", "--nproc_per_node=2"]
    assert [arguments for _, arguments in told(launches.run(path, "a", command=launch))] == [
        ["--local-rank=0", "a"],
        ["--local-rank=1", "a"],
    ]
    assert [arguments for _, arguments in told(launches.run("--use_env", path, "a", command=launch))] == [["a"], ["a"]]


# Outputs.

TALK = "import os, sys\nsys.stdout.write('out' + os.environ['RANK'] + '\\nend')\nsys.stderr.write('err\\n')"


def test_logs(launches):
    words = ("--nproc-per-node", "2", "--log-dir", "logs", "-r", "2", "-t", "1", "--rdzv-id", "job")
    status, out, err = launches.run(*words, *PLAIN, launches.script(TALK))
    assert status == 0 and err == ""
    assert sorted(out.splitlines()) == ["[default0]:end", "[default0]:out0", "[default1]:end", "[default1]:out1"]
    (folder,) = (launches.folder / "logs").iterdir()
    assert folder.name.startswith("job_")
    assert (folder / "attempt_0" / "1" / "stdout.log").read_text() == "out1\nend"
    assert (folder / "attempt_0" / "0" / "stderr.log").read_text() == "err\n"


def test_outputs_of_some_ranks(launches):
    template = "--log-line-prefix-template=${role_name}-${rank}> "
    words = ("--nproc-per-node", "2", "--local-ranks-filter", "1", "-t", "0:3,1:1", template)
    status, out, err = launches.run(*words, *PLAIN, launches.script(TALK))
    assert (status, out, err) == (0, "default-1> out1\ndefault-1> end\n", "err\n")
    status, out, err = launches.run("--nproc-per-node", "2", "--local-ranks-filter", "0", *PLAIN, launches.script(TALK))
    assert (status, out, err) == (0, "out0\nend", "err\n")


def test_much_output_is_shown_whole(launches):
    path = launches.script("import sys\nfor at in range(20_000): sys.stdout.write(f'line {at} of many\\n')")
    status, out, _ = launches.run("-t", "1", *PLAIN, path)
    assert status == 0
    assert out.splitlines() == [f"[default0]:line {at} of many" for at in range(20_000)]


# Options.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nnodes", "1:4"], "a number of machines that changes"),
        (["--nnodes", "few"], 'nnodes=few is not in "MIN:MAX" format'),
        (["--nnodes", "0"], "--nnodes must be at least 1"),
        (["--nnodes", "2", "--node-rank", "2"], "--node-rank 2 is not below --nnodes 2"),
        (["--nnodes", "2", "--rdzv-backend", "c10d"], "needs --master-addr, or --rdzv-endpoint"),
        (["--nnodes", "2", "--rdzv-endpoint", "host:many"], "the port must be a number"),
        (["--rdzv-backend", "etcd"], "--rdzv-backend etcd: gradiron has static and c10d"),
        (["--rdzv-conf", "timeout"], "must be in format <key1>=<value1>"),
        (["--nproc-per-node", "many"], "Unsupported nproc_per_node value: many"),
        (["--nproc-per-node", "0"], "--nproc-per-node must be at least 1"),
        (["--monitor-interval", "0"], "--monitor-interval must be above 0"),
        (["-r", "9"], "9 does not match: <^[0123]$>"),
        (["--local-ranks-filter", "a"], "must be a comma-separated list of integers"),
        (["-m", "--no-python"], "Don't use both the '--no_python' flag and the '--module' flag"),
    ],
)
def test_options_that_cannot_be(capsys, words, says):
    from gradiron.distributed.run import main

    with pytest.raises(SystemExit) as end:
        main([*words, "train.py"])
    assert says in str(end.value)


def test_options_that_are_not_there(launches):
    status, _, err = launches.run("--nproc-per-machine", "2", "train.py")
    assert status == 2 and "usage: gradiron-run" in err


@pytest.mark.parametrize(
    ("words", "endpoint"),
    [
        ([], ""),
        (["--master-port", "2000"], "127.0.0.1:2000"),
        (["--nnodes", "2", "--master-addr", "node1"], "node1:29500"),
        (["--nnodes", "2", "--master_addr", "0:0:0:0:0:0:0:1"], "[0:0:0:0:0:0:0:1]:29500"),
        (["--nnodes", "2", "--rdzv_backend=c10d", "--rdzv_endpoint=node1:7"], "node1:7"),
        (["--standalone", "--nnodes", "2", "--master-port", "2000"], ""),
    ],
)
def test_endpoints(words, endpoint):
    from gradiron.distributed.run import config_from_args, parse_args

    config, command, rest = config_from_args(parse_args([*words, "train.py", "--x"]))
    assert config.rdzv_endpoint == endpoint
    assert (command, rest[-2:]) == (sys.executable, ["train.py", "--x"])


def test_count_of_processes():
    from gradiron.distributed.run import config_from_args, parse_args

    config, _, _ = config_from_args(parse_args(["--nproc-per-node", "cpu", "train.py"]))
    assert config.nproc_per_node == len(os.sched_getaffinity(0))
    if not library.T.cuda.is_available():
        config, _, _ = config_from_args(parse_args(["--nproc-per-node", "auto", "train.py"]))
        assert config.nproc_per_node == len(os.sched_getaffinity(0))
        with pytest.raises(ValueError, match="Cuda is not available"):
            config_from_args(parse_args(["--nproc-per-node", "gpu", "train.py"]))


def test_options_that_programs_fill_in(launches):
    """As Accelerate does."""
    path = launches.script(TELL)
    program = f"""
import torch.distributed.run as run
words = ["--training_script", {path!r}, "--training_script_args", ["--lr", "1"]]
args, _ = run.get_args_parser().parse_known_args(words)
args.nproc_per_node, args.nnodes, args.master_port, args.module = "2", "1", "{free_port()}", False
args.training_script, args.training_script_args = {path!r}, ["--lr", "1"]
run.run(args)
"""
    ranks = told(launches.run("-c", program, command=[sys.executable, "-m", library.NAME]))
    assert [arguments for _, arguments in ranks] == [["--lr", "1"]] * 2


# Functions.

HEAD = """
import os, sys, threading
import torch
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
def launch(function, *args, **options):
    options = {"max_restarts": 0, **options}
    return elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, **options), function)(*args)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_functions(launches, method):
    path = launches.script(
        HEAD,
        f"""
        def work(count):
            torch.distributed.init_process_group()
            x = torch.ones(count)
            torch.distributed.all_reduce(x)
            loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), num_workers=1)
            assert sum(part.item() for (part,) in loader) == 2 * count
            return x * torch.distributed.get_rank() if count < 9 else b"x" * 1_000_000
        if __name__ == "__main__":
            results = launch(work, 2, start_method={method!r})
            assert {{rank: x.tolist() for rank, x in results.items()}} == {{0: [0, 0], 1: [2, 2]}}, results
            assert all(len(x) == 1_000_000 for x in launch(work, 9, start_method={method!r}).values())
            assert threading.active_count() == 1
        """,
    )
    status, _, err = launches.run(path, command=[sys.executable, "-m", library.NAME])
    assert status == 0, err


def test_a_function_that_raises(launches):
    path = launches.script(
        HEAD,
        """
        def work():
            sys.stdout.write("talks\\n")
            if os.environ["RANK"] == "1":
                raise ValueError("out of ideas")
            threading.Event().wait(60)
        if __name__ == "__main__":
            try:
                launch(work, start_method="fork", logs_specs=DefaultLogsSpecs(log_dir="logs", redirects=Std.ALL))
            except ChildFailedError as error:
                rank, failure = error.get_first_failure()
                assert rank == 1 and failure.exitcode == 1 and "ValueError: out of ideas" in failure.message, error
                assert "work FAILED" in str(error)
                sys.stdout.write("refused\\n")
        """,
    )
    status, out, err = launches.run(path, command=[sys.executable, "-m", library.NAME])
    assert (status, out) == (0, "refused\n"), err
    (folder,) = (launches.folder / "logs").iterdir()
    assert (folder / "attempt_0" / "1" / "stdout.log").read_text() == "talks\n"
    assert "out of ideas" in (folder / "attempt_0" / "1" / "stderr.log").read_text()


def test_spawn(launches):
    """`torch.multiprocessing.spawn` starts ranks, too."""
    path = launches.script(
        f"""
        import torch, torch.distributed as dist
        def work(rank, size):
            dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{free_port()}", rank=rank, world_size=size)
            x = torch.ones(2)
            dist.all_reduce(x)
            assert x.tolist() == [2, 2]
            dist.destroy_process_group()
        if __name__ == "__main__":
            torch.multiprocessing.spawn(work, (2,), nprocs=2)
        """
    )
    status, _, err = launches.run(path, command=[sys.executable, "-m", library.NAME])
    assert status == 0, err
