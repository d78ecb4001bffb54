"""The best recipe found for a text in ten minutes, beside nanoGPT's own."""

import statistics
from collections.abc import Sequence

from engine.results.groups import (
    OWN,
    Group,
    command,
    folded,
    machines,
    means,
    model,
    options,
    steps,
    task,
)
from engine.results.ledger_rows import of_ledger
from engine.results.numbers import SPACE, number, span, table
from engine.results.text import NANO

BUDGET = 600  # seconds of one processor, looks at the validation text included
UNTOLD = ("evaluate_every", "save_every", "keep", "steps")
HEAD = ["", "loss", "steps", "processor", "parameters", "characters a step", "seeds"]


def of_recipe(group: Group) -> bool:
    """Whether runs are of a recipe: on a text, and of no row of the ledger."""
    return task(group) == "text" and not of_ledger(group) and seconds(group) <= BUDGET


def seconds(group: Group) -> float:
    """Compute the mean of the processor's time."""
    return statistics.mean(means(group, "result", "cpu_seconds"))


def loss(group: Group) -> float:
    """Compute the mean of the loss on all of the validation text."""
    return statistics.mean(means(group, "result", "test_loss"))


def section(groups: Sequence[Group]) -> str:
    """Write the table of all that was tried, and the command of the best."""
    chosen = sorted((g for g in groups if of_recipe(g)), key=loss)
    ours = [g for g in chosen if model(g[0]) == OWN and g[0]["changes"]]
    theirs = [g for g in chosen if model(g[0]) == NANO]
    if not ours or not theirs:
        return ""
    best = ours[0]
    told = " and ".join(
        f"{loss(g):.3f} after {steps(g):,} steps, {_minutes(g)}"
        for g in sorted(theirs, key=steps)
    )
    return (
        f"\n## The best in {BUDGET // 60} minutes {{ #recipe }}\n\nWhat is the lowest "
        f"loss that {BUDGET // 60} minutes of one processor give, looks at the "
        f"validation text included? The best recipe that was found has "
        f"**{loss(best):.3f}** after {_minutes(best)}. nanoGPT's has {told}: its "
        "learning rate falls over as many steps as it makes. The text is the same."
        "\n\nThe other lines are trials, and tformer's own settings. The "
        "best was chosen among them by this same loss, so on a text that had no part "
        "in the choice it may be a little higher. One seed decides little between two "
        "that are close. The loss is that of all of the validation text, cut into "
        "windows as long as the model's context. A longer context is part of a recipe, "
        "and makes each prediction easier.\n\n"
        + table(HEAD, [_row(g) for g in chosen], right=range(1, 7))
        + "\nThe best again, for any seed:\n\n```bash\n"
        + folded(command(best[0]))
        + "\n```\n"
        + machines(chosen)
    )


def _minutes(group: Group) -> str:
    return f"{seconds(group) / 60:.1f}{SPACE}minutes"


def _row(group: Group) -> list[str]:
    run, values = group[0], means(group, "result", "test_loss")
    s = run["settings"]
    told = number(loss(group), ".3f")
    told += f"<br>({span(values, '.3f')})" if len(values) > 1 else ""
    return [
        NANO if model(run) != OWN else _options(group),
        told,
        f"{steps(group):,}",
        _minutes(group).replace("minutes", "min"),
        f"{run['result']['parameters']:,}",
        f"{s['batch_size']}{SPACE}×{SPACE}{s['max_len']}",
        str(len(group)),
    ]


def _options(group: Group) -> str:
    """Name what was changed, as on the command line."""
    changed = group[0]["changes"]
    words = options({n: x for n, x in changed.items() if n not in UNTOLD})
    return " ".join(f"`{word}`" for word in words) or "`tformer train text`"
