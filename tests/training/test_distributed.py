"""Two and four real processes train as one does; if one dies, the others say so."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import distributed_worker as worker
from ports import reserved_port
from tformer.nn.block import Block
from tformer.training import distributed
from tformer.training.distributed import distribute, running

# In float64, whatever the order of the sums. GPT's biases of keys have a gradient of
# nothing but rounding, as softmax does not see them, and Adam makes it larger.
# FSDP of older versions of torch (2.9) differs in the ninth digit.
NEW = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 13)
LIMIT = 1e-9 if NEW else 1e-7
EXACT = {"rtol": LIMIT, "atol": LIMIT}
STRATEGIES = ("ddp", "fsdp")
# Seconds in which the others stop. Without a word from the dead they wait half an hour.
SOON = 100


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., list[int]]]:
    """Start processes as torchrun would, from a server that has torch imported."""
    here = Path(worker.__file__).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{here}{os.pathsep}{here.parents[1]}")
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["distributed_worker"])

        def run(folder: Path, *jobs: tuple) -> list[int]:
            """Do each job, such as (4, "train"); the first has the most processes."""
            with ExitStack() as stack:
                jobs = [
                    (size, stack.enter_context(reserved_port()), *names)
                    for size, *names in jobs
                ]
                args = [(folder, rank, jobs) for rank in range(jobs[0][0])]
                processes = [server.Process(target=worker.main, args=a) for a in args]
                for process in processes:
                    process.start()
                deadline = time.monotonic() + 600  # a busy machine takes its time
                try:
                    for process in processes:
                        process.join(timeout=max(0.0, deadline - time.monotonic()))
                finally:
                    for process in processes:
                        process.kill()
                return [process.exitcode for process in processes]

        yield run


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory) -> Path:
    """Return where four processes, and then two of them, have left what they found."""
    folder = tmp_path_factory.mktemp("processes")
    codes = run(folder, (4, "train", "save"), (2, "train", "resume"))
    assert codes == [0] * 4, (folder / "errors-0").read_text()
    return folder


def read(folder: Path, name: str) -> tuple[dict, dict[str, torch.Tensor]]:
    """Read what all processes have left, and put it together."""
    facts = json.loads((folder / f"{name}.json").read_text())
    parts = [load_file(file) for file in sorted(folder.glob(f"{name}.*.st"))]
    whole = {}
    for n, tensor in parts[0].items():
        if n.removeprefix("gradient.") in facts["sharded"]:  # by rows
            whole[n] = torch.cat([part[n] for part in parts])
        else:
            assert all(torch.equal(part[n], tensor) for part in parts)
            whole[n] = tensor
    return facts, whole


@cache
def alone(kind: str = "transformer", **options) -> tuple[dict, dict[str, torch.Tensor]]:
    """Train in this process alone, on whole batches."""
    model, optimizer = worker.make(kind, "none")
    curves = worker.train(kind, model, optimizer, **options)
    tensors = {n: p.detach() for n, p in model.named_parameters()}
    return curves, tensors | curves["gradient"]


WAYS = [("2", "transformer", {}), ("4", "transformer", {})]  # batches in two parts
WAYS += [("4-few-rows", "transformer", {"steps": range(2), "rows": 3})]
WAYS += [(f"2-{kind}", kind, {}) for kind in worker.LANGUAGE_MODELS]


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("way", "kind", "options"), WAYS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_numbers_of_one_process(folder, strategy, way, kind, options):
    curves, expected = alone(kind, **options)
    found, tensors = read(folder, f"{strategy}{way}")
    for key in ("losses", "norms"):
        assert found[key] == pytest.approx(curves[key], rel=LIMIT)
    assert tensors.keys() == expected.keys()
    for file in folder.glob(f"{strategy}{way}.st"):  # the same weights, gathered
        state = load_file(file).items()
        tensors |= {name.removeprefix("model."): x for name, x in state}
        assert len(state) > 5
    for name, x in expected.items():
        assert_close(tensors[name], x, **EXACT, msg=lambda m, n=name: n + m)


def test_there_is_something_to_compare():
    curves, _ = alone()
    assert curves["losses"][-1] < curves["losses"][0] - 0.1
    assert max(curves["norms"]) > 0.3  # so that clipping is tested
    bias = alone("experts")[1]["blocks.0.feed_forward.router.selection_bias"]
    assert bias.unique().numel() > 2
    for kind in ("transformer", "gpt", "causal"):  # FSDP gathers block by block
        modules = worker.make_model(kind).modules()
        assert sum(isinstance(module, Block) for module in modules) == 2


@pytest.mark.parametrize("n", [2, 4])
def test_a_step_in_parts_sends_gradients_once(folder, n):
    """Without that, the numbers would be the same, and the time twice as long."""
    model = worker.make_model("transformer")
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    assert read(folder, f"ddp{n}")[0]["sent"] == {"allreduce_": size + 8}  # the loss
    sent = read(folder, f"fsdp{n}")[0]["sent"]
    assert size <= sent["_reduce_scatter_base_"] < 1.2 * size  # rows are filled up
    # Both parts, forward and backward; but the embedding stays for the backward.
    assert 3 * size < sent["_allgather_base_"] < 4.6 * size


@pytest.mark.parametrize("n", [2, 4])
def test_fsdp_holds_each_number_once(folder, n):
    total = sum(p.numel() for p in worker.make_model("transformer").parameters())
    held = [int((folder / f"held{n}-{rank}").read_text()) for rank in range(n)]
    assert sum(held) == total
    assert max(held) < 1.3 * total / n


BY_ONE = [(by, "none", form) for by, _, form in worker.RESUMED[1:]]


@pytest.mark.parametrize(("saved_by", "strategy", "form"), worker.RESUMED + BY_ONE)
def test_what_four_saved_two_resume_and_one(folder, saved_by, strategy, form):
    if strategy == "none":
        model, optimizer = worker.make("transformer", "none", seed=99)
        worker.resume(folder / f"{saved_by}4-{form}", model, optimizer)
        steps = range(worker.SAVED_AT, worker.STEPS)
        curves = worker.train("transformer", model, optimizer, steps)
        tensors = {n: p.detach() for n, p in model.named_parameters()}
    else:
        curves, tensors = read(folder, f"{saved_by}4-{strategy}2-{form}")
    numbers, expected = alone()
    for key in ("losses", "norms"):
        later = numbers[key][worker.SAVED_AT :]
        assert curves[key] == pytest.approx(later, rel=LIMIT)
    for name, tensor in tensors.items():
        assert_close(tensor, expected[name], **EXACT)


STOPS = (
    "tformer.training.distributed.ProcessLostError: process 0 of 2 stops: another "
    "process of this run has died or cannot be reached. The report of torchrun names "
    "the first that failed. Start again from the last checkpoint"
)


@pytest.mark.nightly
def test_where_one_is_killed_the_other_stops_and_says_why(run, tmp_path):
    assert run(tmp_path, (2, "killed")) == [1, -9]
    assert time.time() - float((tmp_path / "killed").read_text()) < SOON
    assert STOPS in (tmp_path / "errors-0").read_text().splitlines()[-1]


@pytest.mark.nightly
def test_torchrun_ends_and_names_the_first_that_was_killed(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--nproc-per-node", "2", "--standalone"]
    path = {"PYTHONPATH": str(Path(worker.__file__).parents[2])}
    done = subprocess.run(
        [*command, worker.__file__, str(tmp_path)],
        env={**os.environ, **path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert time.time() - float((tmp_path / "killed").read_text()) < SOON
    assert done.returncode == 1  # the other may be stopped before it says why
    cause = done.stderr.partition("Root Cause (first observed failure)")[2]
    assert "rank      : 1 (local_rank: 1)" in cause
    assert "Signal 9 (SIGKILL)" in cause


def test_one_process_needs_no_other():
    model = worker.make_model("transformer")
    for strategy in ("none", "ddp", "fsdp"):
        assert distribute(model, strategy) is model
    assert distributed.unwrap(model) is model
    with running("cpu") as device:
        assert device == torch.device("cpu")
        assert not torch.distributed.is_initialized()
    with pytest.raises(RuntimeError, match=r"^Broken pipe$"), running("cpu"):
        raise RuntimeError("Broken pipe")  # of no other process: there is none


def test_bad_strategies_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"strategy \('fsdp2'\) must be"):
        distribute(worker.make_model("gpt"), "fsdp2")
    monkeypatch.setattr(distributed, "num_processes", lambda: 3)
    with pytest.raises(ValueError, match=r"\('none'\) with 3 processes"):
        distribute(worker.make_model("gpt"), "none")


@pytest.mark.parametrize(
    ("device", "together", "gpus", "mps", "expected"),
    [
        ("cuda", False, 1, False, "cuda:0"),
        ("auto", False, 1, True, "cuda:0"),
        ("auto", False, 0, True, "mps"),
        ("auto", False, 0, False, "cpu"),
        ("tpu", False, 1, True, r"device \('tpu'\) must be"),
        ("mps", False, 0, False, "not on this machine"),
        ("mps", True, 0, True, "no way to talk"),
        ("cuda", True, 2, False, "process 2 of this machine .* are 2"),
    ],
)
def test_devices(monkeypatch, device, together, gpus, mps, expected):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.setenv(name, "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    choose = distributed.setup if together else distributed.choose_device
    if " " in expected:
        with pytest.raises(ValueError, match=expected):
            choose(device)
    else:
        assert choose(device) == torch.device(expected)
