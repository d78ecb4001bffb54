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
from tformer.training.distributed import distribute, running, settle, unwrap
from tformer.training.loop import train_step
from tformer.training.muon import muon
from tformer.training.optimizer import adamw
from tformer.training.processes import not_finite, process_rank, sum_over_processes
from tformer.training.shards import (
    full_state,
    load_full_state,
    load_shards,
    save_shards,
)

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
) -> dict[str, list]:
    """Train; keep losses and lengths, and the whole gradient of the first step."""
    losses, norms, gradient = [], [], {}
    for step in steps:
        batch = make_batch(kind, step, rows)
        loss, norm, _ = train_step(
            model, batch, optimizer, accumulate=accumulate, clip_norm=0.3, smoothing=0.1
        )
        losses.append(loss)
        norms.append(norm)
        for name, p in unwrap(model).named_parameters():
            if step == 0 and p.grad is not None:
                gradient[f"gradient.{name}"] = own_part(p.grad)
    return {"losses": losses, "norms": norms, "gradient": gradient}


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
    return part.detach().clone()


def own_view(tensor: torch.Tensor) -> torch.Tensor:
    """Return what this process holds, to be changed."""
    part = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part.detach()


def keep(folder: Path, name: str, model: nn.Module, curves: dict[str, list]) -> None:
    parameters = dict(unwrap(model).named_parameters())
    tensors = {n: own_part(p) for n, p in parameters.items()} | curves["gradient"]
    save_file(tensors, folder / f"{name}.{process_rank()}.st")
    if process_rank() == 0:
        sharded = hasattr(next(iter(parameters.values())), "to_local")
        numbers = {key: curves[key] for key in ("losses", "norms")}
        facts = {**numbers, "sharded": sharded}
        (folder / f"{name}.json").write_text(json.dumps(facts))


def job_train(folder: Path, size: int) -> None:
    """Train every way there is; in the middle of one, save."""
    for strategy in ("ddp", "fsdp"):
        # The seeds differ: all must start from the weights of process 0.
        model, optimizer = make("transformer", strategy, seed=process_rank())
        keep(folder, f"{strategy}{size}", model, train("transformer", model, optimizer))

        model, optimizer = make("transformer", strategy)
        steps, last = range(SAVED_AT - 1), range(SAVED_AT - 1, SAVED_AT)
        curves = train("transformer", model, optimizer, steps, accumulate=2)
        with Sent() as sent:
            more = train("transformer", model, optimizer, last, accumulate=2)
        curves = {key: curves[key] + more[key] for key in ("losses", "norms")} | {
            "gradient": curves["gradient"]
        }
        keep(folder, f"{strategy}{size}-accumulated", model, curves)
        (folder / f"sent-{strategy}{size}").write_text(json.dumps(sent.bytes))

        if size == 2:
            for kind in ("gpt", "causal", "muon"):
                model, optimizer = make(kind, strategy)
                curves = train(kind, model, optimizer)
                keep(folder, f"{strategy}{size}-{kind}", model, curves)
            model, optimizer = make("experts", strategy)
            settle(model, make_batch("experts", 0))
            curves = train("experts", model, optimizer)
            for router in unwrap(model).modules():
                if hasattr(router, "selection_bias"):
                    own = router.selection_bias.tolist()
                    name = f"{strategy}{size}-bias-{process_rank()}"
                    (folder / name).write_text(json.dumps([own, curves["losses"]]))
            state = full_state(model)
            if process_rank() == 0:
                save_file(state, folder / f"{strategy}{size}-experts.st")
        else:
            model, optimizer = make("transformer", strategy)
            curves = train("transformer", model, optimizer, range(2), rows=size - 1)
            keep(folder, f"{strategy}{size}-few-rows", model, curves)

        model, _ = make("transformer", strategy)
        assert not_finite(unwrap(model).named_parameters()) is None
        last = list(unwrap(model).parameters())[-1]
        if process_rank() == size - 1 and len(own := own_view(last)):
            own[-1] = torch.nan  # in one process; all are told
        held = process_rank() == size - 1 and bool(own_view(last).isnan().any())
        found = not_finite(unwrap(model).named_parameters()) is not None
        assert found == (sum_over_processes(torch.tensor(float(held))).item() > 0)
        assert found or strategy == "fsdp"
        if strategy == "fsdp":  # by other ways into it than forward
            model, _ = make("transformer", strategy)
            batch = make_batch("transformer", 0)
            with torch.no_grad():
                memory = model.encode(batch.src)
                logits = model.decode(
                    batch.tgt, memory, memory_key_mask=model.source_mask(batch.src)
                )
            torch.testing.assert_close(logits, model(batch.src, batch.tgt).detach())
            model.reshard()  # after a forward alone it holds what is in no layer
            parts = sum(p.to_local().numel() for p in model.parameters())
            (folder / f"held{size}-{process_rank()}").write_text(str(parts))


def job_save(folder: Path, size: int) -> None:
    for strategy in ("ddp", "fsdp"):
        model, optimizer = make("transformer", strategy)
        train("transformer", model, optimizer, range(SAVED_AT))
        with torch.no_grad():  # after which FSDP holds some matrices whole
            model(*make_batch("transformer", 0).inputs)
        save_shards(folder / f"{strategy}{size}-shards", model, optimizer)
        state = full_state(model, optimizer)
        assert bool(state) == (process_rank() == 0)
        if process_rank() == 0:
            save_file(state, folder / f"{strategy}{size}-full.st")


def job_resume(folder: Path, size: int, saved_on: int = 4) -> None:
    for saved_by, strategy, form in RESUMED:
        model, optimizer = make("transformer", strategy, seed=99)
        resume(folder / f"{saved_by}{saved_on}-{form}", model, optimizer)
        steps = range(SAVED_AT, STEPS)
        curves = train("transformer", model, optimizer, steps)
        name = f"{saved_by}{saved_on}-{strategy}{size}-{form}"
        keep(folder, name, model, curves)
    try:
        small = distribute(Transformer(TransformerConfig.tiny(d_model=16)), "fsdp")
        load_full_state(small, full_state(distribute(make_model("gpt"), "fsdp")))
    except ValueError as error:  # in every process, so that none waits for another
        (folder / f"refused{size}-{process_rank()}").write_text(str(error))


def resume(saved: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if saved.name.endswith("-shards"):
        load_shards(saved, model, optimizer)
    else:
        main = process_rank() == 0
        load_full_state(model, load_file(f"{saved}.st") if main else {}, optimizer)


def job_killed(folder: Path, size: int) -> None:
    """Train; when it runs, the last process dies as if the machine had killed it."""
    model, optimizer = make("transformer", os.environ.get("STRATEGY", "ddp"))
    for step in range(1_000_000):
        train("transformer", model, optimizer, range(step, step + 1))
        if step == 3 and process_rank() == size - 1:
            (folder / "killed").write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)


JOBS = {
    "train": job_train,
    "save": job_save,
    "resume": job_resume,
    "killed": job_killed,
}


def main(
    jobs: str, folder: Path, rank: int, size: int, port: int, strategy: str
) -> None:
    """Be one of several processes; what goes wrong goes into a file."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "STRATEGY": strategy,
    }
    os.dup2(os.open(folder / f"errors-{rank}", os.O_CREAT | os.O_WRONLY), 2)
    torch.set_num_threads(1)
    with running("cpu"):
        for job in jobs.split(","):
            JOBS[job](folder, size)


if __name__ == "__main__":  # started by torchrun
    torch.set_num_threads(1)
    with running("cpu"):
        job_killed(Path(sys.argv[1]), int(os.environ["WORLD_SIZE"]))
