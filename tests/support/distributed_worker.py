"""One process of the distributed tests.

What it measures it leaves in the folder; the tests compare it with one process.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint  # slow: once, in the server, for all processes
import torch.distributed.checkpoint.state_dict
import torch.distributed.fsdp
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from small_models import MODERN
from tformer import Transformer, TransformerConfig
from tformer.data.batch import PairBatch, TextBatch
from tformer.models.families import custom
from tformer.training import shards
from tformer.training.distributed import distribute, running, settle, unwrap
from tformer.training.loop import train_step
from tformer.training.muon import muon
from tformer.training.optimizer import adamw
from tformer.training.processes import from_all, not_finite, process_rank

STEPS, SAVED_AT, ROWS, PAD, LEARNING_RATE = 5, 3, 11, 0, 1e-2

RESUMED = [  # saved by, resumed by, the form of what was saved
    ("fsdp", "fsdp", "shards"),
    ("fsdp", "ddp", "shards"),
    ("ddp", "fsdp", "shards"),
    ("fsdp", "ddp", "full"),
    ("ddp", "fsdp", "full"),
]

GROUPED = {**MODERN, "kv_heads": 1}
LANGUAGE_MODELS = {
    "gpt": {},
    "muon": {},
    "causal": {**GROUPED, "qk_norm": True, "placement": "sandwich", "sinks": True},
    "experts": {**GROUPED, "num_layers": 1, "experts": 7},
}


def make_model(kind: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 17, "d_model": 14, "num_heads": 7, "d_ff": 22}
    if kind in LANGUAGE_MODELS:
        config = {**sizes, "pad_id": PAD, **LANGUAGE_MODELS[kind]}
        return custom.build(config).double()
    less = {"num_encoder_layers": 1, "num_decoder_layers": 1, "bias": False}
    return Transformer(TransformerConfig.tiny(**sizes, **less, dropout=0.0)).double()


def make_batch(kind: str, step: int, rows: int = ROWS) -> PairBatch | TextBatch:
    """Rows of very different lengths, so that no split has equal numbers of tokens."""
    generator = torch.Generator().manual_seed(step)
    ids = torch.randint(3, 17, (2, rows, 9), generator=generator)
    lengths = torch.arange(rows)[:, None] % 7 + 2
    src, tgt = ids * (torch.arange(9) < lengths)
    return PairBatch(src, tgt) if kind == "transformer" else TextBatch(tgt)


def make(
    kind: str, strategy: str, seed: int = 0
) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = distribute(make_model(kind, seed), strategy)
    optimizer = muon(model) if kind == "muon" else adamw(model)
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE
    return model, optimizer


def train(
    kind: str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: range = range(STEPS),
    *,
    accumulate: int = 1,
    rows: int = ROWS,
) -> dict[str, list | dict]:
    """Train; keep losses and lengths, what the last step sent, the first gradient."""
    curves = {"losses": [], "norms": [], "gradient": {}}
    for step in steps:
        batch = make_batch(kind, step, rows)
        options = {"accumulate": accumulate, "clip_norm": 0.3, "smoothing": 0.1}
        with Sent() as sent:
            loss, norm, _ = train_step(model, batch, optimizer, **options)
        curves["losses"].append(loss)
        curves["norms"].append(norm)
        for name, p in unwrap(model).named_parameters():
            if step == 0 and p.grad is not None:
                curves["gradient"][f"gradient.{name}"] = own_part(p.grad).clone()
    return {**curves, "sent": sent.bytes}


class Sent(TorchDispatchMode):
    """Counts the bytes that collective operations are given, by operation."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        if str(operation).startswith("c10d"):
            tensors = [x for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)]
            size = max(x.numel() * x.element_size() for x in tensors)
            self.bytes[str(operation).split(".")[1]] += size
        return operation(*arguments, **(options or {}))


def own_part(tensor: torch.Tensor) -> torch.Tensor:
    """Return what this process holds; nothing is sent, as that takes long."""
    part = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part.detach()


def keep(folder: Path, name: str, model: nn.Module, curves: dict) -> None:
    """Write what a training measured: what each process holds, and the numbers."""
    parameters = dict(unwrap(model).named_parameters())
    tensors = {n: own_part(p) for n, p in parameters.items()}
    gradient = curves.pop("gradient")
    save_file(tensors | gradient, folder / f"{name}.{process_rank()}.st")
    assert all(each == curves["losses"] for each in from_all(curves["losses"]))
    if process_rank() == 0:
        sharded = [n for n, p in parameters.items() if hasattr(p, "to_local")]
        facts = {**curves, "sharded": sharded}
        (folder / f"{name}.json").write_text(json.dumps(facts))


