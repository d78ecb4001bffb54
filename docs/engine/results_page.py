"""What the page of results says, and how it says it."""

import json
import statistics
import textwrap
from collections.abc import Sequence
from typing import Any

HEAD = """---
description: "What tformer's models reach, over several seeds: time, machine, command."
---

<!-- Written by `make results`: edit docs/engine/results_page.py, not this file. -->

# Results

Every number on this page comes out of the folder of a run, and was put here by a
command. Nobody typed it. Each run was made with several seeds, which change the first
weights, the training data and their order; the test is the same for all, and no source
of it is in any training. The column *processor* is the time of one CPU thread, as the
run itself counted it: training, and looks at the validation.
"""

FOOT = """
## Run them again {{ #again }}

Each command makes the folder of a run, with its settings, metrics, checkpoints and
result. Numbers differ a little on other machines and with other versions of torch; on
one machine, with one thread, they are the same to the last bit.

{commands}

The other seeds are made by another `--seed`, and another folder. Then
`make results RUNS="runs/*"` writes this page.
"""

ALT = (
    "Curves that rise from 0 to 1, one a task: the fraction of right answers in the "
    "validation, against the step of the training."
)
RANGE = "lowest to highest"
SPACE = "\u00a0"  # a line of a table is not broken here
NAMES = {
    "copy": "copy letters",
    "reverse": "reverse letters",
    "sort": "sort letters",
    "addition": "addition",
    "number-words": "number words up to 9,999, six languages",
    "dates": "dates, 24 locales",
}
PARTS = {
    "": "nothing: all parts",
    "mask": "the causal mask",
    "scale": "the scale, 1/√d_k",
    "positions": "the positions",
}


def render(results: Sequence[dict[str, Any]]) -> str:
    """Write the page from what was kept of the runs."""
    groups = grouped(results)
    whole = [g for g in groups if g[0]["settings"]["task"] in NAMES and not _off(g)]
    tasks = [g for g in whole if not g[0]["changes"]]
    steps = {g[0]["settings"]["steps"] for g in groups if _off(g)}
    ablated = [
        g
        for g in groups
        if g[0]["settings"]["task"] == "dates" and g[0]["settings"]["steps"] in steps
    ]
    texts = [g for g in groups if g[0]["settings"]["task"] == "text"]
    parts = [HEAD, _tasks(tasks)]
    if ablated:
        parts.append(_ablations(ablated))
    if texts:
        parts.append(_texts(texts))
    parts.append(_curves(tasks))
    commands = "\n".join(_folded(command(g[0])) for g in groups)
    parts.append(FOOT.format(commands=f"```bash\n{commands}\n```"))
    return "".join(parts)


