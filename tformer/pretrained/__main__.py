"""Train the model that comes with the package: `python -m tformer.pretrained`.

The same seed on the same machine, with the same number of threads, makes the same file.
"""

import argparse
import logging
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tformer.checkpoint import save_checkpoint
from tformer.config import TransformerConfig
from tformer.data.batches import batches_of_pairs
from tformer.optimizer import adamw
from tformer.schedule import cosine_schedule
from tformer.tasks.dates import (
    HELD_OUT,
    LOCALES,
    date_examples,
    date_vocabulary,
    exact_match,
)
from tformer.training import StepReport, train
from tformer.transformer import Transformer

log = logging.getLogger("tformer.pretrained")


# --8<-- [start:recipe]
RECIPE: dict[str, Any] = {
    "seed": 0,
    "steps": 4000,
    "batch_size": 128,
    "peak_learning_rate": 3e-3,
    "warmup_steps": 400,
    "weight_decay": 0.01,
    "examples": 200_000,
}
EVALUATE_EVERY = 250


def make_dates(
    recipe: dict[str, Any],
    path: Path,
    *,
    held_out: int = HELD_OUT,
    progress: bool = True,
) -> float:
    """Train on dates, evaluate on the held-out ones, and save the checkpoint.

    Pre-norm, and no dropout: there are more examples than the model could learn by
    heart, so nothing has to be held back.

    Args:
        recipe: the numbers of `RECIPE`.
        path: of the weights, ends in ".safetensors".
        held_out: examples of the test to evaluate.
        progress: show a bar.

    Returns:
        Exact match on the held-out examples.
    """
    start = time.process_time()
    torch.manual_seed(recipe["seed"])
    examples = date_examples(recipe["examples"], seed=recipe["seed"])
    vocabulary = date_vocabulary()
    config = TransformerConfig.tiny(
        vocab_size=len(vocabulary), dropout=0.0, norm_first=True
    )
    model = Transformer(config)
    validation = date_examples(500, seed=0, split="validation")

    losses: list[float] = []
    curve: list[dict[str, float]] = []

    def evaluate(report: StepReport) -> None:
        losses.append(report.loss)
        if report.step % EVALUATE_EVERY == 0:
            loss = sum(losses[-EVALUATE_EVERY:]) / EVALUATE_EVERY
            right = exact_match(model, vocabulary, validation)
            curve.append({"step": report.step, "loss": loss, "exact_match": right})
            log.info("step %d: loss %.5f, exact match %.3f", *curve[-1].values())

    pairs = [(e.text, e.iso) for e in examples]
    size, seed, steps = (recipe[n] for n in ("batch_size", "seed", "steps"))
    train(
        model,
        batches_of_pairs(vocabulary, pairs, batch_size=size, seed=seed),
        steps=steps,
        schedule=partial(
            cosine_schedule,
            steps=steps,
            peak=recipe["peak_learning_rate"],
            warmup_steps=recipe["warmup_steps"],
        ),
        optimizer=adamw(model, weight_decay=recipe["weight_decay"]),
        progress=progress,
        callback=evaluate,
    )
    cpu_minutes = (time.process_time() - start) / 60
    test = date_examples(held_out, seed=0, split="test")
    right = exact_match(model, vocabulary, test)
    facts = {
        "task": "dates",
        "locales": list(LOCALES),
        "recipe": recipe,
        "exact_match": right,
        "held_out_examples": len(test),
        "cpu_minutes": round(cpu_minutes, 1),
        "threads": torch.get_num_threads(),
        "babel": version("babel"),
        "validation": curve,
    }
    save_checkpoint(path, model, vocabulary=vocabulary, facts=facts)
    log.info(
        "exact match on %d held-out dates: %.2f %%, after %.1f CPU minutes: %s",
        len(test),
        100 * right,
        cpu_minutes,
        path,
    )
    return right
    # --8<-- [end:recipe]


def main() -> None:
    """Read the command line, and train."""
    parser = argparse.ArgumentParser(
        prog="python -m tformer.pretrained", description="Train the model on dates."
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).with_name("dates.safetensors"),
        help="where to write the weights (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=RECIPE["seed"])
    parser.add_argument("--steps", type=int, default=RECIPE["steps"])
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="of torch; another number gives other last digits (default: %(default)s)",
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(options.threads)
    make_dates({**RECIPE, "seed": options.seed, "steps": options.steps}, options.out)


if __name__ == "__main__":
    main()
