"""Dates with one thing that the training had not: where the models fail, and how."""

from collections.abc import Sequence
from typing import Any

from engine.results.groups import NAMES, OWN, Group, model, off, steps, task
from engine.results.models import TITLES
from engine.results.numbers import MISSING, interval, percent, table, text_cell

SPLITS = {
    "new-years": "1700 to 1899, 2100 to 2299",
    "new-formats": "new order of the parts",
    "long-texts": "longer texts",
}
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
        "mean over the seeds, and Wilson's 95 % interval over the dates asked.\n\n"
    )
    head = ["model", "the test", *SPLITS.values(), "seeds"]
    return text + table(head, rows, right=range(1, 6)) + _mistakes(asked)


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
            *(_of(g, each) for each in names),
            str(len(g)),
        ]
        for g in (*without, *whole)
    ]
    text = (
        "\n## Locales never seen { #locales }\n\nThe task `dates-new-locales` trains "
        "on 20 locales, and is tested in four others; days of the test are in no "
        "training. Danish has a near relative among the 20, and so has Portuguese; "
        "Ukrainian shares letters with Russian but not the names of its months; "
        "nothing is like Korean. The second row had all 24 in its training.\n\n"
    )
    head = ["trained on", *(x.removeprefix("locale-") for x in names), "seeds"]
    return (
        text + table(head, lines, right=range(1, len(names) + 2)) + _mistakes(without)
    )


def _locales_asked(run: dict[str, Any]) -> list[str]:
    return [name for name in run.get("evaluations", {}) if name.startswith("locale-")]


def _name(group: Group) -> str:
    trained = group[0]["result"]["parameters"]
    made = f", {steps(group):,} steps" if trained else ""
    return f"{TITLES[model(group[0])]}{made}"


def _answered(group: Group) -> bool:
    return any(name in run.get("evaluations", {}) for run in group for name in SPLITS)


def _count(group: Group) -> int | str:
    return len(group) if group[0]["result"]["parameters"] else MISSING


def _cell(group: Group, split: str) -> str:
    """Write the rate of a split, or of the test itself, over its interval."""
    if split:
        return _of(group, split)
    rates = [run["result"]["test_exact_match"] for run in group]
    return _rate(rates, group[0]["result"]["test_pairs"])


def _of(group: Group, split: str) -> str:
    found = _evaluations(group, split)
    if not found:
        return MISSING
    rates = [each["result"]["exact_match"] for each in found]
    seeds = f" ({len(rates)} seed{'s'[: len(rates) != 1]})"
    note = seeds if len(rates) != len(group) else ""
    return _rate(rates, found[0]["result"]["pairs"]) + note


def _rate(rates: Sequence[float], count: int) -> str:
    mean = sum(rates) / len(rates)
    digits = 1 if 0.01 < mean < 0.99 else 2
    return f"{percent(mean, digits)}<br>{interval(mean, count, digits)}"


def _evaluations(group: Group, split: str) -> list[dict[str, Any]]:
    found = (run.get("evaluations", {}).get(split) for run in group)
    return [each for each in found if each]


def _mistakes(groups: Sequence[Group]) -> str:
    """Show wrong answers of our first model, a few of each split."""
    ours = [g for g in groups if model(g[0]) == OWN]
    rows = []
    for run in (run for g in ours[:1] for run in g):
        kept = run.get("evaluations", {})
        order = [name for name in SPLITS if name in kept] or _locales_asked(run)
        for split in order:
            each = kept[split]
            title = SPLITS.get(split, split.removeprefix("locale-"))
            rows += [
                [
                    title,
                    text_cell(wrong["source"]),
                    text_cell(wrong["target"]),
                    text_cell(wrong["written"]),
                ]
                for wrong in each.get("mistakes", [])[:SHOWN]
            ]
        break
    if not rows:
        return ""
    head = ["new", "the text", "right", "written"]
    name = f"{_name(ours[0])}, seed {ours[0][0]['settings']['seed']}"
    return f"\nWrong answers of {name}:\n\n" + table(head, rows, right=range(0))
