"""The page of results: its head, its sections in their order, its commands."""

from collections.abc import Sequence
from typing import Any

from engine.results import (
    ablations,
    curves,
    ledger,
    models,
    recipe,
    splits,
    tasks,
    text,
    translation,
)
from engine.results.groups import command, folded, grouped

HEAD = """---
description: "What tformer's models reach, beside other models and on harder data: \
intervals, seeds, time, machine, command."
hide: [navigation]
---

<!-- Written by `make results`: edit docs/engine/results, not this file. -->

# Results

Every number on this page comes out of the folder of a run, and was put here by a
command. Nobody typed it. The *seed* of a run decides its random numbers: the first
weights, the training data and their order. The test is the same for all seeds, and no
source of it is in any training. Times are those of one CPU thread, as the run itself
counted them.
"""

FOOT = """
## Run them again {{ #again }}

Each command makes the folder of a run, with its settings, metrics and result. Numbers
differ a little on other machines and with other versions of torch; on one machine, with
one thread and in float32, they are the same to the last bit.

{commands}

The other seeds are made by another `--seed`, and another folder. An evaluation is kept
in the folder by `tformer evaluate RUN --split new-years --save new-years` and the like,
the draws of nanoGPT's estimate by `python tests/baselines/nanogpt.py estimate`. Then
`make results RUNS="runs/*"` writes this page.
"""

SECTIONS = (
    tasks.section,
    translation.section,
    models.section,
    splits.section,
    splits.locales,
    ablations.section,
    text.section,
    ledger.section,
    recipe.section,
    curves.section,
)


def render(results: Sequence[dict[str, Any]]) -> str:
    """Write the page from what was kept of the runs."""
    groups = grouped(results)
    others = [g for g in groups if not ledger.of_ledger(g)]
    commands = "\n".join(folded(command(g[0])) for g in others)
    foot = FOOT.format(commands=f"```bash\n{commands}\n```")
    return "".join([HEAD, *(section(groups) for section in SECTIONS), foot])
