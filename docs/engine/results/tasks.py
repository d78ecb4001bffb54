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
        "\n## Tasks { #tasks }\n\nThe model reads each source of a test and writes an "
        "answer, greedily. *Exact match* is the fraction of answers that are right in "
        "every character, as a mean over the seeds. The 95 % interval is Wilson's. It "
        "says how far the number may be off because the test has few sources. The last "
        f"columns say how the seeds differ. A test of {min(sizes):,} without a mistake "
        f"does not prove that there are none: up to {allowed:.2f} % may be wrong.\n\n"
    )
    head = ["task", "exact match", "95 % interval", "lowest to highest seed"]
    head += ["test sources", "seeds"]
    other = (
        "\nWhat one training took: the loss over its last steps, in nats a token; the "
        "target tokens that one processor trained on in a second of its time; and the "
        "processor's time, with the evaluations on the validation. Each number is the "
        "mean over the seeds for which it was recorded. A dash means that these runs "
        "are older than the record.\n\n"
    )
    return (
        text
        + table(head, reached, right=range(1, 6))
        + other
        + table(["task", "steps", *COST], spent, right=range(1, 6))
        + machines(chosen)
    )
