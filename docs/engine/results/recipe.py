"""The best recipe found for a text within ten minutes, beside nanoGPT's own."""

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
    steps,
    task,
)
from engine.results.ledger_rows import of_ledger
from engine.results.numbers import MISSING, SPACE, number, span, table

BUDGET = 600  # seconds of one processor, looks at the validation text included
SHORT = 300  # a try took less
UNTOLD = ("evaluate_every", "save_every", "keep", "steps")


def of_recipe(group: Group) -> bool:
    """Whether runs are of a recipe: on a text, with more changed than parts and steps.

    nanoGPT's recipe belongs here when it takes other steps than the 2,000 of its own.
    """
    if task(group) != "text" or of_ledger(group):
        return False
    return "steps" in group[0]["changes"]


def seconds(group: Group) -> float:
    """Compute the mean of the processor's time."""
    return statistics.mean(means(group, "result", "cpu_seconds"))


def loss(group: Group) -> float:
    """Compute the mean of the loss on all of the validation text."""
    return statistics.mean(means(group, "result", "test_loss"))


def section(groups: Sequence[Group]) -> str:
    """Write the table of the recipes, and that of the tries."""
    chosen = sorted((g for g in groups if of_recipe(g)), key=loss)
    long = [g for g in chosen if seconds(g) >= SHORT]
    tries = [g for g in chosen if seconds(g) < SHORT]
    ours = [g for g in long if model(g[0]) == OWN]
    theirs = [g for g in long if model(g[0]) != OWN]
    if not ours or not theirs:
        return ""
    best = ours[0]
    shorter = seconds(theirs[0]) / 60
    better = loss(theirs[0]) - loss(best)
    head = [
        "",
        "loss",
        "steps",
        "processor",
        "parameters",
        "characters a step",
        "seeds",
    ]
    text = (
        "\n## The best recipe of ten minutes { #recipe }\n\nWhat one processor makes "
        f"of the text in {BUDGET // 60} minutes, looks at the validation included. "
        "nanoGPT's recipe is as above, but with as many steps as fit into the time; "
        "its learning rate falls over all of them. It took "
        f"{shorter:.1f}{SPACE}minutes. The best recipe that we found has a loss lower "
        f"by {better:.3f}. The loss is that of all of the validation text, cut into "
        "windows as long as the model's context: a longer context is part of the "
        "recipe, and makes each prediction easier.\n\n"
        + table(head, [_row(g) for g in [*ours, *theirs]], right=range(1, 7))
        + "\nOur recipe:\n\n```bash\n"
        + folded(command(best[0]))
        + "\n```\n"
    )
    if tries:
        text += (
            "\nIt was chosen by shorter tries, and by what helps in the "
            "[ledger](#ledger). All of them stand here; nothing else was tried. One "
            "seed decides little between two that are close:\n\n"
            + table(head, [_row(g) for g in tries], right=range(1, 7))
        )
    return text + machines(chosen)


def _row(group: Group) -> list[str]:
    run, values = group[0], means(group, "result", "test_loss")
    s = run["settings"]
    told = number(loss(group), ".3f")
    told += f"<br>({span(values, '.3f')})" if len(values) > 1 else ""
    return [
        "nanoGPT's recipe" if model(run) != OWN else _options(group),
        told,
        f"{steps(group):,}",
        f"{seconds(group) / 60:.1f}{SPACE}min",
        f"{run['result']['parameters']:,}",
        f"{s['batch_size']}{SPACE}×{SPACE}{s['max_len']}",
        str(len(group)),
    ]


def _options(group: Group) -> str:
    """Name what was changed, as on the command line."""
    words = []
    for name, value in group[0]["changes"].items():
        if name in UNTOLD:
            continue
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words.append(f"--{option} {value}")
    return " ".join(f"`{word}`" for word in words) or MISSING
