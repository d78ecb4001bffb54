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

from tformer.batches import batches_of_pairs
from tformer.checkpoint import save_checkpoint
from tformer.config import TransformerConfig
from tformer.dates import LOCALES, date_examples, exact_match
from tformer.schedule import cosine_schedule
from tformer.training import StepReport, adamw, train
from tformer.transformer import Transformer
from tformer.vocabulary import CharacterVocabulary

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
HELD_OUT_EXAMPLES = 2000


def make_dates(recipe: dict[str, Any], path: Path, *, progress: bool = True) -> float:
    """Train on dates, evaluate on the held-out ones, and save the checkpoint.

    Pre-norm, and no dropout: there are more examples than the model could learn by
    heart, so nothing has to be held back.

    Args:
        recipe: the numbers of `RECIPE`.
        path: of the weights, ends in ".safetensors".
        progress: show a bar.

    Returns:
        Exact match on the 2,000 held-out examples of the test.
    """
    start, start_cpu = time.perf_counter(), time.process_time()
    torch.manual_seed(recipe["seed"])
    examples = date_examples(recipe["examples"], seed=recipe["seed"])
    vocabulary = CharacterVocabulary.of(e.text + e.iso for e in examples)
    config = TransformerConfig.tiny(
        vocab_size=len(vocabulary), dropout=0.0, norm_first=True
    )
    model = Transformer(config)
    validation = date_examples(500, seed=0, split="validation")

    def evaluate(report: StepReport) -> None:
        if report.step % 500 == 0:
            right = exact_match(model, vocabulary, validation)
            log.info(
                "step %d: loss %.5f, exact match on validation %.1f %%",
                report.step,
                report.loss,
                100 * right,
            )

    pairs = [(e.text, e.iso) for e in examples]
    size, seed, steps = (recipe[n] for n in ("batch_size", "seed", "steps"))
    reports = train(
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
    minutes = (time.perf_counter() - start) / 60
    cpu_minutes = (time.process_time() - start_cpu) / 60
    test = date_examples(HELD_OUT_EXAMPLES, seed=0, split="test")
    right = exact_match(model, vocabulary, test)
    facts = {
        "task": "dates",
        "locales": list(LOCALES),
        "recipe": recipe,
        "final_loss": reports[-1].loss,
        "exact_match": right,
        "held_out_examples": len(test),
        "minutes": round(minutes, 1),
        "cpu_minutes": round(cpu_minutes, 1),
        "threads": torch.get_num_threads(),
        "babel": version("babel"),
    }
    save_checkpoint(path, model, vocabulary=vocabulary, facts=facts)
    log.info(
        "exact match on %d held-out dates: %.2f %%, after %.1f minutes, "
        "%.1f of them times a core. Written: %s",
        len(test),
        100 * right,
        minutes,
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
        help="of torch; the products are small, so that more win little, and another "
        "number gives other last digits (default: %(default)s)",
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(options.threads)
    make_dates({**RECIPE, "seed": options.seed, "steps": options.steps}, options.out)


if __name__ == "__main__":
    main()
