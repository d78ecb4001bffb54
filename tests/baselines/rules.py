"""Answer a task by a rule, nothing trained, into a folder like that of a run.

    python tests/baselines/rules.py dateutil --out runs/dates-dateutil
    python tests/baselines/rules.py copy-source --task number-words --out runs/x
    python tests/baselines/rules.py copy-source --files test.de test.en --out runs/y

"copy-source" writes what it reads. "dateutil" lets `dateutil.parser.parse` read the
date: it knows the names of the months and weekdays in English alone.
"""

import argparse
import datetime
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from dateutil import parser as dateutil_parser

from tformer.data.pairs import read_pairs
from tformer.files import write_json
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import describe_machine, save_evaluation
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.tasks.dates import HARDER_SPLITS
from tformer.training.evaluation import bleu

CPU = torch.device("cpu")
MISTAKES = 20
# What a text lacks is taken from here; no date of the tests is this day by chance.
DEFAULT = datetime.datetime(1, 1, 1)

Answer = Callable[[Any], tuple[float, list[Any]]]  # pairs → rate, mistakes


def copy_source(text: str) -> str:
    return text


def dateutil(text: str) -> str:
    try:
        return dateutil_parser.parse(text, default=DEFAULT).date().isoformat()
    except (ValueError, OverflowError):  # ParserError is a ValueError
        return ""


RULES: dict[str, Callable[[str], str]] = {
    "copy-source": copy_source,
    "dateutil": dateutil,
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rule", choices=RULES)
    parser.add_argument("--task", choices=TASKS, default="dates")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--files", nargs=2, help="texts and targets, for BLEU")
    parser.add_argument("--out", required=True)
    options = parser.parse_args(words)
    rule, task, count = RULES[options.rule], options.task, options.count
    if options.files:
        files = tuple(str(Path(file).resolve()) for file in options.files)
        settings = RunSettings.of("pairs", files=files)
    else:
        settings = RunSettings.of(task, test_examples=count)
    folder = RunFolder.create(options.out, settings)
    folder.unlock()
    result = {"task": settings.task, "baseline": options.rule, "steps": 0}
    result |= {"parameters": 0, "machine": describe_machine(CPU)}
    if options.files:
        translate(folder, rule, options.files)
    else:
        began = time.process_time()
        rate, _ = answer(rule, TASKS[task].pairs("test", count, 0))
        spent = round(time.process_time() - began, 3)
        result |= {"cpu_seconds": spent, "test_pairs": count, "test_exact_match": rate}
        if task.startswith("dates"):
            result["test_by_locale"] = by_locale(rule, TASKS[task], count)
        answer_harder(folder, task, count, partial(answer, rule))
    write_json(folder.result, result)


def translate(folder: RunFolder, rule: Callable[[str], str], files: list[str]) -> None:
    """Measure a rule by BLEU on two parallel files."""
    sources, targets = zip(*read_pairs(*files), strict=True)
    measured = bleu([rule(source) for source in sources], targets)
    save_evaluation(
        folder,
        "test",
        asked={"files": [Path(file).name for file in files]},
        result={
            "pairs": len(targets),
            "bleu": measured.score,
            "signature": measured.signature,
            "bleu_interval": measured.interval,
        },
        mistakes=[],
        device=CPU,
    )


def answer_harder(
    folder: RunFolder, task: str, count: int, answer: Answer, **asked: int
) -> None:
    """Keep the answers to the harder splits of a task, where it has some."""
    for split in HARDER_SPLITS if task.startswith("dates") else ():
        pairs = TASKS[task].pairs(split, count, 0)
        rate, mistakes = answer(pairs)
        save_evaluation(
            folder,
            split,
            asked={"files": [], "split": split, "count": count, **asked},
            result={"pairs": len(pairs), "exact_match": rate},
            mistakes=mistakes[:MISTAKES],
            device=CPU,
        )


def answer(rule: Callable[[str], str], pairs: Any) -> tuple[float, list[Any]]:
    wrong = [
        {"source": source, "target": target, "written": rule(source)}
        for source, target in pairs
        if rule(source) != target
    ]
    return 1 - len(wrong) / len(pairs), wrong


def by_locale(rule: Callable[[str], str], task: Any, count: int) -> dict[str, Any]:
    """Count, of each locale, the test's texts and those that are read right."""
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for example in task.examples("test", count, 0):
        asked[example.locale] += 1
        right[example.locale] += rule(example.text) == example.iso
    return {name: [right[name], asked[name]] for name in sorted(asked)}


if __name__ == "__main__":
    main()
