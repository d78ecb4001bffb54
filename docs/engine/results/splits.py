"""Dates with one thing that the training had not: where the models fail, and how."""

import textwrap
from collections.abc import Sequence
from typing import Any

from engine.results.groups import NAMES, OWN, Group, model, off, steps, task
from engine.results.models import TITLES
from engine.results.numbers import (
    MISSING,
    SPACE,
    fold,
    interval,
    items,
    listed,
    percent,
    table,
    text_cell,
    wilson,
)

SPLITS = {
    "new-years": "1700 to 1899, 2100 to 2299",
    "new-formats": "new order of the parts",
    "long-texts": "longer texts",
}
LANGUAGES = {"da": "Danish", "ko": "Korean", "pt": "Portuguese", "uk": "Ukrainian"}
ALT = (
    "Points with short lines, a row each for the test and for each harder split: how "
    "many of the dates each model reads, as the table below says."
)
CAPTION = (
    "Lines: the 95 % interval over the dates asked. What is new is at the left. The "
    "seeds of each point stand in the table."
)
SHOWN = 4  # wrong answers of each split


def section(groups: Sequence[Group]) -> str:
    """Write the tables of the harder splits, and some of the wrong answers."""
    asked = [g for g in groups if task(g) == "dates" and not off(g) and _answered(g)]
    if not asked:
        return ""
    asked.sort(key=lambda g: (list(TITLES).index(model(g[0])), -steps(g)))
    rows = [
        [_name(g), *(_cell(g, split) for split in ("", *SPLITS)), str(_count(g))]
        for g in asked
    ]
    text = (
        "\n## Harder dates { #harder }\n\nThe test of the task has new days, in "
        "locales, formats and years that the training had. Here one of these is new as "
        "well: years outside 1900 to 2099; day, month and year in an order in which "
        "the locale never writes them, as *1979 mai 3*; or a date written again and "
        "again until the text is longer than any of the training. Each cell has the "
        "mean over the seeds, and Wilson's 95 % interval over the dates asked; it says "
        "nothing of another training.\n\n"
    )
    head = ["model", "the test", *SPLITS.values(), "seeds"]
    return (
        text + _picture(asked) + table(head, rows, right=range(1, 6)) + _mistakes(asked)
    )


def locales(groups: Sequence[Group]) -> str:
    """Write the table of the locales that one training has not seen."""
    without = [g for g in groups if task(g) == "dates-new-locales"]
    if not without:
        return ""
    names = sorted({name for run in without[0] for name in _locales_asked(run)})
    made = {steps(g) for g in without}
    whole = [
        g
        for g in groups
        if task(g) == "dates" and model(g[0]) == OWN and not off(g) and steps(g) in made
    ]
    lines = [
        [
            f"{NAMES[task(g)]}, {steps(g):,} steps",
            *(_cell(g, each) for each in names),
            str(len(g)),
        ]
        for g in (*without, *whole)
    ]
    text = (
        "\n## Locales never seen { #locales }\n\nThe task `dates-new-locales` trains "
        "on 20 locales, and is tested in four others; days of the test are in no "
        "training. Danish has a near relative among the 20, and so has Portuguese; "
        "Ukrainian shares letters with Russian but not the names of its months; "
        "no other locale has letters of Korean. The second row had all 24 in its "
        "training.\n\n"
    )
    head = ["trained on", *map(_title, names), "seeds"]
    return (
        text + table(head, lines, right=range(1, len(names) + 2)) + _mistakes(without)
    )