def grouped(results: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Put runs together that differ in their seed alone."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        settings = {**result["settings"], "seed": None}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(result)
    order = [*NAMES, "text", "pairs"]
    return sorted(
        groups.values(), key=lambda g: (order.index(g[0]["settings"]["task"]), _off(g))
    )


def command(result: dict[str, Any]) -> str:
    """Give the command that repeats a run, for any seed."""
    settings = result["settings"]
    words = ["tformer train", settings["task"], *settings["files"]]
    for name, value in result["changes"].items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words.append(f"--{option} {value}")
    short = [f"{settings['steps']}-steps"] if "steps" in result["changes"] else []
    name = "-".join([settings["task"], *settings["without"], *short])
    seed = settings["seed"]
    return " ".join([*words, f"--seed {seed} --threads 1 --out runs/{name}-{seed}"])


def _folded(line: str) -> str:
    """Break a command where a phone would."""
    parts = textwrap.wrap(
        line,
        width=86,
        subsequent_indent="    ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return " \\\n".join(parts)


def _tasks(groups: list[list[dict[str, Any]]]) -> str:
    rows = [
        [
            NAMES[g[0]["settings"]["task"]],
            *_exact(g),
            f"{g[0]['result']['test_pairs']:,}",
            _count(g),
            f"{g[0]['settings']['steps']:,}",
            _minutes(g),
            f"{g[0]['result']['parameters']:,}",
        ]
        for g in groups
    ]
    head = ["task", "exact match", RANGE, "of", "seeds", "steps", "processor"]
    head.append("parameters")
    sizes = [run["result"]["test_pairs"] for g in groups for run in g]
    least = min(sizes, default=1)
    allowed = 100 * (1 - 0.05 ** (1 / least))  # p such that (1 - p)^n = 5 %
    text = (
        "\n## Tasks { #tasks }\n\nExact match is the fraction of test sources of which "
        "every character of the answer is right, written greedily. It is the mean over "
        f"the seeds. A test of {least:,} without a mistake is no proof that there are "
        f"none: with 95 % confidence, up to {allowed:.2f} % may be wrong.\n\n"
    )
    return text + _table(head, rows, right=range(1, 8)) + _machines(groups)


def _ablations(groups: list[list[dict[str, Any]]]) -> str:
    rows = [
        [
            PARTS[" ".join(g[0]["settings"]["without"])],
            *_exact(g),
            *_mean(g, "test_loss", "#.2g"),
            _count(g),
        ]
        for g in groups
    ]
    steps = groups[0][0]["settings"]["steps"]
    text = (
        "\n## Trained without a part { #without }\n\nThe dates again, in "
        f"{steps:,} steps, with one part left out of the training and of the test. The "
        "loss is that of the true answer, each character given the true ones before "
        "it: without the mask the model reads the answer off, its loss says that all "
        "is well, and what it writes itself is worthless.\n\n"
    )
    head = ["trained without", "exact match", RANGE, "loss", RANGE, "seeds"]
    return text + _table(head, rows, right=range(1, 6))


def _texts(groups: list[list[dict[str, Any]]]) -> str:
    text = (
        "\n## A text, character by character { #text }\n\nA GPT of the size that "
        "nanoGPT's readme gives for a laptop's CPU, and as many steps; the readme says "
        "1.88 for it, with a third of this learning rate, estimated on 20 random "
        "batches. The loss here, in nats a character, is that of the last tenth of the "
        "text, all of it, cut into windows side by side: the two are not measured "
        "alike.\n"
    )
    return text + "".join(map(_text, groups))


def _text(group: list[dict[str, Any]]) -> str:
    s, result = group[0]["settings"], group[0]["result"]
    loss, losses = _mean(group, "test_loss", ".3f")
    bits, many_bits = _mean(group, "test_bits_per_byte", ".3f")
    rows = [
        ["loss", f"{loss} ({losses})"],
        ["bits a byte", f"{bits} ({many_bits})"],
        ["seeds", _count(group)],
        ["processor", _minutes(group)],
        ["layers, width", f"{s['num_layers']}, {s['d_model']}"],
        ["context", f"{s['max_len']}"],
        ["parameters", f"{result['parameters']:,}"],
        ["of them for padding, start, end", f"{3 * s['d_model']:,}"],
        ["steps of a batch", f"{s['steps']:,} of {s['batch_size']} windows"],
        ["learning rate", f"{s['learning_rate']:g}"],
    ]
    head = [f"{', '.join(s['files'])}", f"mean ({RANGE})"]
    return "\n" + _table(head, rows, right=range(1, 2))


def _curves(groups: list[list[dict[str, Any]]]) -> str:
    """A picture of how the tasks were learned, drawn by the page from these numbers."""
    curves = {}
    for g in groups:
        name = "validation_exact_match"
        looks = [[look[name] for look in run["looks"]] for run in g]
        steps = [look["step"] for look in g[0]["looks"]]
        columns = zip(*looks, strict=True)
        means = [round(statistics.mean(values), 4) for values in columns]
        curves[g[0]["settings"]["task"]] = (steps, means)
    lines = "\n".join(
        f"    curves[{name!r}] = (\n{_numbers(steps)}\n{_numbers(means)}\n    )"
        for name, (steps, means) in curves.items()
    )
    return f"""
## How they were learned {{ #curves }}

Exact match on the validation, while the training goes on, as the mean over the seeds:

??? note "The code of this picture, and its numbers"

    ```python
    import matplotlib.pyplot as plt

    curves = {{}}
{lines}
    figure, ax = plt.subplots()
    for name, (steps, right) in curves.items():
        ax.plot(steps, right, label=name)
    ax.set(xlabel="step", ylabel="exact match", ylim=(-0.02, 1.02))
    ax.legend()
    ```

![{ALT}](figures/results-curves.svg)
"""


def _numbers(values: Sequence[float]) -> str:
    words, lines = [f"{value:g}" for value in values], [" " * 8 + "["]
    for word in words:
        if len(lines[-1]) + len(word) > 84:
            lines.append(" " * 9)
        lines[-1] += f"{word}, "
    return "\n".join(lines).rstrip(", ") + "],"


def _machines(groups: list[list[dict[str, Any]]]) -> str:
    machines = {
        f"{m['name']}, {m['threads']} thread, torch {m['torch']}, Python {m['python']}"
        for g in groups
        for run in g
        for m in [run["result"]["machine"]]
    }
    return "\nMachine: " + "; ".join(sorted(machines)) + ".\n"


def _table(head: list[str], rows: list[list[str]], *, right: range) -> str:
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _off(group: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(group[0]["settings"]["without"])


def _count(group: list[dict[str, Any]]) -> str:
    return str(len(group))


def _exact(group: list[dict[str, Any]]) -> list[str]:
    percent = [100 * run["result"]["test_exact_match"] for run in group]
    return [f"{statistics.mean(percent):.2f}{SPACE}%", _range(percent, ".2f")]


def _mean(group: list[dict[str, Any]], name: str, form: str) -> list[str]:
    values = [run["result"][name] for run in group]
    return [_number(statistics.mean(values), form), _range(values, form)]


def _range(values: list[float], form: str) -> str:
    low, high = _number(min(values), form), _number(max(values), form)
    return low if low == high else f"{low}{SPACE}to{SPACE}{high}"


def _number(value: float, form: str) -> str:
    """Write a number as people do: 9.0e-06 is 9.0 × 10⁻⁶."""
    digits, _, power = f"{value:{form}}".partition("e")
    if not power:
        return digits
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}{SPACE}×{SPACE}10{raised}"


def _minutes(group: list[dict[str, Any]]) -> str:
    seconds = statistics.mean(run["result"]["cpu_seconds"] for run in group)
    return f"{seconds / 60:.1f}{SPACE}min"
