"""Each part of a language model, put into one small GPT or the block of today."""

import statistics
from collections.abc import Sequence

from engine.results.groups import (
    Group,
    Result,
    command,
    folded,
    machines,
    means,
    steps,
)
from engine.results.ledger_rows import (
    CLOSE,
    KINDS,
    Row,
    differences,
    ledger,
    of_ledger,
    ratio,
)
from engine.results.numbers import (
    MISSING,
    SPACE,
    fold,
    items,
    listed,
    number,
    paired,
    signed,
    span,
    table,
)

__all__ = ["of_ledger", "section"]

SEEN = 0.25  # larger differences would make the others of the picture too small
HEAD = ["put in", "in place of", "loss", "difference", "", "parameters", "step"]
HEAD += ["equal time"]
WORDS = """
## Parts in and out {{ #ledger }}

One small GPT of 2019 with one part exchanged at a time, and the block of today with one
part exchanged. All make {most:,} steps on the same text, with the settings of
`tformer train text` and {seeds}. Nothing was tuned for any row: a part
that wants another learning rate did not get one. The loss is that of all of the
validation text, in nats a character. The GPT has {loss}.

A *difference* is the loss minus that of the model without the exchange: below 0 is
better. It is taken seed by seed, since a seed decides the order of the text for both.
The interval is Student's, at 95 %, around the mean of these differences; so few make it
wide.{fewer} A part *helps* or *hurts* if its interval lies on one side of 0, else its
effect *does not show*. Of {count} rows one or two would help or hurt by chance.

{told}

All of this holds for a model of {parameters:,} parameters, a context of {context}
characters and {most:,} steps. Some parts are made for other things than the loss of a
small model: fewer key/value heads, latents and a window save memory; caps, and norms of
queries and keys, keep a large training from diverging. Sinusoids are added to tokens
that begin as small as a GPT's. The paper multiplies the tokens by √d_model first; here
nothing does.

"""
TIMES = """
*Step* is the processor's time of a training step, that of the GPT being 1; each was
measured in one process, in turn with the GPT. *Equal time* is the difference again,
where each model makes as many steps as fit into the time of the GPT's {most:,}. If a
step takes within {close:.0f} % of the GPT's time, the same runs count.{missing}
"""
PICTURE = """??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

{names}
{means}
{halves}
    figure, ax = plt.subplots(figsize=(4.8, {height:.1f}))
    ax.axvline(0, color="black", lw=0.8)
    for i, (mean, half) in enumerate(zip(means, halves)):
        color = "C0" if mean + half < 0 else "C1" if mean - half > 0 else "gray"
        ax.errorbar(mean, i, xerr=half, fmt="o", color=color, ms=4, capsize=2)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel="difference of the loss", xlim=({low}, {high}))
    ```

![{alt}](figures/results-ledger.svg "{caption}")

"""


def section(groups: Sequence[Group]) -> str:
    """Write the ledger: what it says in words, the picture, two tables, commands."""
    rows = ledger(groups)
    if not rows:
        return ""
    into, today = ([r for r in rows if r.at == name] for name in ("gpt", "today"))
    gpt = into[0].base
    told = "\n".join(
        f"- **{kind.capitalize()}**: {_named(rows, kind)}." for kind in KINDS
    )
    words = WORDS.format(
        most=steps(gpt),
        seeds=f"{len(gpt)} seed{'s'[: len(gpt) != 1]}",
        loss=_loss(gpt),
        count=len(rows),
        told=told,
        fewer=_fewer(rows, len(gpt)),
        parameters=gpt[0]["result"]["parameters"],
        context=gpt[0]["settings"]["max_len"],
    )
    times = TIMES.format(
        most=steps(gpt), close=100 * CLOSE, missing=_without_time(rows)
    )
    tables = (
        "Put into the GPT, which has learned positions, LayerNorm and GELU:\n\n"
        + table(HEAD, map(_cells, into), right=range(2, 8))
    )
    if today:
        tables += (
            "\nPut into the block of today, which has rotary positions, RMSNorm and "
            f"SwiGLU, and a loss of {_loss(today[0].base)}:\n\n"
            + table(HEAD, map(_cells, today), right=range(2, 8))
        )
    every = [r.runs for r in rows] + [gpt]
    every += [r.timed for r in rows if r.timed and r.timed is not r.runs]
    lines = [line for g in every for line in folded(command(_first(g))).splitlines()]
    commands = "\n".join(f"    {line}" for line in lines)
    return (
        words
        + _picture(rows)
        + tables
        + times
        + machines(every)
        + f'\n??? note "The command of each row"\n\n    ```bash\n{commands}\n    ```\n'
    )


