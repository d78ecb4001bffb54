"""Look at an answer to an exercise of a chapter: `check("masks", 5, reaches)`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from tformer.check import chapter_sums, chapter_words  # noqa: F401
from tformer.check.asked import Exercise, exercises, texts
from tformer.check.chapter_functions import CHAPTER_SPECS
from tformer.check.judging import Verdict, judge
from tformer.check.spec import SPECS

LETTERS = "abcdefgh"  # of what there is to choose from


@dataclass(frozen=True)
class Checked:
    """What was found of an answer; a notebook shows its text."""

    exercise: str  # "masks 5"
    right: bool | None  # None where nothing can be said
    text: str
    verdict: Verdict | None = None  # of a function

    def __repr__(self) -> str:
        return self.text


def check(chapter: str, number: int, answer: object = ...) -> Checked:
    """Say whether an answer is right; if not, what led to it, or a first hint.

    Args:
        chapter: as in the address of its page: "masks".
        number: of the exercise.
        answer: a number, an array or a tensor; where several are asked for, a tuple of
            them; a letter, where there is a choice; or a function. Without it, or with
            `...`, what is asked is said.

    Raises:
        ValueError: there is no such chapter, or no such exercise in it.
    """
    asked = exercises(chapter)
    if number not in asked:
        raise ValueError(f"number ({number!r}) must be one of {[*asked]} in {chapter}")
    exercise = asked[number]
    if exercise.kind == "open":
        return Checked(exercise.title, None, exercise.asks)
    if answer is ... or _has_gaps(answer):
        return Checked(exercise.title, None, todo(exercise))
    if exercise.kind == "function":
        return _of_function(exercise, answer)
    told = _choice(exercise, answer) if exercise.options else _values(exercise, answer)
    return Checked(exercise.title, *told)


def _has_gaps(answer: object) -> bool:
    return isinstance(answer, tuple) and any(each is ... for each in answer)


def todo(exercise: Exercise) -> str:
    """Say what is to be handed in."""
    lines = [exercise.asks]
    lines += [f"{a}) {x.says}" for a, x in zip(LETTERS, exercise.options, strict=False)]
    if len(exercise.fields) > 1 or not exercise.asks:
        lines += [f"- {field.asks}" for field in exercise.fields]
    return "\n".join(line for line in lines if line)


def _choice(exercise: Exercise, answer: object) -> tuple[bool | None, str]:
    word = str(answer).strip().casefold()
    for letter, option in zip(LETTERS, exercise.options, strict=False):
        if word in (letter, f"{letter})", option.says.casefold()):
            said = texts("check")["right" if option.right else "wrong"]
            return option.right, f"{said} {option.told}".strip()
    letters = ", ".join(LETTERS[: len(exercise.options)])
    return None, texts("check")["no_letter"].format(letters, answer)


def _values(exercise: Exercise, answer: object) -> tuple[bool | None, str]:
    fields = exercise.fields
    given: Sequence[object] = [answer]
    if len(fields) > 1:
        given = list(answer) if hasattr(answer, "__iter__") else [answer]
        if len(given) != len(fields):
            asks = "; ".join(field.asks for field in fields)
            said = texts("check")["several"]
            return None, said.format(len(fields), asks, len(given))
    found = [field.wrong_with(x) for field, x in zip(fields, given, strict=True)]
    if not any(told is not None for told in found):
        return True, texts("check")["right"]
    if len(fields) == 1:
        return False, f"{texts('check')['wrong']} {found[0] or exercise.hint}"
    lines = []
    for field, told in zip(fields, found, strict=True):
        state = texts("check")["right" if told is None else "wrong"]
        lines.append(f"{field.asks}: {state} {told or ''}".strip())
    lines += [exercise.hint] if "" in found else []
    return False, "\n".join(lines)


def _of_function(exercise: Exercise, answer: object) -> Checked:
    if not callable(answer):
        said = texts("check")["no_function"].format(exercise.name, repr(answer)[:60])
        return Checked(exercise.title, None, f"{said} {exercise.asks}")
    try:
        verdict = _judged(exercise, answer)
    except ValueError as error:  # its signature fits no case
        return Checked(exercise.title, False, f"{error}. {exercise.asks}")
    if verdict.right:
        return Checked(exercise.title, True, texts("check")["right"], verdict)
    text = str(verdict)
    if not verdict.mistakes and exercise.hint:
        text += f"\n{exercise.hint}"
    return Checked(exercise.title, False, text, verdict)


def _judged(exercise: Exercise, function: Callable[..., object]) -> Verdict:
    """Judge with tensors and with NumPy's arrays; the kinder verdict counts."""
    spec = CHAPTER_SPECS.get(exercise.spec) or SPECS[exercise.spec]
    verdicts = []
    for framework in ["torch", "numpy"] if find_spec("torch") else ["numpy"]:
        with warnings.catch_warnings():  # of one library about the other's arrays
            warnings.simplefilter("ignore")
            verdicts.append(judge(spec, function, framework))
        if verdicts[-1].right:
            break
    return max(verdicts, key=_kindness)


def _kindness(verdict: Verdict) -> tuple[bool, bool, bool]:
    found = verdict.differs
    raised = found is not None and found.kind == "error"
    return verdict.right, bool(verdict.mistakes), not raised
