"""Mistakes that are proven by what was seen, however the code was written."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tformer.check.calling import Call
from tformer.check.evidence import Difference, Evidence, right_of
from tformer.check.general import named
from tformer.check.outcomes import Outcome, difference
from tformer.check.spec import Mistake

# As a spec's mistakes, without code.
SENTENCES = """
# residuals#dropout-on-the-sum
random: Two calls with the same input differ: something is drawn at random, as in
    dropout.
# long-context#a-cache-that-is-not-emptied
remembers: Your function remembers an earlier call: keep nothing from one to the
    next.
# residuals#in-place
changes_input: You write into {name}, which is the caller's: make an array of your
    own.
# heads#view-without-transpose
needs_rows: You call `view` on what may lie in memory in another order: use
    `reshape`.
reads_memory: You read numbers as they lie in memory; inputs may lie there in
    another order.
# attention#sixteen-bits
numpy_inside: You go through NumPy, which has no bfloat16; compute with tensors
    throughout.
loses_digits: In float32 your result is too far off: large numbers cancel, or an exp
    leaves its range.
half_inside: You compute in the narrow dtype of the input what needs 32 bits.
widened: You return {dtype} where {given} came in: go back to the input's dtype.
narrowed: You return {dtype} where {given} came in: go back to the input's dtype.
# masks#nothing-to-look-at
nan_gradient: The gradient of {name} is NaN though the numbers are right: 0 times
    infinity.
# attention#in-ten-lines
detached: No gradient flows to {name}: you cut it off.
# residuals#in-place
no_tensor: You return a plain number or NumPy's array: gradients end there; return the
    tensor.
cut_gradient: The numbers are right, the gradient of {name} is not: a part is cut off.
in_place_gradient: You change in place what the gradient still needs.
"""


def proven(evidence: Evidence, found: Difference) -> list[Mistake]:
    """Name what a property that does not hold proves."""
    known = {
        "state": _of_state,
        "inputs": _of_inputs,
        "layout": _of_layout,
        "precision": _of_precision,
        "dtype": _of_dtype,
        "gradient": _of_gradient,
    }
    return [*known[found.kind](evidence, found)]


def changed_inputs(evidence: Evidence) -> list[Mistake]:
    """Name the inputs that were written into, beside what else went wrong."""
    if "inputs" not in evidence.spec.properties:
        return []
    calls = (Call(case.name) for case in evidence.task.cases)
    changed = {name for call in calls for name in evidence.answers[call].changed}
    names = [name for name in evidence.task.names if name in changed]
    told = " and ".join(names)
    return [_named(evidence, "changes_input", name=told)] if names else []


def _named(evidence: Evidence, id: str, **words: object) -> Mistake:
    return named(evidence.spec, id, SENTENCES, **words)


def _of_state(evidence: Evidence, _: Difference) -> Iterator[Mistake]:
    """What is drawn hangs on the seed alone, or is wrong from the first call on."""
    again = {case: Call(case.name, again=True) for case in evidence.task.cases}
    firsts = {case: evidence.answers[Call(case.name)].outcome for case in again}
    differ = [
        case
        for case, call in again.items()
        if difference(evidence.answers[call].outcome, firsts[case], 1e-6)
    ]
    right = differ and not difference(
        _begun(evidence, firsts[differ[0]]),
        _begun(evidence, right_of(evidence.spec, differ[0])),
        1e-4,
    )
    yield _named(evidence, "remembers" if right else "random")


def _begun(evidence: Evidence, outcome: Outcome) -> Outcome:
    """Keep the first result, where a case is more than one call."""
    several = evidence.spec.run is not None
    return replace(outcome, arrays=outcome.arrays[:1]) if several else outcome


def _of_inputs(evidence: Evidence, _: Difference) -> Iterator[Mistake]:
    yield from changed_inputs(evidence)


def _of_layout(evidence: Evidence, found: Difference) -> Iterator[Mistake]:
    view = "view" in found.message or "contiguous" in found.message
    raises = "raises" in found.message
    if view or not raises:
        yield _named(evidence, "needs_rows" if view else "reads_memory")


def _of_precision(evidence: Evidence, found: Difference) -> Iterator[Mistake]:
    said = found.message.lower()
    if "unsupported scalartype" in said or "numpy" in said:
        yield _named(evidence, "numpy_inside")
    elif "dtype" in said or "scalar type" in said:
        yield named(evidence.spec, "fixed_dtype")
    elif "raises" not in said:
        exact = said.startswith("in float32")
        yield _named(evidence, "loses_digits" if exact else "half_inside")


def _of_dtype(evidence: Evidence, found: Difference) -> Iterator[Mistake]:
    call = next(
        call
        for call in evidence.task.calls
        if call.case == found.case and f"in {call.dtype} it" in found.message
    )
    made = evidence.answers[call].outcome.dtype or ""
    order = ["bfloat16", "float16", "float32", "float64"]
    id = "widened" if order.index(made) > order.index(call.dtype) else "narrowed"
    yield _named(evidence, id, dtype=made, given=call.dtype)


def _of_gradient(evidence: Evidence, found: Difference) -> Iterator[Mistake]:
    asked = [call for call in evidence.task.calls if call.gradient]
    answers = [evidence.answers[call] for call in asked]
    errors = [x.outcome.error for x in answers if x.outcome.error]
    if any("inplace" in x or "in-place" in x for x in errors):
        yield _named(evidence, "in_place_gradient")
        return
    if any("is no tensor, and has no gradient" in x for x in errors):
        yield _named(evidence, "no_tensor")
        return
    names = [name for x in answers for name in x.gradients]
    for name in dict.fromkeys(names):
        slopes = [x.gradients[name] for x in answers if name in x.gradients]
        if any(np.isnan(x).any() for x in slopes):
            yield _named(evidence, "nan_gradient", name=name)
        elif f"gradient of {name} " in found.message and not any(
            x.any() for x in slopes
        ):
            yield _named(evidence, "detached", name=name)
        elif f"gradient of {name} " in found.message:
            yield _named(evidence, "cut_gradient", name=name)
