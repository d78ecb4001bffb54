"""What the worker of the page calls to judge a reader's code.

It travels beside the package, and runs where NumPy is and torch is not.
"""

import builtins
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from types import ModuleType

import numpy as np
from running import FILE, executed, shown_by

import tformer.check.answers  # noqa: F401 - all specs
from tformer.check import Verdict
from tformer.check.asked import exercises
from tformer.check.calling import Call, Case
from tformer.check.chapter_functions import CHAPTER_SPECS
from tformer.check.evidence import Difference, Evidence, right_of, task_of
from tformer.check.exercises import EXERCISES
from tformer.check.judging import judge_evidence
from tformer.check.outcomes import Table
from tformer.check.spec import PROPERTIES, SPECS, Spec

ELEMENTS = 24  # of an array that is shown whole


def modules() -> list[ModuleType]:
    """Return what a reader may change by mistake, and the judge needs."""
    ours = [x for name, x in sys.modules.items() if name.startswith("tformer.check")]
    return [builtins, math, np, np.linalg, np.random, *ours]


def check(source: str, exercise: str, show: Callable[[str], object]) -> str:
    """Run code, and judge the function of an exercise in it; return JSON."""
    with shown_by(show):
        return json.dumps(judged(source, exercise))


def judged(source: str, name: str) -> dict[str, object]:
    """Run code, and judge the function of an exercise in it.

    `verdict` is "right", "wrong" or "not run"; of what is wrong, `differs` and
    `mistakes`. It is what the judge returns, whatever the code prints.
    """
    spec, function = asked(name)
    kept = [(module, dict(vars(module))) for module in modules()]
    names = executed(source)
    reason = ""
    if names is None:
        reason = "Your code raises an exception: it stands below."
    elif function not in names:
        reason = f"Your code defines no function {function}."
    elif not callable(names[function]):
        reason = f"In your code {function} is no function."
    evidence = None
    if names and not reason:
        evidence = seen(spec, names[function], cases_of(name, spec, names[function]))
    # A name that the code gave another meaning would mislead the judge, who comes now.
    for module, was in kept:
        for each, value in was.items():
            if vars(module).get(each) is not value:
                setattr(module, each, value)
    if evidence is None:
        return {"verdict": "not run", "reason": reason}
    return said(judge_evidence(evidence), evidence)


def asked(name: str) -> tuple[Spec, str]:
    """Return the spec of an exercise, "rotary" or "masks 5", and its function."""
    if name in EXERCISES:
        return EXERCISES[name].spec, EXERCISES[name].function
    chapter, number = name.split()
    exercise = exercises(chapter)[int(number)]
    return CHAPTER_SPECS.get(exercise.spec) or SPECS[exercise.spec], exercise.name


def cases_of(name: str, spec: Spec, function: Callable[..., object]) -> list[Case]:
    """Return what is asked: what the exercise promises, no more."""
    if name in EXERCISES:
        return EXERCISES[name].cases
    try:
        taken = signature(function).parameters
    except (TypeError, ValueError):  # of what is not written in Python
        taken = signature(spec.oracle).parameters
    return [case for case in spec.cases if taken.keys() >= {*case.options}]


def seen(spec: Spec, function: Callable[..., object], cases: list[Case]) -> Evidence:
    """Ask the function all that the judge looks at."""
    task = replace(task_of(spec, "numpy", cases), file=FILE)
    answers = {
        call: task.answer(function, call, spec.normal, BaseException)
        for call in task.calls
    }
    return Evidence(spec, task, answers)


def said(verdict: Verdict, evidence: Evidence) -> dict[str, object]:
    """Say in the words of `tformer check --json` what was found, and what compared."""
    found = verdict.differs
    if found is None:
        return {"verdict": "right"}
    if "NotImplementedError" in found.message:
        return {"verdict": "not run", "reason": "It is not written yet."}
    folder = verdict.spec if verdict.spec in EXERCISES else ""  # of the atlas
    mistakes = [
        {"id": x.id, "sentence": x.sentence, "chapter": x.chapter}
        | {"page": folder if x in evidence.spec.mistakes else ""}
        for x in verdict.mistakes
    ]
    numbers = [] if found.kind in PROPERTIES else shown(found, evidence)
    wrong = {"verdict": "wrong", "mistakes": mistakes}
    wrong |= {"together": verdict.together, "partly": verdict.partly}
    rule = PROPERTIES.get(found.kind)
    return wrong | {
        "differs": found._asdict(),
        "rule": rule,
        "numbers": numbers,
        "raises": "" if found.kind == "error" else raised(evidence),
    }


def raised(evidence: Evidence) -> str:
    """Say what a function raises, and in which case, where it does not in others."""
    for case in evidence.task.cases:
        error = evidence.answers[Call(case.name)].outcome.error
        if error and not right_of(evidence.spec, case).error:
            return f"In the case “{case.name}” it raises {error}."
    return ""


def shown(differs: Difference, evidence: Evidence) -> list[tuple[str, str]]:
    """Return the inputs of a case, the result, and what is right."""
    (case,) = (x for x in evidence.task.cases if x.name == differs.case)
    found = re.search(r"result\[([\d, ]+)\]", differs.message)
    *row, _ = map(int, found[1].split(",")) if found else [0]
    inputs = evidence.task.inputs(case).items()
    given = evidence.answers[Call(case.name)].outcome
    with np.printoptions(precision=4, suppress=True, linewidth=88):
        pairs = [(name, written(x, None)) for name, x in inputs]
        for name, outcome in (
            ("yours", given),
            ("right", right_of(evidence.spec, case)),
        ):
            text = "\n".join(written(x, row) for x in outcome.arrays)
            pairs.append((name, outcome.error or text))
    return pairs


def written(value: object, row: list[int] | None) -> str:
    """Write a value; of a large array the row in which a number differs."""
    if isinstance(value, Table):
        return "a table of log-probabilities, by the number of ids and the last"
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return str(value)
    if value.size <= ELEMENTS:
        return f"{value}  {value.shape}"
    if row is None or len(row) >= value.ndim:
        return f"numbers in the shape {value.shape}"
    place = "".join(f"{i}, " for i in row)
    return f"[{place}:] of {value.shape}\n{value[tuple(row)]}"
