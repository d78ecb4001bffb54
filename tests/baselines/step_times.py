"""Measure how long a training step of each of some runs takes, in turn in one process.

    python tests/baselines/step_times.py runs/gpt-0 runs/gpt-rotary-0 …

Each round trains every model for a few steps, so that whatever else the machine does
meets all of them alike. The time is the processor's. It is kept in the folder of each
run, as the median over the rounds: seconds a step, and that divided by the first run's
of the same round.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import torch

from tformer.runs.data import run_data
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import save_evaluation
from tformer.runs.model import build_model, build_optimizer
from tformer.training.loop import train_step

CPU = torch.device("cpu")
NAME = "step-time"


def stepper(folder: RunFolder) -> Callable[[], float]:
    """Make a function that trains a new model of a run for a step."""
    s = folder.settings()
    data = run_data(s, folder.path)
    model = build_model(s, data.vocabulary).train()
    optimizer = build_optimizer(s, model)
    for group in optimizer.param_groups:
        group["lr"] = s.learning_rate / 10  # no warm-up
    batches = cycle(list(islice(data.batches(0), 20)))
    return lambda: train_step(model, next(batches), optimizer, clip_norm=s.clip_norm)[0]


def seconds(step: Callable[[], float], steps: int) -> float:
    start = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - start) / steps


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=5, help="of a round")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    folders = [RunFolder.open(path) for path in options.runs]
    made = [stepper(folder) for folder in folders]
    for step in made:  # the first steps take memory
        seconds(step, 2)
    rounds = [[seconds(s, options.steps) for s in made] for _ in range(options.rounds)]
    for i, folder in enumerate(folders):
        result = {
            "seconds": statistics.median(times[i] for times in rounds),
            "ratio": statistics.median(times[i] / times[0] for times in rounds),
        }
        save_evaluation(
            folder,
            NAME,
            asked={"rounds": options.rounds, "steps": options.steps},
            result=result,
            mistakes=[],
            device=CPU,
        )
        print(f"{folder.path.name:28} {1000 * result['seconds']:7.1f} ms", end="")
        print(f"  {result['ratio']:.3f}", flush=True)


if __name__ == "__main__":
    main()
