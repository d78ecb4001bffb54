"""Train a baseline on the data and by the loop of our runs, into a folder like theirs.

    python tests/baselines/train.py gru --steps 1000 --seed 0 --out runs/dates-gru-0

Data, order of batches, optimizer, schedule and test are those of `tformer train TASK`
with the same settings; only the model is another. Nothing was tuned for it. After the
training it answers the harder splits of its task as well.
"""

import argparse
from typing import Any

import torch

from models import BASELINES, greedy
from rules import answer_harder
from tformer.files import write_json
from tformer.generate.evaluating import evaluating
from tformer.generate.translate import translate_to_ids
from tformer.runs.data import run_data
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import Metrics, describe_machine
from tformer.runs.model import build_optimizer
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.training.evaluation import matches, mean_loss
from tformer.training.loop import StepReport, train

CPU = torch.device("cpu")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=BASELINES)
    parser.add_argument("--task", choices=TASKS, default="dates")
    parser.add_argument("--count", type=int, default=2000, help="pairs of a split")
    parser.add_argument("--out", required=True)
    parser.epilog = "What else is given is a setting: --steps 1000 --seed 0"
    options, others = parser.parse_known_args(words)
    pairs = zip(others[::2], others[1::2], strict=True)
    changes = {name[2:].replace("-", "_"): int(value) for name, value in pairs}
    settings = RunSettings.of(options.task, **changes)
    torch.set_num_threads(1)
    folder = RunFolder.create(options.out, settings)
    try:
        run(folder, options.model, options.count)
    finally:
        folder.unlock()


def run(folder: RunFolder, name: str, count: int) -> None:
    """Train, test, and write the files of a run, but for checkpoints and the model."""
    s = folder.settings()
    data = run_data(s, folder.path)
    torch.manual_seed(s.seed)
    sizes = {"vocab_size": len(data.vocabulary), "pad_id": data.vocabulary.pad_id}
    model = BASELINES[name](s, **sizes)
    metrics = Metrics(folder.metrics, 0)

    def answer(pairs: Any) -> tuple[float, list[dict[str, str]]]:
        sources, targets = zip(*pairs, strict=True)
        options = {"max_len": data.max_target_len, "decode": greedy}
        with evaluating(model):
            written = translate_to_ids(model, data.vocabulary, sources, **options)
        texts = [data.vocabulary.decode(ids) for ids in written]
        wrong = [
            {"source": source, "target": target, "written": text}
            for source, target, text in zip(sources, targets, texts, strict=True)
            if text != target
        ]
        return matches(data.vocabulary, written, targets) / len(pairs), wrong

    def after(report: StepReport) -> None:
        metrics.write({**report._asdict(), **metrics.seconds()})
        if report.step % s.evaluate_every == 0 or report.step == s.steps:
            scores = {
                "validation_loss": mean_loss(model, data.validation).loss,
                "validation_exact_match": answer(data.validation_pairs)[0],
            }
            metrics.write({"step": report.step, **scores})

    train(
        model,
        data.batches(0),
        steps=s.steps,
        schedule=s.rate_at,
        optimizer=build_optimizer(s, model),
        smoothing=s.smoothing,
        clip_norm=s.clip_norm,
        progress=False,
        callback=after,
    )
    seconds = metrics.seconds()  # of the training and its looks, as in our runs
    loss = mean_loss(model, data.test)
    result = {
        "task": s.task,
        "baseline": name,
        "steps": s.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        **seconds,
        "test_loss": loss.loss,
        "test_tokens": loss.tokens,
        "test_pairs": len(data.test_pairs),
        "test_exact_match": answer(data.test_pairs)[0],
        "machine": describe_machine(CPU),
    }
    write_json(folder.result, result)
    answer_harder(folder, s.task, count, answer, beams=1)


if __name__ == "__main__":
    main()
