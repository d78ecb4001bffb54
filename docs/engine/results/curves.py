"""How the tasks were learned, as a picture with a band over the seeds."""

import statistics
from collections.abc import Sequence

from engine.results.groups import Group, seeds_told, task
from engine.results.numbers import listed
from engine.results.tasks import presets

ALT = (
    "Curves that rise from 0 to 1, one a task, each in a narrow band: the fraction of "
    "right answers in the validation, against the step of the training."
)
CAPTION = "Bands: from the lowest seed to the highest. Lines: the mean of the seeds, "


def section(groups: Sequence[Group]) -> str:
    """Write the picture, drawn by the page from the numbers beside it."""
    parts = []
    for g in presets(groups):
        name = "validation_exact_match"
        looks = [[look[name] for look in run["looks"]] for run in g]
        columns = list(zip(*looks, strict=True))
        steps = [look["step"] for look in g[0]["looks"]]
        lines = [
            listed(steps, "steps"),
            listed((round(statistics.mean(c), 4) for c in columns), "means"),
            listed((min(c) for c in columns), "lows"),
            listed((max(c) for c in columns), "highs"),
            f"    curves[{task(g)!r}] = steps, means, lows, highs",
        ]
        parts.append("\n".join(lines))
    if not parts:
        return ""
    numbers = "\n".join(parts)
    return f"""
## How they were learned {{ #curves }}

Exact match on the validation, while the training goes on:

??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

    curves = {{}}
{numbers}
    figure, ax = plt.subplots(figsize=(4.8, 3.6))
    styles = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]
    for style, (name, (steps, means, lows, highs)) in zip(styles, curves.items()):
        (line,) = ax.plot(steps, means, linestyle=style, label=name)
        ax.fill_between(steps, lows, highs, color=line.get_color(), alpha=0.25, lw=0)
    ax.set(xlabel="step", ylabel="exact match", ylim=(-0.02, 1.02))
    ax.legend(loc="lower right")
    ```

![{ALT}](figures/results-curves.svg "{CAPTION}{seeds_told(presets(groups))}.")
"""
