"""`torchrun -m tformer train`: the same run on any number of processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tformer
from ports import reserved_port
from small_run import SMALL, small_settings, train_here, what_counts
from tformer.runs.checkpoints import saved_states
from tformer.runs.metrics import read_metrics

SIZES = {**SMALL, "dropout": 0.0, "steps": 12}
OPTIONS = [
    word
    for name, value in SIZES.items()
    for word in (f"--{name.replace('_', '-')}", str(value))
]


def start(processes: int, *words, meet=("--standalone",)) -> subprocess.Popen:
    """Begin a run under torchrun, with one thread a process."""
    torchrun = ["-m", "torch.distributed.run", *meet]
    return subprocess.Popen(
        [
            *(sys.executable, *torchrun, f"--nproc-per-node={processes}"),
            *("-m", "tformer", "train", *map(str, words), "--quiet"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(process: subprocess.Popen) -> tuple[str, str]:
    try:
        return process.communicate(timeout=180)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def losses(path: Path) -> list[float]:
    return [line["loss"] for line in what_counts(path) if "loss" in line]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The same run in one process."""
    path = tmp_path_factory.mktemp("alone") / "run"
    train_here(path, small_settings(**SIZES))
    return path


# By day tests/training/test_distributed.py compares both.
@pytest.mark.nightly
@pytest.mark.parametrize(("strategy", "processes"), [("ddp", 2), ("fsdp", 2)])
def test_the_run_is_that_of_one_process(alone, tmp_path, strategy, processes):
    path = tmp_path / "run"
    words = ["reverse", *OPTIONS, "-o", path, "--strategy", strategy]
    process = start(processes, *words)
    out, err = finish(process)
    assert process.returncode == 0, err
    assert out.count("test_exact_match") == 1  # one speaks for all
    assert losses(path) == pytest.approx(losses(alone), rel=1e-4)
    one, two = (json.loads((p / "result.json").read_text()) for p in (path, alone))
    assert one["test_loss"] == pytest.approx(two["test_loss"], rel=1e-4)
    assert one["machine"]["processes"] == processes
    (path / "result.json").unlink()
    newest = path / "checkpoints/step-00000012"
    newest.rename(tmp_path / "gone")
    train_here(path, small_settings(**SIZES))  # from step 9, alone
    assert losses(path) == pytest.approx(losses(alone), rel=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_launchers_make_one_run_as_on_two_machines(alone, tmp_path, strategy):
    meet = ["--nnodes=2", "--rdzv-id=test", "--rdzv-backend=c10d"]
    path = tmp_path / "run"
    words = ["reverse", *OPTIONS, "-o", path, "--strategy", strategy]
    with reserved_port() as port:
        meet.append(f"--rdzv-endpoint=localhost:{port}")
        launchers = [start(1, *words, meet=meet) for _ in range(2)]
        written = [finish(launcher) for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], written
    assert sum(out.count("test_exact_match") for out, _ in written) == 1
    assert losses(path) == pytest.approx(losses(alone), rel=1e-4)
    assert json.loads((path / "result.json").read_text())["machine"]["processes"] == 2


@pytest.mark.nightly
def test_a_killed_worker_stops_the_others_and_the_run_goes_on(alone, tmp_path):
    path = tmp_path / "run"
    long = ["reverse", *OPTIONS, "--steps", 100_000, "-o", path, "--strategy", "ddp"]
    process = start(2, *long, "--schedule", "inverse-sqrt")  # which asks for no end
    for _ in range(600):
        if list(path.glob("checkpoints/step-*")):
            break
        time.sleep(0.1)
    command = f"pgrep -P {process.pid}"
    workers = subprocess.check_output(command, shell=True, text=True).split()
    os.kill(int(workers[-1]), signal.SIGKILL)
    began = time.perf_counter()
    _, err = finish(process)
    assert time.perf_counter() - began < 60
    assert process.returncode != 0
    assert "another process of this run has died" in err or "SIGKILL" in err
    config = path / "config.json"
    values = json.loads(config.read_text())
    made = max(path.glob("checkpoints/step-*")).name
    steps = int(made.removeprefix("step-")) + 5
    config.write_text(json.dumps({**values, "steps": steps}))
    process = start(2, "--resume", path)
    _, err = finish(process)
    assert process.returncode == 0, err
    assert json.loads((path / "result.json").read_text())["steps"] == steps


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_on_three_processes_it_goes_on_bit_for_bit(tmp_path, strategy):
    """Of two numbers the sum is the same in any order; of three it is not."""
    path, found = tmp_path / "run", []
    begin = ["reverse", *OPTIONS, "--dropout", 0.1, "-o", path]
    for words in (begin, ["--resume", path]):
        process = start(3, *words, "--strategy", strategy)
        _, err = finish(process)
        assert process.returncode == 0, err
        found.append(
            (what_counts(path), (path / "model/model.safetensors").read_bytes())
        )
        shutil.rmtree(path / "checkpoints/step-00000012")  # it goes on from step 9
    assert found[0] == found[1]


SLOW = """
import os, time
from tformer.cli import main
from tformer.runs import checkpoints as state

write = state.write_json

def write_slowly(path, values):
    if os.environ["RANK"] == "0":
        time.sleep(4)
    write(path, values)

state.write_json = write_slowly
main()
"""


@pytest.mark.nightly
def test_no_process_leaves_before_the_first_has_saved(tmp_path):
    """Else torchrun kills the first while it writes, and what was saved is lost."""
    script, path = tmp_path / "slow.py", tmp_path / "run"
    script.write_text(SLOW)
    long = [*OPTIONS, "--steps", "100000", "--schedule", "inverse-sqrt"]
    long += ["--save-every", "100000", "--evaluate-every", "100000"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    root = Path(tformer.__file__).parents[1]
    process = subprocess.Popen(
        [
            *(sys.executable, *torchrun, script, "train", "reverse"),
            *(*long, "-o", path, "--strategy", "ddp", "--quiet"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
        start_new_session=True,
    )
    for _ in range(1200):
        if (path / "metrics.jsonl").exists() and read_metrics(path / "metrics.jsonl"):
            break
        time.sleep(0.1)
    workers = subprocess.check_output(f"pgrep -P {process.pid}", shell=True, text=True)
    for worker in workers.split():  # as a machine does that wants its place back
        os.kill(int(worker), signal.SIGTERM)
    _, err = finish(process)
    made = read_metrics(path / "metrics.jsonl")[-1]["step"]
    assert [state.name for state in saved_states(path / "checkpoints")] == [
        f"step-{made:08d}"
    ]
    assert f"stopped after step {made}; go on with: tformer train --resume" in err
