"""A text, character by character: our settings beside nanoGPT's own recipe."""

import statistics
from collections.abc import Sequence

from engine.results.groups import (
    OWN,
    Group,
    machines,
    mean_of,
    means,
    model,
    steps,
    task,
)
from engine.results.numbers import MISSING, SPACE, number, span, table

NANO = "nanoGPT's recipe"
README = 1.88  # nanoGPT's readme, "val loss" of the setting for a laptop's CPU
ESTIMATE = "nanogpt-estimate"


def section(groups: Sequence[Group]) -> str:
    """Write the table of the text."""
    chosen = [g for g in groups if task(g) == "text" and "steps" not in g[0]["changes"]]
    chosen = [g for g in chosen if model(g[0]) == NANO or not g[0]["changes"]]
    if not chosen:
        return ""
    titles = {OWN: "`tformer train text`"}
    head = ["", *(titles.get(model(g[0]), model(g[0])) for g in chosen)]
    lines = {
        "loss on all of the validation text": [
            _with_span(g, "test_loss") for g in chosen
        ],
        "bits a byte": [_with_span(g, "test_bits_per_byte") for g in chosen],
        "loss on 20 random batches of it": [_estimate(g) for g in chosen],
        "training loss, last 100 steps": [
            mean_of(g, "training", "loss", form=".3f") for g in chosen
        ],
        "seeds": [str(len(g)) for g in chosen],
        "parameters": [f"{g[0]['result']['parameters']:,}" for g in chosen],
        "steps of 12 windows of 64": [f"{steps(g):,}" for g in chosen],
        "highest learning rate": [
            f"{g[0]['settings']['learning_rate']:g}" for g in chosen
        ],
        "lowest, at the end": [
            "0.0001" if model(g[0]) == NANO else "0" for g in chosen
        ],
        "characters a second": [
            mean_of(g, "training", "tokens_per_cpu_second", form=",.0f") for g in chosen
        ],
        "processor": [_minutes(g) for g in chosen],
    }
    rows = [[name, *values] for name, values in lines.items()]
    return (
        _words(chosen)
        + table(head, rows, right=range(1, len(head)))
        + _parameters(chosen)
        + machines(chosen)
    )


def _words(groups: Sequence[Group]) -> str:
    file = ", ".join(groups[0][0]["settings"]["files"])
    return (
        "\n## A text, character by character { #text }\n\nA GPT of the size that "
        f"nanoGPT's readme gives for a laptop's CPU, on {file}; the first 90 % are for "
        "the training, the rest for validation. The second column is nanoGPT's own "
        "recipe, its model and loop written anew in plain torch; ours has a higher "
        f"learning rate. The readme says {README} for its recipe, the mean loss of 20 "
        "random batches of the validation text. Such a mean depends on which batches "
        "are drawn. We measured both columns so too, ten times for each seed; the "
        "lowest and the highest draw stand in brackets. The first row needs no draw: "
        "it takes all of the validation text, cut into windows side by side. There "
        "the brackets hold the lowest and the highest seed. Losses are in nats a "
        "character.\n\n"
    )


def _with_span(group: Group, name: str) -> str:
    values = means(group, "result", name)
    if not values:
        return MISSING
    mean = number(statistics.mean(values), ".3f")
    return f"{mean}<br>({span(values, '.3f')})" if len(values) > 1 else mean


def _estimate(group: Group) -> str:
    draws = [
        loss
        for run in group
        for loss in run.get("evaluations", {}).get(
            ESTIMATE, {"result": {"losses": []}}
        )["result"]["losses"]
    ]
    if not draws:
        return MISSING
    return f"{number(statistics.mean(draws), '.3f')}<br>({span(draws, '.3f')})"


def _minutes(group: Group) -> str:
    seconds = means(group, "result", "cpu_seconds")
    return f"{statistics.mean(seconds) / 60:.1f}{SPACE}min" if seconds else MISSING


def _parameters(groups: Sequence[Group]) -> str:
    """Say why the two models differ in their parameters."""
    sizes = {model(g[0]): g[0]["result"]["parameters"] for g in groups}
    if not {OWN, NANO} <= sizes.keys():
        return ""
    width = groups[0][0]["settings"]["d_model"]
    more = sizes[OWN] - sizes[NANO]
    return (
        f"\nThe models differ by {more:,} parameters: our vocabulary has "
        f"{more // width} tokens more, for padding, start and end, and each has a row "
        f"of {width}. A text uses none of them. All other parameters are the same in "
        "number.\n"
    )
