"""SIGKILL at random moments: checkpoints are whole, and the run ends bit for bit."""

import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from small_run import same_run, small_settings, train_here
from tformer.runs.checkpoints import saved_states
from tformer.runs.metrics import read_metrics

# Processes are forked from a server that has imported all, so they begin at once.
IMPORTED = (
    *("tformer.runs.run", "safetensors.torch", "filelock", "tqdm"),
    *("matplotlib.figure", "matplotlib.backends.backend_svg"),
    "torch.distributed.checkpoint.state_dict",
)
SETTINGS = small_settings(steps=12, save_every=2)
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload([*IMPORTED])


def start(path: Path):
    process = server.Process(target=train_here, args=(path, SETTINGS))
    process.start()
    return process


def newest_step(path: Path) -> int:
    """Hold every checkpoint to be whole; return the step of the newest."""
    states = saved_states(path / "checkpoints")
    for state in states:
        facts = json.loads((state / "state.json").read_text())
        assert state.name == f"step-{facts['step']:08d}"
        tensors = load_file(state / "training.safetensors")
        assert any(name.startswith("optimizer.") for name in tensors)
        assert all(tensor.isfinite().all() for tensor in tensors.values())
    return max((int(state.name[5:]) for state in states), default=0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, float]:
    """A run that nobody kills, and how many seconds it takes."""
    paths = [tmp_path_factory.mktemp("undisturbed") / "run" for _ in range(2)]
    for path in paths:  # the first waits for the server too
        began = time.perf_counter()
        process = start(path)
        process.join()
        assert process.exitcode == 0
    return paths[-1], time.perf_counter() - began


def wait_for_the_moment(process, path: Path, chance, seconds: float) -> None:
    """Wait for a random moment of the run's time, or one after a random step.

    A small run begins and ends for longer than it trains, the more so on a busy
    machine: moments of its time alone would seldom fall between two checkpoints.
    """
    written = steps_written(path)
    if written == SETTINGS.steps or chance.random() < 0.25:
        process.join(timeout=chance.uniform(0.0, 1.5 * seconds))
        return
    step = chance.randint(written + 1, SETTINGS.steps)
    while process.is_alive() and steps_written(path) < step:
        time.sleep(0.0005)
    process.join(timeout=chance.uniform(0.0, 0.02))


def steps_written(path: Path) -> int:
    metrics = path / "metrics.jsonl"
    lines = read_metrics(metrics) if metrics.exists() else []
    return max((line["step"] for line in lines), default=0)


@pytest.mark.nightly
@pytest.mark.parametrize("kills", [6, pytest.param(500, marks=pytest.mark.nightly)])
def test_a_run_killed_many_times_ends_as_one_that_was_not(undisturbed, tmp_path, kills):
    undisturbed, seconds = undisturbed
    chance = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID", "kills"))
    done = finished = 0
    killed_at = set()
    while done < kills:
        path = tmp_path / f"run-{finished}"
        step = 0
        while True:
            process = start(path)
            if done < kills:
                wait_for_the_moment(process, path, chance, seconds)
            else:
                process.join()
            if process.exitcode is None:
                process.kill()
                process.join()
                done += 1
            now = newest_step(path)
            assert now >= step, "a checkpoint was lost"
            step = now
            killed_at.add(step)
            if process.exitcode == 0:
                break
            assert process.exitcode == -9
        finished += 1
        same_run(path, undisturbed)
    if kills < 50:  # too few to come at all moments
        return
    assert len(killed_at) > 5, "all kills came at about the same moment"
    assert SETTINGS.steps in killed_at