def job_train(folder: Path, size: int) -> None:
    """Train every way there is."""
    for strategy in ("ddp", "fsdp"):
        # The seeds differ: all must start from the weights of process 0.
        model, optimizer = make("transformer", strategy, seed=process_rank())
        curves = train("transformer", model, optimizer, accumulate=2)
        keep(folder, f"{strategy}{size}", model, curves)
        check_not_finite(model, size)
        for kind in LANGUAGE_MODELS if size == 2 else ():
            model, optimizer = make(kind, strategy)
            settle(model, make_batch(kind, 0))
            keep(folder, f"{strategy}2-{kind}", model, train(kind, model, optimizer))
            state = shards.full_state(model)
            if process_rank() == 0:
                save_file(state, folder / f"{strategy}2-{kind}.st")
        if size == 4:
            model, optimizer = make("transformer", strategy)
            curves = train("transformer", model, optimizer, range(2), rows=3)
            keep(folder, f"{strategy}4-few-rows", model, curves)
    model, _ = make("transformer", "fsdp")  # by other ways into it than forward
    batch = make_batch("transformer", 0)
    with torch.no_grad():
        memory = model.encode(batch.src)
        mask = model.source_mask(batch.src)
        logits = model.decode(batch.tgt, memory, memory_key_mask=mask)
    torch.testing.assert_close(logits, model(batch.src, batch.tgt).detach())
    model.reshard()  # after a forward alone it holds what is in no layer
    parts = sum(p.to_local().numel() for p in model.parameters())
    (folder / f"held{size}-{process_rank()}").write_text(str(parts))


def check_not_finite(model: nn.Module, size: int) -> None:
    """Put NaN into what one process holds, if that is not empty; all are told."""
    parameters = dict(unwrap(model).named_parameters())
    assert not_finite(parameters.items()) is None
    name, last = [*parameters.items()][-1]
    own = own_part(last)
    if process_rank() == size - 1:
        own[-1:] = torch.nan
    held = any(from_all(bool(own.isnan().any())))
    assert not_finite(parameters.items()) == (name if held else None)
    assert held or hasattr(last, "to_local")


def job_save(folder: Path, size: int) -> None:
    """Train, and in the middle of it save."""
    for strategy in ("ddp", "fsdp"):
        model, optimizer = make("transformer", strategy)
        train("transformer", model, optimizer, range(SAVED_AT))
        with torch.no_grad():  # after which FSDP holds some matrices whole
            model(*make_batch("transformer", 0).inputs)
        shards.save_shards(folder / f"{strategy}{size}-shards", model, optimizer)
        state = shards.full_state(model, optimizer)
        assert bool(state) == (process_rank() == 0)
        if process_rank() == 0:
            save_file(state, folder / f"{strategy}{size}-full.st")


def job_resume(folder: Path, size: int) -> None:
    for saved_by, strategy, form in RESUMED:
        model, optimizer = make("transformer", strategy, seed=99)
        resume(folder / f"{saved_by}4-{form}", model, optimizer)
        curves = train("transformer", model, optimizer, range(SAVED_AT, STEPS))
        keep(folder, f"{saved_by}4-{strategy}{size}-{form}", model, curves)
    small = distribute(Transformer(TransformerConfig.tiny(d_model=16)), "fsdp")
    other = shards.full_state(distribute(make_model("gpt"), "fsdp"))
    with pytest.raises(ValueError, match=r"^the state is of another model: it "):
        shards.load_full_state(small, other)  # in every process, so that none waits


def resume(saved: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if saved.name.endswith("-shards"):
        shards.load_shards(saved, model, optimizer)
    else:
        state = load_file(f"{saved}.st") if process_rank() == 0 else {}
        shards.load_full_state(model, state, optimizer)


def job_killed(folder: Path, size: int) -> None:
    """Train; when it runs, the last process dies as if the machine had killed it."""
    model, optimizer = make("transformer", "ddp")
    for step in range(1_000_000):
        train("transformer", model, optimizer, range(step, step + 1))
        if step == 3 and process_rank() == size - 1:
            (folder / "killed").write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, rank: int, jobs: list[tuple]) -> None:
    """Be one of several processes; what goes wrong goes into a file.

    Each entry of `jobs`: on how many processes, by which port, and what.
    """
    os.dup2(os.open(folder / f"errors-{rank}", os.O_CREAT | os.O_WRONLY), 2)
    torch.set_num_threads(1)
    for size, port, *names in jobs:
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in place.items()}
        if rank < size:
            with running("cpu"):
                for name in names:
                    globals()[f"job_{name}"](folder, size)


if __name__ == "__main__":  # started by torchrun
    torch.set_num_threads(1)
    with running("cpu"):
        job_killed(Path(sys.argv[1]), int(os.environ["WORLD_SIZE"]))
