"""One spec a concept: what is right, and how it goes wrong. Never torch at import.

`judge(SPECS["attention"], function)` says whether a function is right, or in which case
it differs, in what, and which known mistake gives these numbers. Oracles share no code
with `nn` or `reference`.
"""

from tformer.check import (
    attention,
    caches,
    decoding,
    filters,
    heads,
    loss,
    masks,
    norms,
    positions,
)
from tformer.check.judging import Difference, Verdict, judge, judge_numbers
from tformer.check.outcomes import Outcome
from tformer.check.spec import Case, Mistake, Spec

_CONCEPTS = (
    *(attention, masks, heads, norms, positions),
    *(caches, decoding, filters, loss),
)
SPECS = {
    spec.name: spec
    for concept in _CONCEPTS
    for spec in vars(concept).values()
    if isinstance(spec, Spec)
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
