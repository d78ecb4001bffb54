"""Runs that differ in their seed alone, and the command that repeats them."""

import json
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from engine.results.kept import OWN, Run

NAMES = {
    "copy": "copy letters",
    "reverse": "reverse letters",
    "sort": "sort letters",
    "addition": "addition",
    "number-words": "number words up to 9,999, six languages",
    "dates": "dates, 24 locales",
    "dates-new-locales": "dates, four locales held out",
    "dates-as-typed": "dates as people type them",
}
NANO = "nanoGPT's recipe"
RATE = "result.test_exact_match"


class Group(list[Run]):
    """Runs that differ in their seed alone."""

    @property
    def first(self) -> Run:
        """The run of the lowest seed."""
        return min(self, key=lambda run: run.seed)

    @property
    def own(self) -> bool:
        """Whether they are of our model."""
        return self.first.model == OWN

    @property
    def trained(self) -> bool:
        """Whether they are of a model, and of no rule."""
        return bool(self.first["result.parameters"])

    def values(self, field: str) -> list[float]:
        """Return a number of those runs that have it."""
        return [run[field] for run in self if run.get(field) is not None]

    def mean(self, field: str) -> float:
        """Compute the mean of a number over the runs, which must all have it."""
        return statistics.mean(run[field] for run in self)

    def rates(self, split: str) -> tuple[list[float], int]:
        """Return the exact match of each seed in a split, and of how many it is.

        The split "" is the test. A seed that was not asked has no rate.
        """
        if not split:
            return self.values(RATE), self.first["result.test_pairs"]
        found = [run.evaluations[split] for run in self if split in run.evaluations]
        rates = [each["result.exact_match"] for each in found]
        return rates, found[0]["result.pairs"] if found else 0


def grouped(results: Iterable[Run]) -> list[Group]:
    """Put runs together that differ in their seed alone."""
    groups: dict[str, Group] = {}
    for run in results:
        # Only what was changed: an older version has written fewer settings.
        asked = [run.task, run.model, run["settings.files"]]
        asked += [run.get("settings.model"), run.changes]
        groups.setdefault(json.dumps(asked, sort_keys=True), Group()).append(run)
    order = [*NAMES, "text", "pairs"]

    def place(group: Group) -> tuple[int, bool, str, str]:
        run = group.first
        rank = order.index(run.task) if run.task in order else len(order)
        return rank, not group.own, run.model, run.off

    return sorted(groups.values(), key=place)


def seeds_told(groups: Sequence[Group], names: Sequence[str] = ()) -> str:
    """Say how many seeds each group has: `3 of each`, or by name."""
    counts = [len(g) for g in groups]
    if len(set(counts)) == 1:
        return f"{counts[0]} of each"
    told = [f"{x} {n}" for x, n in zip(names, counts, strict=False)]
    return ", ".join(told) or "as the table says"


def machines(groups: Iterable[Group]) -> str:
    """Write on what these groups were trained."""
    found: Counter[str] = Counter()
    for run in (run for group in groups for run in group):
        m = run["result.machine"]
        several = m.get("processes", 1)
        words = [m["name"], m.get("kernels")]
        words += [f"{several} processes" if several > 1 else None]
        words += [f"{m['threads']} of {m['cores']} cores", f"torch {m['torch']}"]
        found[", ".join(filter(None, [*words, f"Python {m['python']}"]))] += 1
    told = [f"{line} ({n} run{'s'[: n != 1]})" for line, n in sorted(found.items())]
    return f"Machine: {'; '.join(told)}."


def command(run: Run) -> str:
    """Give the command that repeats a run, for any seed."""
    files, changed = run["settings.files"], run.changes
    if run.model == OWN:
        words = ["tformer train", run.task, *files]
    elif run.model == NANO:
        words = ["python tests/baselines/nanogpt.py train", *files]
        changed = {name: x for name, x in changed.items() if name == "steps"}
    elif run["result.parameters"]:
        words = ["python tests/baselines/train.py", run.model, f"--task {run.task}"]
    else:
        words = ["python tests/baselines/rules.py", run.model]
        words.append(f"--files {' '.join(files)}" if files else f"--task {run.task}")
    words += options(changed)
    words += [f"--seed {run.seed}"] if run["result.parameters"] else []
    words += ["--threads 1"] if run.model == OWN else []
    return " ".join([*words, f"--out runs/{folder_name(run)}"])


def options(changed: dict[str, Any]) -> list[str]:
    """Write what was changed as options of the command line."""
    named = ((name.replace("_", "-"), x) for name, x in changed.items())
    return [
        f"--{name} {x}" if not isinstance(x, bool) else f"--{'' if x else 'no-'}{name}"
        for name, x in named
    ]


def folder_name(run: Run) -> str:
    """Name a folder for a run, short and telling."""
    if run.of_parts:  # many, which differ in their parts
        return run.name
    other = "" if run.model == OWN else run.model.split("'")[0].replace(".", "-")
    short = f"{run.steps}-steps" if "steps" in run.changes else ""
    words = [run.task, other, *run.off.split(), short, str(run.seed)]
    return "-".join(filter(None, words)).lower()


def commands(groups: Iterable[Group]) -> str:
    """Write the command of each group, broken where a phone would."""
    fold = textwrap.TextWrapper(86, subsequent_indent="    ")
    fold.break_on_hyphens = fold.break_long_words = False
    lines = (fold.wrap(command(group.first)) for group in groups)
    return "\n".join(" \\\n".join(line) for line in lines)
