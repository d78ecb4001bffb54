"""The tasks that are drawn here, each with its preset."""

from collections.abc import Sequence

from engine.results.groups import (
    COST,
    NAMES,
    Group,
    cost,
    exact,
    machines,
    model,
    off,
    steps,
    task,
)
from engine.results.groups import OWN as OWN_MODEL
from engine.results.numbers import table, wilson


def presets(groups: Sequence[Group]) -> list[Group]:
    """Choose the runs of our model that were made as the preset says."""
    return [
        g
        for g in groups
        if task(g) in NAMES
        and model(g[0]) == OWN_MODEL
        and not off(g)
        and not g[0]["changes"]
    ]


def section(groups: Sequence[Group]) -> str:
    """Write the tables of the tasks."""
    chosen = presets(groups)
    if not chosen:
        return ""
    sizes = [run["result"]["test_pairs"] for g in chosen for run in g]
    allowed = 100 * (1 - wilson(1.0, min(sizes))[0])
    reached = [
        [NAMES[task(g)], *exact(g), f"{g[0]['result']['test_pairs']:,}", str(len(g))]
        for g in chosen
    ]
    spent = [[NAMES[task(g)], f"{steps(g):,}", *cost(g)] for g in chosen]
    text = (
        "\n## Tasks { #tasks }\n\nExact match is the fraction of test sources of which "
        "every character of the answer is right, written greedily; it is the mean over "
        "the seeds. The 95 % interval is Wilson's, over the sources of the test: what "
        "another test, drawn alike, would give. The last columns say how the seeds "
        f"differ. A test of {min(sizes):,} without a mistake is no proof that there "
        f"are none: up to {allowed:.2f} % may be wrong.\n\n"
    )
    head = ["task", "exact match", "95 % interval", "lowest to highest seed"]
    head += ["test sources", "seeds"]
    other = (
        "\nWhat it took, for one seed: the loss over the last steps of the training, "
        "in nats a token; the target tokens that one processor trained on in a second "
        "of its time; and that time, with the looks at the validation. The mean is "
        "over the seeds for which it was recorded; a dash means that the runs were "
        "kept before it was.\n\n"
    )
    return (
        text
        + table(head, reached, right=range(1, 6))
        + other
        + table(["task", "steps", *COST], spent, right=range(1, 6))
        + machines(chosen)
    )