def _named(rows: Sequence[Row], kind: str) -> str:
    found = []
    for r in rows:
        if r.kind == kind:
            whose = f" in place of {r.instead}" if r.instead else ""
            at = " in the block of today" * (r.at == "today")
            found.append(f"{r.name}{whose}{at} ({signed(paired(r.apart)[0])})")
    return "; ".join(found) or "nothing"


def _fewer(rows: Sequence[Row], seeds: int) -> str:
    few = [r.name for r in rows if len(r.apart) < seeds]
    return f" Of these there are fewer than {seeds}: {', '.join(few)}." if few else ""


def _without_time(rows: Sequence[Row]) -> str:
    missing = [r.name for r in rows if not r.timed]
    if not missing:
        return ""
    return f" A dash: no such run was made, for {len(missing)} of {len(rows)} rows."


def _loss(group: Group) -> str:
    values = means(group, "result", "test_loss")
    return f"{number(statistics.mean(values), '.3f')} ({span(values, '.3f')})"


def _cells(r: Row) -> list[str]:
    took, parameters = ratio(r.runs), r.runs[0]["result"]["parameters"]
    return [
        r.name,
        r.instead or MISSING,
        _loss(r.runs).replace(" (", "<br>(", 1),
        _apart(r.apart),
        r.kind,
        f"{parameters:,}",
        MISSING if took is None else f"{took:.2f}",
        _apart(differences(r.timed, r.base_timed)),
    ]


def _apart(values: Sequence[float]) -> str:
    if not values:
        return MISSING
    if len(values) < 2:
        return signed(values[0])
    mean, half = paired(values)
    return f"{signed(mean)}{SPACE}±{SPACE}{half:.3f}"


def _first(group: Group) -> Result:
    return min(group, key=lambda run: run["settings"]["seed"])


def _picture(rows: Sequence[Row]) -> str:
    shown = [r for r in rows if len(r.apart) > 1]
    seen = [r for r in shown if abs(paired(r.apart)[0]) <= SEEN]
    if not seen:
        return ""
    names = [fold(r.name + ", today" * (r.at == "today"), 32) for r in seen]
    pairs = [paired(r.apart) for r in seen]
    beyond = [f"{r.name} {signed(paired(r.apart)[0])}" for r in shown if r not in seen]
    far = f" Too far to be drawn: {', '.join(beyond)}." if beyond else ""
    told = ", ".join(
        f"{name} {signed(mean)}".replace("\n", " ")
        for name, (mean, _) in zip(names, pairs, strict=True)
    )
    return PICTURE.format(
        names=items(names, "names"),
        means=listed((round(mean, 4) for mean, _ in pairs), "means"),
        halves=listed((round(half, 4) for _, half in pairs), "halves"),
        height=0.8 + 0.22 * sum(1 + name.count("\n") for name in names),
        low=-SEEN - 0.05,
        high=SEEN + 0.05,
        alt=f"Points with lines, a row each part, beside a line at 0: {told}.",
        caption="Points: the mean difference of the loss, left of 0 is better. Lines: "
        f"its 95 % interval.{far}",
    )
