"""One spec a concept: what is right, and how it goes wrong. Never torch at import.

`judge(SPECS["attention"], function)` says whether a function is right, or in which case
it differs, in what, and which known mistake gives these numbers. Oracles share no code
with `nn` or `reference`.
"""

from tformer.check.attention import ATTENTION, GROUPED_ATTENTION
from tformer.check.judging import Difference, Verdict, judge, judge_numbers
from tformer.check.masks import CAUSAL_MASK, COMBINE_MASKS, LENGTH_MASK
from tformer.check.norms import LAYER_NORM, RMS_NORM
from tformer.check.outcomes import Outcome
from tformer.check.spec import Case, Mistake, Spec

SPECS = {
    spec.name: spec
    for spec in (
        ATTENTION,
        GROUPED_ATTENTION,
        CAUSAL_MASK,
        COMBINE_MASKS,
        LENGTH_MASK,
        LAYER_NORM,
        RMS_NORM,
    )
}

__all__ = [
    "SPECS",
    "Case",
    "Difference",
    "Mistake",
    "Outcome",
    "Spec",
    "Verdict",
    "judge",
    "judge_numbers",
]
