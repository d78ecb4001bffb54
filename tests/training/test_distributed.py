"""Two and four real processes train as one does; if one dies, the others say so."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import distributed_worker as worker
from ports import reserved_port
from tformer.nn.block import Block
from tformer.training.distributed import (
    choose_device,
    distribute,
    running,
    setup,
    unwrap,
)

# In float64, whatever the order of the sums. GPT's biases of keys have a gradient of
# nothing but rounding, as softmax does not see them, and Adam makes it larger.
# FSDP of older versions of torch (2.9) differs in the ninth digit.
NEW = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 13)
LIMIT = 1e-9 if NEW else 1e-7
EXACT = {"rtol": LIMIT, "atol": LIMIT}
STRATEGIES = ("ddp", "fsdp")


# Seconds in which the others have to stop. Without a word from the one that died they
# would wait for half an hour; a busy machine needs more than the second of an idle one.
SOON = 100


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., list[int]]]:
    """Start processes and wait for them, as torchrun would, without its overhead.

    They come from a server that has torch imported, since four imports take longer
    than all that is tested.
    """
    here = Path(worker.__file__).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{here}{os.pathsep}{here.parents[1]}")
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["distributed_worker"])

        def run(size: int, jobs: str, folder: Path, strategy: str = "ddp") -> list[int]:
            with reserved_port() as port:
                processes = [
                    server.Process(
                        target=worker.main,
                        args=(jobs, folder, rank, size, port, strategy),
                    )
                    for rank in range(size)
                ]
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
def four(run, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    assert run(4, "train,save", folder) == [0] * 4, (folder / "errors-0").read_text()
    return folder


@pytest.fixture(scope="module")
def two(run, four) -> Path:
    assert run(2, "train,resume", four) == [0] * 2, (four / "errors-0").read_text()
    return four


@pytest.fixture
def folder(request) -> Path:
    """Return where the processes that a test is about have left what they measured."""
    return request.getfixturevalue({2: "two", 4: "four"}[request.getfixturevalue("n")])


def read(folder: Path, name: str) -> tuple[dict, dict[str, torch.Tensor]]:
    """Read what all processes have left, and put it together."""
    facts = json.loads((folder / f"{name}.json").read_text())
    parts = [load_file(file) for file in sorted(folder.glob(f"{name}.*.st"))]
    if facts["sharded"]:  # by rows
        return facts, {n: torch.cat([part[n] for part in parts]) for n in parts[0]}
    for other in parts[1:]:
        assert all(torch.equal(other[n], tensor) for n, tensor in parts[0].items())
    return facts, parts[0]


def alone(kind: str = "transformer", **options) -> tuple[dict, dict[str, torch.Tensor]]:
    """Train in this process alone, on whole batches."""
    model, optimizer = worker.make(kind, "none")
    curves = worker.train(kind, model, optimizer, **options)
    tensors = {n: p.detach() for n, p in model.named_parameters()}
    return curves, tensors | curves.pop("gradient")


def assert_equal(measured, expected) -> None:
    for key in ("losses", "norms"):
        assert measured[0][key] == pytest.approx(expected[0][key], rel=LIMIT)
    assert measured[1].keys() == expected[1].keys()
    for name, tensor in expected[1].items():
        assert_close(measured[1][name], tensor, **EXACT, msg=lambda m, n=name: n + m)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("strategy", STRATEGIES)
class TestTheSameAsOneProcess:
    def test_losses_gradients_and_weights(self, folder, strategy, n):
        expected = alone()
        assert expected[0]["losses"][-1] < expected[0]["losses"][0] - 0.1
        assert max(expected[0]["norms"]) > 0.3  # so that clipping is tested
        assert_equal(read(folder, f"{strategy}{n}"), expected)

    def test_with_accumulation(self, folder, strategy, n):
        expected = alone(steps=range(worker.SAVED_AT))
        assert_equal(read(folder, f"{strategy}{n}-accumulated"), expected)


@pytest.mark.parametrize("kind", ["gpt", "causal", "muon"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_language_models_on_two(two, strategy, kind):
    assert_equal(read(two, f"{strategy}2-{kind}"), alone(kind))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_experts_are_balanced_by_what_all_tokens_chose(two, strategy):
    curves, tensors = alone("experts")
    bias = tensors["blocks.0.feed_forward.router.selection_bias"]
    assert bias.unique().numel() > 2
    for rank in range(2):
        own, losses = json.loads((two / f"{strategy}2-bias-{rank}").read_text())
        assert own == bias.tolist()
        assert losses == pytest.approx(curves["losses"], rel=LIMIT)
    for name, tensor in load_file(two / f"{strategy}2-experts.st").items():
        assert_close(tensor, tensors[name.removeprefix("model.")], **EXACT)


@pytest.mark.parametrize("kind", ["transformer", "gpt", "causal"])
def test_fsdp_shards_layer_by_layer(kind):
    """Else the whole model would be gathered at once."""
    layers = [m for m in worker.make_model(kind).modules() if isinstance(m, Block)]
    assert len(layers) == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_three_rows_on_four(four, strategy):
    expected = alone(steps=range(2), rows=3)
    assert_equal(read(four, f"{strategy}4-few-rows"), expected)


@pytest.mark.parametrize("n", [2, 4])
def test_a_step_in_parts_sends_gradients_once(folder, n):
    """Without that, the numbers would be the same, and the time twice as long."""
    model = worker.make_model("transformer")
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    loss = 8
    sent = json.loads((folder / f"sent-ddp{n}").read_text())
    assert sent == {"allreduce_": size + loss}
    sent = json.loads((folder / f"sent-fsdp{n}").read_text())
    assert size <= sent["_reduce_scatter_base_"] < 1.2 * size  # rows are filled up
    # Both parts, forward and backward; but the embedding stays for the backward.
    assert 3 * size < sent["_allgather_base_"] < 4.6 * size


def test_fsdp_holds_each_number_once(two, four):
    total = sum(p.numel() for p in worker.make_model("transformer").parameters())
    for n, folder in ((2, two), (4, four)):
        held = [int((folder / f"held{n}-{r}").read_text()) for r in range(n)]
        assert sum(held) == total
        assert max(held) < 1.3 * total / n


class TestResumeOnAnotherNumber:
    @pytest.mark.parametrize(("saved_by", "strategy", "form"), worker.RESUMED)
    def test_four_to_two(self, two, saved_by, strategy, form):
        self.compare(read(two, f"{saved_by}4-{strategy}2-{form}"))

    @pytest.mark.parametrize("form", ["shards", "full"])
    @pytest.mark.parametrize("saved_by", STRATEGIES)
    def test_four_to_one(self, four, saved_by, form):
        model, optimizer = worker.make("transformer", "none", seed=99)
        worker.resume(four / f"{saved_by}4-{form}", model, optimizer)
        steps = range(worker.SAVED_AT, worker.STEPS)
        curves = worker.train("transformer", model, optimizer, steps)
        self.compare((curves, {n: p.detach() for n, p in model.named_parameters()}))

    def compare(self, measured) -> None:
        curves, tensors = alone()
        for key in ("losses", "norms"):
            later = curves[key][worker.SAVED_AT :]
            assert measured[0][key] == pytest.approx(later, rel=LIMIT)
        for name, tensor in tensors.items():
            if not name.startswith("gradient."):
                assert_close(measured[1][name], tensor, **EXACT)

    def test_every_process_refuses_another_model(self, two):
        for rank in range(2):
            said = (two / f"refused2-{rank}").read_text()
            assert said.startswith("the state is of another model: it ")


class TestKilled:
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_the_others_stop_and_say_why(self, run, tmp_path, strategy):
        assert run(2, "killed", tmp_path, strategy) == [1, -9]
        assert time.time() - float((tmp_path / "killed").read_text()) < SOON
        last = (tmp_path / "errors-0").read_text().splitlines()[-1]
        assert last.removeprefix("[rank0]: ") == (
            "tformer.training.distributed.ProcessLostError: process 0 of 2 stops: "
            "another "
            "process of this run has died or cannot be reached. The report of torchrun "
            "names the first that failed. Start again from the last checkpoint"
        )

    def test_torchrun_ends_and_names_it(self, tmp_path):
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nproc-per-node", "2", "--standalone"]
        root = Path(worker.__file__).parents[2]
        done = subprocess.run(
            [*command, worker.__file__, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert time.time() - float((tmp_path / "killed").read_text()) < SOON
        assert done.returncode == 1
        cause = done.stderr.partition("Root Cause (first observed failure)")[2]
        assert "rank      : 1 (local_rank: 1)" in cause
        assert "Signal 9 (SIGKILL)" in cause


class TestOneProcess:
    def test_every_strategy_leaves_the_model(self):
        model = worker.make_model("transformer")
        for strategy in ("none", "ddp", "fsdp"):
            assert distribute(model, strategy) is model
        assert unwrap(model) is model

    def test_running(self):
        with running("cpu") as device:
            assert device == torch.device("cpu")
            assert not torch.distributed.is_initialized()

    def test_errors_pass_through(self):
        with pytest.raises(RuntimeError, match=r"^Broken pipe$"), running("cpu"):
            raise RuntimeError("Broken pipe")  # of no other process: there is none


class TestErrors:
    def test_strategy(self):
        with pytest.raises(ValueError, match=r"strategy \('fsdp2'\) must be"):
            distribute(worker.make_model("gpt"), "fsdp2")

    def test_none_with_several_processes(self, monkeypatch):
        monkeypatch.setattr("tformer.training.distributed.num_processes", lambda: 3)
        with pytest.raises(ValueError, match=r"\('none'\) with 3 processes"):
            distribute(worker.make_model("gpt"), "none")

    def test_device(self):
        with pytest.raises(ValueError, match=r"device \('tpu'\) must be"):
            setup("tpu")

    def test_no_gpu_of_its_own(self, monkeypatch):
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            monkeypatch.setenv(name, "2")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        with pytest.raises(ValueError, match=r"process 2 of this machine .* are 2"):
            setup("cuda")

    def test_alone_the_first_gpu(self, monkeypatch):
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            monkeypatch.setenv(name, "2")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        taken = []
        monkeypatch.setattr(torch.cuda, "set_device", taken.append)
        for name in ("auto", "cuda"):
            assert choose_device(name) == torch.device("cuda:0")
        assert taken == [0, 0]

    @pytest.mark.parametrize(
        ("together", "said"), [(True, "no way"), (False, "not on")]
    )
    def test_mps(self, monkeypatch, together, said):
        for name in ("RANK", "WORLD_SIZE") if together else ():
            monkeypatch.setenv(name, "1")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: together)
        with pytest.raises(ValueError, match=said):
            setup("mps")

    def test_auto(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        assert setup("auto") == torch.device("mps")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        assert setup("auto") == torch.device("cpu")
