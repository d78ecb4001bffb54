"""The judge: whether a function does what a spec says, and which mistake it makes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature

from tformer.check.calling import Case
from tformer.check.diagnosis import Numbers, diagnose_numbers
from tformer.check.evidence import Difference, Evidence, ask
from tformer.check.outcomes import Outcome, difference
from tformer.check.proofs import changed_inputs, proven
from tformer.check.spec import PROPERTIES, Function, Mistake, Spec

PARTLY = "That explains a part of what differs; what else was done is not known."


@dataclass(frozen=True)
class Verdict:
    """Whether a function is right; if not, where, and which known mistake it is."""

    spec: str
    differs: Difference | None
    mistakes: tuple[Mistake, ...]  # none if unknown
    together: bool = False  # whether all of them were made, or one
    partly: bool = False  # whether they explain a part of what differs, not all

    @property
    def right(self) -> bool:
        """Whether no case and no property shows a difference."""
        return self.differs is None

    def __str__(self) -> str:
        if self.differs is None:
            return f"{self.spec} is right."
        where = f"{self.spec} is wrong in the case {self.differs.case!r}"
        known = [f"{x.sentence} See {x.chapter}." for x in self.mistakes]
        if len(known) > 1:
            known.insert(0, "All of these:" if self.together else "One of these:")
        if self.partly:
            known.append(PARTLY)
        return "\n".join((f"{where}: {self.differs.message}.", *known))


def judge(
    spec: Spec, function: Function, framework: str = "torch", *, rtol: float = 1e-5
) -> Verdict:
    """Say whether a function does what the spec says, and if not, what it does.

    Args:
        spec: one of `tformer.check.SPECS`.
        function: takes the arguments of the spec's oracle. Cases with an option that
            its signature lacks are left out.
        framework: "torch" or "numpy", whose arrays it is given and must return.
        rtol: how far numbers may be from the oracle's, as a share of the largest.

    Raises:
        ValueError: the framework is unknown, or no case is left.
    """
    if framework not in ("torch", "numpy"):
        raise ValueError(f"framework ({framework!r}) must be 'torch' or 'numpy'")
    taken = signature(function).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    cases = [case for case in spec.cases if every or taken.keys() >= {*case.options}]
    if not cases:
        raise ValueError(f"the function takes the options of no case of {spec.name}")
    return judge_evidence(ask(spec, function, framework, cases), rtol=rtol)


def judge_evidence(evidence: Evidence, *, rtol: float = 1e-5) -> Verdict:
    """Judge what a function was seen to do, in this process or in another."""
    spec, cases = evidence.spec, evidence.task.cases
    found = next(evidence.differences(rtol), None)
    if found is None or found.kind not in PROPERTIES:
        verdict = judge_numbers(spec, evidence.outcomes, rtol=rtol)
        changed = changed_inputs(evidence) if found else []
        together = verdict.together or len(verdict.mistakes) == 1
        if not (changed and (together or not verdict.mistakes)):
            return verdict
        both = (*verdict.mistakes, *changed)
        return replace(verdict, mistakes=both, together=True)
    known = [
        mistake
        for mistake in spec.mistakes
        if (mistake.shows, mistake.framework) == (found.kind, evidence.framework)
        if found == _first_of(spec, mistake, cases, rtol)
    ]
    return Verdict(spec.name, found, tuple(known or proven(evidence, found)))


def _first_of(
    spec: Spec, mistake: Mistake, cases: tuple[Case, ...], rtol: float
) -> Difference | None:
    """Find the first difference of a known mistake."""
    evidence = ask(spec, mistake.function, mistake.framework, cases)
    return next(evidence.differences(rtol), None)


def judge_numbers(
    spec: Spec, outcomes: Mapping[str, Outcome], *, rtol: float = 1e-5
) -> Verdict:
    """Judge the numbers that some engine has computed, by the names of the cases."""
    numbers = Numbers(spec, outcomes, rtol)
    found = None
    for case in numbers.wrong[:1]:
        differs = difference(*numbers.given[case], rtol)
        found = differs and Difference(differs[0], case.name, differs[1])
    diagnosis = diagnose_numbers(numbers)
    known = diagnosis.mistakes, diagnosis.together, diagnosis.partly
    return Verdict(spec.name, found, *known)
