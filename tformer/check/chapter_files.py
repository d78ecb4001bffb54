"""A file with an answer to an exercise of a chapter: run apart, then judged."""

import re
from dataclasses import dataclass
from pathlib import Path

from tformer.check.answers import Checked, check, todo
from tformer.check.asked import Exercise as Asked
from tformer.check.calling import Array, Call, Case, Task
from tformer.check.chapter_functions import CHAPTER_SPECS
from tformer.check.exercises import Exercise
from tformer.check.grading import Grade, grade, read_source
from tformer.check.running import Runner
from tformer.check.spec import SPECS, Spec

# Behind the reader's own lines: what they answer becomes arrays, a word its letters.
_READ = """

def _answer_of_the_exercise():
    import numpy
    if isinstance({name}, str):
        return [ord(letter) for letter in {name}]
    parts = {name} if isinstance({name}, tuple) else ({name},)
    return tuple(x if hasattr(x, "detach") else numpy.array(x) for x in parts)
"""


@dataclass(frozen=True)
class FunctionOfChapter(Exercise):
    """An exercise of a chapter that asks for a function."""

    asked: Asked

    @property
    def spec(self) -> Spec:
        """What judges it."""
        return CHAPTER_SPECS.get(self.asked.spec) or SPECS[self.asked.spec]


def exercise_of(asked: Asked) -> FunctionOfChapter:
    """Make of a function that a chapter asks for an exercise of the command."""
    head = re.search(r"\b(\w+\(.*?\)):", asked.asks)
    starter = f"def {head[1] if head else f'{asked.name}()'}:\n"
    section = f"{asked.chapter}#exercises"
    hints = (asked.hint,)
    return FunctionOfChapter(
        asked.title, asked.title, section, asked.asks, starter, hints, asked
    )


def look(runner: Runner, asked: Asked, path: Path) -> tuple[Grade, Checked | None]:
    """Look at a file; what is said of an answer that is no function comes beside."""
    if asked.kind == "function":
        return grade(runner, exercise_of(asked), path), None
    try:
        source = read_source(path)
    except ValueError as error:
        return Grade(str(path), "not run", reason=str(error)), None
    task = Task((Case("the answer", ()),), (), "numpy", file=str(path.resolve()))
    reading = source + _READ.format(name=asked.name)
    reply = runner.run(reading, "_answer_of_the_exercise", [], task)
    answer = (reply.answers or {}).get(Call("the answer"))
    failed = reply.failed or reply.ended
    if answer and (error_of := answer.outcome.error):
        failed = f"{asked.name} cannot be read: {error_of}"
        if error_of.startswith(f"NameError: name '{asked.name}' is not"):
            failed = f"there is no {asked.name} in the file. {todo(asked)}"
    if failed or answer is None:
        reason = failed.rstrip(".")
        return Grade(str(path), "not run", None, reason, printed=reply.printed), None
    arrays = answer.outcome.arrays
    given: object = arrays[0] if len(arrays) == 1 else arrays
    if asked.options:
        given = _word(arrays[0])
    said = check(asked.chapter, asked.number, given)
    word = {True: "right", False: "wrong", None: "not run"}[said.right]
    return Grade(str(path), word, printed=reply.printed), said


def _word(letters: Array) -> object:
    try:
        return "".join(map(chr, letters.ravel().tolist()))
    except (TypeError, ValueError, OverflowError):
        return letters  # it was no word


def as_json(asked: Asked, found: Grade, said: Checked | None) -> dict[str, object]:
    """Say it for programs."""
    known: dict[str, object] = found.as_json() | {"exercise": asked.title}
    if said is not None and said.right is not True:
        sentence = {
            "id": "",
            "sentence": said.text,
            "chapter": f"{asked.chapter}#exercises",
        }
        known["mistakes"] = [sentence]
    return known
