"""The dates learned without a part of the model."""

from collections.abc import Sequence

from engine.results.groups import (
    OWN,
    Group,
    exact,
    machines,
    mean_of,
    means,
    model,
    off,
    rate,
    seeds_told,
    steps,
    task,
)
from engine.results.numbers import items, listed, percent, span, table, wilson

PARTS = {
    "": "nothing: all parts",
    "mask": "the causal mask",
    "scale": "the scale, 1/√d_k",
    "positions": "the positions",
}
CAPTION = "Bars: the mean, with its 95 % interval over the test. Dots: the seeds, "
ALT = "Bars of the exact match of the dates, each trained without one part: "


def section(groups: Sequence[Group]) -> str:
    """Write the table and the picture of the parts left out."""
    of_dates = [g for g in groups if task(g) == "dates" and model(g[0]) == OWN]
    made = {steps(g) for g in of_dates if off(g)}
    chosen = [g for g in of_dates if steps(g) in made]
    if not made:
        return ""
    rows = [
        [
            PARTS[" ".join(off(g))],
            *exact(g),
            mean_of(g, "result", "test_loss", form="#.2g"),
            span(means(g, "result", "test_loss"), "#.2g"),
            mean_of(g, "training", "loss", form="#.2g"),
            str(len(g)),
        ]
        for g in chosen
    ]
    text = (
        "\n## Trained without a part { #without }\n\nThe dates again, in "
        f"{min(made):,} steps, with one part left out of the training and of the test. "
        "The test loss is that of the true answer, each character given the true ones "
        "before it. Without the mask the model reads the answer off its own input, so "
        "its loss is very low; but no date that it writes by itself is right.\n\n"
    )
    head = ["trained without", "exact match", "95 % interval", "lowest to highest seed"]
    head += ["test loss", "lowest to highest seed", "training loss", "seeds"]
    return (
        text
        + _picture(chosen)
        + table(head, rows, right=range(1, 8))
        + machines(chosen)
    )


def _picture(groups: Sequence[Group]) -> str:
    names = [PARTS[" ".join(off(g))] for g in groups]
    rates = [rate(g) for g in groups]
    ends = [
        wilson(x, g[0]["result"]["test_pairs"])
        for x, g in zip(rates, groups, strict=True)
    ]
    seeds = [[run["result"]["test_exact_match"] for run in g] for g in groups]
    told = ", ".join(
        f"{name} {percent(x, 1)}" for name, x in zip(names, rates, strict=True)
    )
    return f"""??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

{items(names, "names")}
{listed((round(x, 4) for x in rates), "rates")}
{listed((round(low, 4) for low, _ in ends), "lows")}
{listed((round(high, 4) for _, high in ends), "highs")}
{items(seeds, "seeds")}
    errors = [
        [rate - low for rate, low in zip(rates, lows)],
        [high - rate for rate, high in zip(rates, highs)],
    ]
    figure, ax = plt.subplots()
    ax.barh(names, rates, xerr=errors, color="C0", ecolor="black", capsize=3)
    for i, values in enumerate(seeds):
        ax.scatter(values, [i + 0.28] * len(values), color="C1", s=14, zorder=3)
    ax.invert_yaxis()
    ax.set(xlabel="exact match", xlim=(-0.02, 1.02))
    ```

![{ALT}{told}.](figures/results-without.svg "{CAPTION}{seeds_told(groups)}.")

"""
