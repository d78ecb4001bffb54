"""The columns of the tables of the page: what a cell says of some runs."""

import statistics
from collections.abc import Callable, Iterable, Sequence

from engine import tables
from engine.results.groups import NAMES, NANO, RATE, Group, options
from engine.results.kept import OWN
from engine.tables import MISSING, SPACE, interval, number, percent, span

Cell = Callable[[Group], object]

TITLES = {
    OWN: "tformer's `Transformer`",
    "nn.Transformer": "`torch.nn.Transformer`",
    "gru": "GRU, attention",
    "dateutil": "dateutil's parser",
    "copy-source": "copy the source",
}
SPLITS = {
    "the test": "",
    "1700 to 1899, 2100 to 2299": "new-years",
    "new order of the parts": "new-formats",
    "longer texts": "long-texts",
    "Danish": "locale-da",
    "Korean": "locale-ko",
    "Portuguese": "locale-pt",
    "Ukrainian": "locale-uk",
    "in words": "words",
    "words without commas": "bare-words",
    "in numbers": "numbers",
    "two-digit years": "two-digit-years",
    "ordinals": "ordinals",
}
WITHOUT = {
    "": "nothing: all parts",
    "mask": "the causal mask",
    "scale": "the scale, 1/√d_k",
    "positions": "the positions",
}
UNTOLD = ("evaluate_every", "save_every", "keep", "steps")  # they say nothing here
LOSS, SPEED = "result.test_loss", "training.tokens_per_cpu_second"


def _value(field: str, form: str = ",") -> Cell:
    """Write a number that all runs of a group share."""
    return lambda g: f"{g.first[field]:{form}}"


def mean(field: str, form: str, factor: float = 1, unit: str = "") -> Cell:
    """Write the mean of a number over the seeds, or that it was not recorded."""

    def cell(group: Group) -> str:
        values = [factor * x for x in group.values(field)]
        return number(statistics.mean(values), form) + unit if values else MISSING

    return cell


def _low_high(field: str, form: str, factor: float = 1) -> Cell:
    """Write the lowest and the highest seed, if there are several."""

    def cell(group: Group) -> str:
        values = [factor * x for x in group.values(field)]
        return span(values, form) if len(values) > 1 else MISSING

    return cell


def spread(values: Sequence[float]) -> str:
    """Write a mean, and below it in brackets the lowest and the highest value."""
    if not values:
        return MISSING
    told = number(statistics.mean(values), ".3f")
    return told + (f"<br>({span(values, '.3f')})" if len(values) > 1 else "")


def _split(name: str) -> Cell:
    """Write the exact match in a split over its interval."""

    def cell(group: Group) -> str:
        rates, count = group.rates(name)
        if not rates:
            return MISSING
        rate = statistics.mean(rates)
        digits = 1 if 0.01 < rate < 0.99 else 2
        lines = [percent(rate, digits), interval(rate, count, digits)]
        if len(rates) != len(group):
            lines.append(f"{len(rates)}{SPACE}seed{'s'[: len(rates) != 1]}")
        return "<br>".join(lines)

    return cell


def title(group: Group) -> str:
    """Name a model."""
    return TITLES.get(group.first.model, group.first.model)


def _task(group: Group) -> str:
    return NAMES.get(group.first.task, group.first.task)


def _recipe(group: Group) -> str:
    """Name what was changed, as on the command line."""
    changed = {n: x for n, x in group.first.changes.items() if n not in UNTOLD}
    words = [f"`{x}`" for x in options(changed)] if group.own else [NANO]
    return " ".join(words) or "`tformer train text`"


def _draws(group: Group) -> str:
    found = [run.evaluations.get("nanogpt-estimate") for run in group]
    return spread([x for each in found if each for x in each["result.losses"]])


COLUMNS: dict[str, Cell] = {
    "task": _task,
    "model": title,
    "model, steps": lambda g: (
        title(g) + (f", {g.first.steps:,} steps" if g.trained else "")
    ),
    "trained without": lambda g: WITHOUT.get(g.first.off, g.first.off),
    "trained on": lambda g: f"{_task(g)}, {g.first.steps:,} steps",
    "training": lambda g: f"seed {g.first.seed}",
    "recipe": _recipe,
    "text": lambda g: "`tformer train text`" if g.own else g.first.model,
    "exact match": lambda g: percent(g.mean(RATE)),
    "95 % interval": lambda g: interval(g.mean(RATE), g.first["result.test_pairs"]),
    "lowest to highest seed": _low_high(RATE, ".2f", 100),
    "test sources": _value("result.test_pairs"),
    "seeds": lambda g: len(g) if g.trained else "none",
    "steps": _value("settings.steps"),
    "training loss": mean("training.loss", "#.2g"),
    "tokens a second": mean(SPEED, ",.0f"),
    "processor": mean("result.cpu_seconds", ".1f", 1 / 60, f"{SPACE}min"),
    "parameters": _value("result.parameters"),
    "test loss": mean(LOSS, "#.2g"),
    "lowest to highest loss": _low_high(LOSS, "#.2g"),
    "loss": lambda g: spread(g.values(LOSS)),
    "characters a step": lambda g: (
        f"{g.first['settings.batch_size']}{SPACE}×{SPACE}{g.first['settings.max_len']}"
    ),
    "loss on all of the validation text": lambda g: spread(g.values(LOSS)),
    "bits per byte": lambda g: spread(g.values("result.test_bits_per_byte")),
    "loss on 20 random batches of it": _draws,
    "training loss, last 100 steps": mean("training.loss", ".3f"),
    "steps of 12 windows of 64": _value("settings.steps"),
    "highest learning rate": _value("settings.learning_rate", "g"),
    "lowest, at the end": lambda g: 0 if g.own else 0.0001,
    "characters a second": mean(SPEED, ",.0f"),
    **{name: _split(key) for name, key in SPLITS.items()},
}


def table(groups: Iterable[Group], *names: str) -> str:
    """Write a table of these columns, a row a group."""
    return tables.table({name: COLUMNS[name] for name in names}, groups)


def across(groups: Sequence[Group], *names: str) -> str:
    """Write a table with a row for each of `names` but the first, a column a group."""
    head, *rows = [[name, *(COLUMNS[name](g) for g in groups)] for name in names]
    titles = ["", *map(str, head[1:])]
    cells = {title: lambda row, i=i: row[i] for i, title in enumerate(titles)}
    return tables.table(cells, rows)
