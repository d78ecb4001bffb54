"""One spec a concept: what is right, and how it goes wrong. Never torch at import.

`judge(SPECS["attention"], function)` says whether a function is right, or in which case
it differs, in what, and which known mistake gives these numbers. Oracles share no code
with `nn` or `reference`.
"""

from tformer.check import (  # noqa: F401
    caches,
    decoding,
    feed_forward,
    heads,
    loss,
    masks,
    positions,
    relative,
    training,
)
from tformer.check.answers import Checked, check
from tformer.check.evidence import Difference
from tformer.check.judging import Verdict, judge, judge_numbers
from tformer.check.outcomes import Outcome
from tformer.check.spec import SPECS, Case, Mistake, Spec

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
]
