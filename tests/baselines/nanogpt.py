"""Train by nanoGPT's own recipe for a CPU, and measure as nanoGPT does.

    python tests/baselines/nanogpt.py train shakespeare.txt --seed 0 --out runs/nano-0
    python tests/baselines/nanogpt.py estimate shakespeare.txt runs/text-0

The recipe is that of nanoGPT's readme and config/train_shakespeare_char.py: 4 layers, 4
heads, width 128, context 64, batches of 12 windows, 2,000 steps, a learning rate of
0.001 that falls to 0.0001, β₂ 0.99, no dropout, no bias. The model and the loop are
written anew, from the description, in plain torch; nothing of tformer is in them.

"estimate" measures one of our runs as nanoGPT does: on 20 random batches of the
validation text. That is a draw; it is made ten times, to show how far it strays.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.nano import NanoGPT

from tformer.files import write_json
from tformer.runs.data import windows_in_order
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import Metrics, describe_machine, save_evaluation
from tformer.runs.model import load_trained
from tformer.runs.settings import RunSettings
from tformer.training.evaluation import MeanLoss, mean_loss
from tformer.training.loop import StepReport

CPU = torch.device("cpu")
LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12
CONFIG = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": CONTEXT}
CONFIG |= {"activation_function": "gelu", "bias": False}
PEAK, LOWEST, WARMUP = 1e-3, 1e-4, 100
EVAL_BATCHES, DRAWS = 20, 10
LOOKS = 8  # at all of the validation text, which takes a second each


def new_model(vocab_size: int) -> NanoGPT:
    """Make one with normal weights of 0.02, smaller where a residual is added."""
    model = NanoGPT({**CONFIG, "vocab_size": vocab_size})
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            less = math.sqrt(2 * LAYERS) if name.endswith("_proj.weight") else 1
            nn.init.normal_(parameter, std=0.02 / less)
    return model


def learning_rate(step: int, steps: int) -> float:
    """Rise to the peak, then fall as a cosine; the first step is 0."""
    if step < WARMUP:
        return PEAK * (step + 1) / (WARMUP + 1)
    done = (step - WARMUP) / (steps - WARMUP)
    return LOWEST + 0.5 * (1 + math.cos(math.pi * done)) * (PEAK - LOWEST)


def read(file: str) -> tuple[Tensor, Tensor, list[str]]:
    """Return the ids of the first 90 % and of the rest, and the characters."""
    text = Path(file).read_text(encoding="utf-8")
    characters = sorted(set(text))
    number = {c: i for i, c in enumerate(characters)}
    ids = torch.tensor([number[c] for c in text])
    cut = int(0.9 * len(ids))
    return ids[:cut], ids[cut:], characters


def draw(ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    places = torch.randint(len(ids) - CONTEXT, (BATCH,), generator=generator)
    rows = torch.stack([ids[i : i + CONTEXT + 1] for i in places.tolist()])
    return rows[:, :-1], rows[:, 1:]


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimates(score: Callable[[Tensor], Tensor], ids: Tensor) -> list[float]:
    """Make nanoGPT's estimate, the mean of 20 random batches, so many times."""
    means = []
    for seed in range(DRAWS):
        generator = torch.Generator().manual_seed(seed)
        batches = [draw(ids, generator) for _ in range(EVAL_BATCHES)]
        losses = [loss_of(score(x), y).item() for x, y in batches]
        means.append(sum(losses) / len(losses))
    return means


def train(file: str, out: str, seed: int, steps: int) -> None:
    settings = RunSettings.of(
        "text",
        files=(str(Path(file).resolve()),),
        learning_rate=PEAK,
        steps=steps,
        warmup_steps=min(WARMUP, steps - 1),
        evaluate_every=max(250, steps // LOOKS),
        save_every=steps,  # before the end nothing is saved to go on from
        seed=seed,
    )
    folder = RunFolder.create(out, settings)
    folder.unlock()
    ids, rest, characters = read(file)
    torch.manual_seed(seed)
    model = new_model(len(characters))
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99), eps=1e-8)
    generator = torch.Generator().manual_seed(seed)
    metrics = Metrics(folder.metrics, 0)

    def measured() -> MeanLoss:
        """Measure as our runs do: every window of the text, side by side, once."""
        return mean_loss(model, windows_in_order(rest.numpy(), CONTEXT, len(rest)))

    for step in range(steps):
        rate = learning_rate(step, steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        x, y = draw(ids, generator)
        loss = loss_of(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        made = StepReport(step + 1, loss.item(), rate, norm.item(), y.numel())
        metrics.write({**made._asdict(), **metrics.seconds()})
        if (step + 1) % settings.evaluate_every == 0 or step + 1 == steps:
            metrics.write({"step": step + 1, "validation_loss": measured()[0]})
    seconds = metrics.seconds()  # of the training and its looks, as in our runs
    test_loss, tokens = measured()
    draws = estimates(model, rest)
    result = {
        "task": "text",
        "baseline": "nanoGPT's recipe",
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        **seconds,
        "test_loss": test_loss,
        "test_tokens": tokens,
        "test_bits_per_byte": test_loss / math.log(2),  # each character is one byte
        "machine": describe_machine(CPU),
    }
    write_json(folder.result, result)
    keep(folder, file, draws)


def keep(folder: RunFolder, file: str, draws: list[float]) -> None:
    save_evaluation(
        folder,
        "nanogpt-estimate",
        asked={"files": [Path(file).name], "batches": EVAL_BATCHES, "rows": BATCH},
        result={"losses": draws},
        mistakes=[],
        device=CPU,
    )


def estimate(file: str, run: str) -> None:
    trained = load_trained(run)
    assert trained.folder is not None, f"{run} is no folder of a run"
    _, rest, characters = read(file)
    ids = torch.tensor(trained.vocabulary.encode("".join(characters)))
    keep(trained.folder, file, estimates(trained.model, ids[rest]))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    of_train = commands.add_parser("train")
    of_train.add_argument("file")
    of_train.add_argument("--seed", type=int, default=0)
    of_train.add_argument("--steps", type=int, default=2000)
    of_train.add_argument("--out", required=True)
    of_estimate = commands.add_parser("estimate")
    of_estimate.add_argument("file")
    of_estimate.add_argument("run")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    if options.command == "train":
        train(options.file, options.out, options.seed, options.steps)
    else:
        estimate(options.file, options.run)


if __name__ == "__main__":
    main()
