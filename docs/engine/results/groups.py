"""Runs that differ in their seed alone, and the command that repeats them."""

import json
import statistics
import textwrap
from collections.abc import Sequence
from typing import Any

from engine.results.kept import run_name
from engine.results.numbers import MISSING, SPACE, interval, number, percent, span
from tformer.runs import parts

Result = dict[str, Any]
Group = list[Result]

NAMES = {
    "copy": "copy letters",
    "reverse": "reverse letters",
    "sort": "sort letters",
    "addition": "addition",
    "number-words": "number words up to 9,999, six languages",
    "dates": "dates, 24 locales",
    "dates-new-locales": "dates, four locales held out",
}
OWN = "tformer"


def grouped(results: Sequence[Result]) -> list[Group]:
    """Put runs together that differ in their seed alone."""
    groups: dict[str, Group] = {}
    for result in results:
        # Only what was changed: an older version has written fewer settings.
        asked = [task([result]), model(result), result["settings"]["files"]]
        asked += [result["settings"].get("model"), result["changes"]]
        groups.setdefault(json.dumps(asked, sort_keys=True), []).append(result)
    order = [*NAMES, "text", "pairs"]
    return sorted(
        groups.values(),
        key=lambda g: (order.index(task(g)), model(g[0]) != OWN, model(g[0]), off(g)),
    )


def task(group: Group) -> str:
    """Say what a group was trained for."""
    return str(group[0]["settings"]["task"])


def model(result: Result) -> str:
    """Say what was trained: our model, or which baseline."""
    return str(result["result"].get("baseline", OWN))


def off(group: Group) -> tuple[str, ...]:
    """Say which parts a group was trained without."""
    return tuple(group[0]["settings"]["without"])


def steps(group: Group) -> int:
    """Say how many steps a group was trained for."""
    return int(group[0]["settings"]["steps"])


def rate(group: Group) -> float:
    """Compute the mean of the exact match over the seeds."""
    return statistics.mean(run["result"]["test_exact_match"] for run in group)


def seeds_told(groups: Sequence[Group], names: Sequence[str] = ()) -> str:
    """Say how many seeds each group has: `3 of each`, or by name."""
    counts = [len(g) for g in groups]
    if len(set(counts)) == 1 or not names:
        return f"{counts[0]} of each" if len(set(counts)) == 1 else "as the table says"
    return ", ".join(f"{x} {n}" for x, n in zip(names, counts, strict=True))


def exact(group: Group) -> list[str]:
    """Write the exact match: its mean, its interval over the test, its span."""
    rates = [run["result"]["test_exact_match"] for run in group]
    count = group[0]["result"]["test_pairs"]
    return [
        percent(rate(group)),
        interval(rate(group), count),
        span([100 * x for x in rates], ".2f") if len(group) > 1 else MISSING,
    ]


def means(group: Group, *path: str) -> list[float]:
    """Return a number of those runs that have it."""
    values = []
    for run in group:
        value: Any = run
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            values.append(float(value))
    return values


def mean_of(group: Group, *path: str, form: str) -> str:
    """Write the mean of a number over the seeds, or that it was not recorded."""
    values = means(group, *path)
    return number(statistics.mean(values), form) if values else MISSING


def cost(group: Group) -> list[str]:
    """Write what a training took: its loss, speed, time and parameters."""
    seconds = means(group, "result", "cpu_seconds")
    return [
        mean_of(group, "training", "loss", form="#.2g"),
        mean_of(group, "training", "tokens_per_cpu_second", form=",.0f"),
        f"{statistics.mean(seconds) / 60:.1f}{SPACE}min" if seconds else MISSING,
        f"{group[0]['result']['parameters']:,}",
    ]


COST = ["training loss", "tokens a second", "processor", "parameters"]


def machines(groups: Sequence[Group]) -> str:
    """Write on what these groups were trained."""
    found: dict[str, int] = {}
    for group in groups:
        for run in group:
            m = run["result"]["machine"]
            kernels = f", {m['kernels']}" if "kernels" in m else ""
            several = m.get("processes", 1)
            kernels += f", {several} processes" if several > 1 else ""
            line = (
                f"{m['name']}{kernels}, {m['threads']} of {m['cores']} cores, torch "
                f"{m['torch']}, Python {m['python']}"
            )
            found[line] = found.get(line, 0) + 1
    told = "; ".join(
        f"{line} ({count} run{'s'[: count != 1]})"
        for line, count in sorted(found.items())
    )
    return f"\nMachine: {told}.\n"


def command(result: Result) -> str:
    """Give the command that repeats a run, for any seed."""
    settings, baseline = result["settings"], model(result)
    own, seed = settings["task"], settings["seed"]
    changed, trained = result["changes"], result["result"]["parameters"]
    if baseline == OWN:
        words = ["tformer train", own, *settings["files"]]
    elif baseline == "nanoGPT's recipe":
        words = ["python tests/baselines/nanogpt.py train", *settings["files"]]
        changed = {name: x for name, x in changed.items() if name == "steps"}
    elif trained:
        words = ["python tests/baselines/train.py", baseline, f"--task {own}"]
    else:
        words = ["python tests/baselines/rules.py", baseline]
        files = settings["files"]
        words.append(f"--files {' '.join(files)}" if files else f"--task {own}")
    words += options(changed)
    if trained:
        words.append(f"--seed {seed}")
    words += ["--threads 1"] if baseline == OWN else []
    return " ".join([*words, f"--out runs/{folder_name(result)}"])


def options(changed: dict[str, Any]) -> list[str]:
    """Write what was changed as options of the command line."""
    words = []
    for name, value in changed.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words.append(f"--{option} {value}")
    return words


def folder_name(result: Result) -> str:
    """Name a folder for a run, short and telling."""
    settings, baseline = result["settings"], model(result)
    if settings.get("model") == parts.MODEL:  # many, which differ in their parts
        return run_name(result)
    short = [f"{settings['steps']}-steps"] if "steps" in result["changes"] else []
    other = [] if baseline == OWN else [baseline.split("'")[0].replace(".", "-")]
    words = [settings["task"], *other, *settings["without"], *short]
    return "-".join([*words, str(settings["seed"])]).lower()


def folded(line: str) -> str:
    """Break a command where a phone would."""
    parts = textwrap.wrap(
        line,
        width=86,
        subsequent_indent="    ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return " \\\n".join(parts)