def _picture(groups: Sequence[Group]) -> str:
    """Draw the rates of the models that were trained, split by split."""
    lines = []
    for group in groups:
        rates = [_rates(group, split) for split in ("", *SPLITS)]
        if group[0]["result"]["parameters"] and all(found for found, _ in rates):
            means = [sum(found) / len(found) for found, _ in rates]
            ends = [wilson(m, n) for m, (_, n) in zip(means, rates, strict=True)]
            lines += [
                listed((round(m, 4) for m in means), "rates"),
                listed((round(low, 4) for low, _ in ends), "lows"),
                listed((round(high, 4) for _, high in ends), "highs"),
                f"    models[{_name(group).replace('`', '')!r}] = rates, lows, highs",
            ]
    if not lines:
        return ""
    numbers, splits = "\n".join(lines), ["the test", *SPLITS.values()]
    return f"""??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

{items((fold(name, 18) for name in splits), "splits")}
    models = {{}}
{numbers}
    figure, ax = plt.subplots(figsize=(4.8, 4.4))
    for i, (name, (rates, lows, highs)) in enumerate(models.items()):
        places = [split + 0.18 * (i - (len(models) - 1) / 2) for split in range(4)]
        errors = [
            [rate - low for rate, low in zip(rates, lows)],
            [high - rate for rate, high in zip(rates, highs)],
        ]
        ax.errorbar(rates, places, xerr=errors, fmt="osD^v"[i], capsize=3, label=name)
    ax.set_yticks(range(4), splits)
    ax.invert_yaxis()
    ax.set(xlabel="exact match", xlim=(-0.02, 1.02))
    ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.2))
    ```

![{ALT}](figures/results-harder.svg "{CAPTION}")

"""


def _locales_asked(run: dict[str, Any]) -> list[str]:
    return [name for name in run.get("evaluations", {}) if name.startswith("locale-")]


def _title(split: str) -> str:
    code = split.removeprefix("locale-")
    return SPLITS.get(split) or LANGUAGES.get(code, code)


def _name(group: Group) -> str:
    trained = group[0]["result"]["parameters"]
    made = f", {steps(group):,} steps" if trained else ""
    return f"{TITLES[model(group[0])]}{made}"


def _answered(group: Group) -> bool:
    return any(name in run.get("evaluations", {}) for run in group for name in SPLITS)


def _count(group: Group) -> int | str:
    return len(group) if group[0]["result"]["parameters"] else MISSING


def _rates(group: Group, split: str) -> tuple[list[float], int]:
    """Return the rate of each seed in a split, or "" for the test, and of how many."""
    if not split:
        rates = [run["result"]["test_exact_match"] for run in group]
        return rates, group[0]["result"]["test_pairs"]
    found = [run.get("evaluations", {}).get(split) for run in group]
    asked = [each["result"] for each in found if each]
    return [each["exact_match"] for each in asked], asked[0]["pairs"] if asked else 0


def _cell(group: Group, split: str) -> str:
    """Write the rate of a split, or of the test itself, over its interval."""
    rates, count = _rates(group, split)
    if not rates:
        return MISSING
    seeds = f"<br>{len(rates)}{SPACE}seed{'s'[: len(rates) != 1]}"
    return _rate(rates, count) + (seeds if len(rates) != len(group) else "")


def _rate(rates: Sequence[float], count: int) -> str:
    mean = sum(rates) / len(rates)
    digits = 1 if 0.01 < mean < 0.99 else 2
    return f"{percent(mean, digits)}<br>{interval(mean, count, digits)}"


def _mistakes(groups: Sequence[Group]) -> str:
    """Show wrong answers of our first model, a table for each split."""
    ours = [g for g in groups if model(g[0]) == OWN]
    if not ours:
        return ""
    run = ours[0][0]
    kept = run.get("evaluations", {})
    order = [name for name in SPLITS if name in kept] or _locales_asked(run)
    head = ["the text", "right", "written"]
    parts = []
    for split in order:
        rows = [
            [text_cell(wrong[name]) for name in ("source", "target", "written")]
            for wrong in kept[split].get("mistakes", [])[:SHOWN]
        ]
        if rows:
            parts.append(f"\n{_title(split)}:\n\n{table(head, rows, right=range(0))}")
    if not parts:
        return ""
    name = f"{_name(ours[0])}, seed {run['settings']['seed']}"
    title = f'???+ note "Wrong answers of {name.replace("`", "")}"\n'
    return "\n" + title + textwrap.indent("".join(parts), "    ")
