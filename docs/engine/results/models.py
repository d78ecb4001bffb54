"""The dates learned by other models and answered by rules, beside ours."""

from collections.abc import Sequence

from engine.results.groups import (
    COST,
    OWN,
    Group,
    cost,
    exact,
    machines,
    model,
    off,
    rate,
    seeds_told,
    steps,
    task,
)
from engine.results.numbers import items, listed, percent, table, wilson

TASK = "dates"
TITLES = {
    OWN: "tformer's `Transformer`",
    "nn.Transformer": "`torch.nn.Transformer`",
    "gru": "GRU, attention",
    "dateutil": "dateutil's parser",
    "copy-source": "copy the source",
}
CAPTION = "Thin lines: the 95 % interval over the test. Seeds: "
ALT = (
    "Bars of the exact match of five ways to read a date, each with its 95 % interval: "
)


def compared(groups: Sequence[Group]) -> list[Group]:
    """Choose the runs to compare: ours of as many steps as the trained baselines."""
    of_task = [g for g in groups if task(g) == TASK and not off(g)]
    others = [g for g in of_task if model(g[0]) != OWN]
    trained = {steps(g) for g in others if g[0]["result"]["parameters"]}
    ours = [g for g in of_task if model(g[0]) == OWN and steps(g) in trained]
    order = list(TITLES)
    return sorted(ours + others, key=lambda g: order.index(model(g[0])))


def section(groups: Sequence[Group]) -> str:
    """Write the tables and the picture of the models."""
    chosen = compared(groups)
    if len(chosen) < 2:
        return ""
    trained = [g for g in chosen if g[0]["result"]["parameters"]]
    most = max((steps(g) for g in trained), default=0)
    text = (
        "\n## Other models on the same dates { #models }\n\nThe same data in the same "
        f"order, the same loop, optimizer and test, {most:,} steps; only the model is "
        "another. Nothing was tuned for any of them: the settings are the preset's. "
        "torch's Transformer has the sizes of ours and as many parameters; the GRU "
        "reads in both directions and attends as in Luong et al. 2015. Two rules need "
        "no training. We took fewer steps than the preset's, so that each model still "
        "makes mistakes and a difference can be seen.\n\n"
    )
    reached = [[TITLES[model(g[0])], *exact(g), _seeds(g)] for g in chosen]
    head = ["model", "exact match", "95 % interval", "lowest to highest seed", "seeds"]
    spent = [[TITLES[model(g[0])], *cost(g)] for g in trained]
    return (
        text
        + table(head, reached, right=range(1, 5))
        + _picture(chosen)
        + table(["model", *COST], spent, right=range(1, 5))
        + machines(chosen)
        + _dateutil(chosen)
    )


def _seeds(group: Group) -> str:
    return str(len(group)) if group[0]["result"]["parameters"] else "none"


def _picture(groups: Sequence[Group]) -> str:
    names = [TITLES[model(g[0])].replace("`", "") for g in groups]
    rates = [rate(g) for g in groups]
    ends = [
        wilson(x, g[0]["result"]["test_pairs"])
        for x, g in zip(rates, groups, strict=True)
    ]
    told = ", ".join(
        f"{name} {percent(x, 1)}" for name, x in zip(names, rates, strict=True)
    )
    trained = [g for g in groups if g[0]["result"]["parameters"]]
    seeds = seeds_told(trained, names[: len(trained)])
    return f"""
??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

{items(names, "names")}
{listed((round(x, 4) for x in rates), "rates")}
{listed((round(low, 4) for low, _ in ends), "lows")}
{listed((round(high, 4) for _, high in ends), "highs")}
    errors = [
        [rate - low for rate, low in zip(rates, lows)],
        [high - rate for rate, high in zip(rates, highs)],
    ]
    figure, ax = plt.subplots()
    ax.barh(names, rates, xerr=errors, color="C0", ecolor="black", capsize=3)
    ax.invert_yaxis()
    ax.set(xlabel="exact match", xlim=(0, 1.02))
    ```

![{ALT}{told}.](figures/results-models.svg "{CAPTION}{seeds}.")

"""


def _dateutil(groups: Sequence[Group]) -> str:
    """Tell which locales the parser reads, if it was asked."""
    for group in groups:
        told = group[0]["result"].get("test_by_locale")
        if model(group[0]) == "dateutil" and told:
            whole = [n for n, (right, asked) in told.items() if right == asked]
            none = [n for n, (right, _) in told.items() if not right]
            some = [
                f"{n} {right} of {asked}"
                for n, (right, asked) in told.items()
                if 0 < right < asked
            ]
            return (
                "\ndateutil knows English names only. Of 24 locales it reads all "
                f"dates of {', '.join(whole)}; none of {', '.join(none)}; of the "
                f"others those whose names look English: {', '.join(some)}.\n"
            )
    return ""
