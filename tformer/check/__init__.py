"""One spec a concept: what is right, and how it goes wrong. Never torch at import.

`judge(SPECS["attention"], function)` says whether a function is right, or in which case
it differs, in what, and which known mistake gives these numbers. Oracles share no code
with `nn` or `reference`. `model(make_model())` asks a whole model from outside.

Where what stands:

- the form of a spec: `spec`; the specs, a file a concept: `masks`, `attention`,
  `cutting`, `heads`, `norms`, `feed_forward`, `blocks`, `mixture`, `routing`,
  `streams`, `positions`, `rotation`, `relative`, `recurrences`, `delta`, `indexing`,
  `caches`, `decoding`, `beams`, `drafts`, `loss`, `training`; mistakes in other code
  than the oracle's loops: `attending`, `normalising`
- a function is asked: `calling`, `outcomes`; what was seen: `evidence`; the verdict:
  `judging`; why: `diagnosis`, of any function `general` and `ratios`, of properties
  `proofs`, of a part of the numbers `in_part`
- a reader's file: `grading` reads it, `running` starts `child`, which holds no oracle:
  `guard` and `landlock` hold it, `loading` finds the function, `wire` carries what is
  asked and said; `telling` says it in plain words
- whole solutions with a mistake in each, to mend: `planting` makes them, `faults` and
  `modern_faults` list
- exercises that are one of these functions: `exercises/`; those of the chapters:
  `asked` reads them, `answers` and `chapter_files` judge, by `chapter_sums`,
  `chapter_words`, `chapter_functions` and `chapter_calls`
- a whole model: `black_box/`
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tformer.check import (  # noqa: F401
    beams,
    blocks,
    caches,
    decoding,
    delta,
    drafts,
    feed_forward,
    heads,
    indexing,
    loss,
    masks,
    mixture,
    modern_formulas,
    positions,
    recurrences,
    relative,
    routing,
    streams,
    training,
)
from tformer.check.answers import Checked, check
from tformer.check.evidence import Difference
from tformer.check.judging import Verdict, judge, judge_numbers
from tformer.check.outcomes import Outcome
from tformer.check.spec import SPECS, Case, Mistake, Spec

if TYPE_CHECKING:
    from tformer.check.black_box import Report

__all__ = [
    "SPECS",
    "Case",
    "Checked",
    "Difference",
    "Mistake",
    "Outcome",
    "Spec",
    "Verdict",
    "check",
    "judge",
    "judge_numbers",
    "model",
]


def model(model: Callable[..., object], *, seconds: float = 60.0) -> "Report":
    """Ask a language model whether it sees the future, and whatever else shows outside.

    Nothing of it is changed: it is copied, and where it cannot be, put back.

    Args:
        model: takes ids (B, T), an int64 tensor or if it wants that a NumPy array, and
            returns logits (B, T, V): themselves, as `.logits` or ["logits"], or first
            in a tuple. A module is asked in `eval()`.
        seconds: about how long the longer questions may take together.

    Returns:
        what was found, what was asked, and what could not be asked. `str` tells it.
    """
    from tformer.check.black_box.asking import ask  # torch waits for a model

    return ask(model, seconds)
