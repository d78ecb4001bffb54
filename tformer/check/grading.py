"""Grades readers' files: each runs in a process of its own; what comes is judged."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tformer.check.calling import Answer, Call
from tformer.check.evidence import Difference, Evidence, task_of
from tformer.check.exercises import Exercise
from tformer.check.judging import Verdict, judge_evidence
from tformer.check.running import Runner
from tformer.files import check_has_end

LARGEST = 1 << 20  # bytes of a file
LIBRARIES = ("numpy", "torch")  # whose arrays a function is given
DTYPES = ("float32", "bfloat16")  # narrower ones that an exercise asks for


@dataclass(frozen=True)
class Grade:
    """What is said of a file."""

    file: str
    verdict: str  # "right", "wrong", or "not run"
    judged: Verdict | None = None  # None if nothing was called
    reason: str = ""  # why it was not run
    note: str = ""  # what else is to say: which function was taken
    printed: str = ""
    evidence: Evidence | None = field(default=None, repr=False)
    source: str = field(default="", repr=False)  # what stands in the file

    def as_json(self) -> dict[str, object]:
        """Say it for programs."""
        said: dict[str, object] = {"file": self.file, "verdict": self.verdict}
        known = self.judged.mistakes if self.judged else ()
        said["mistakes"] = [
            {"id": x.id, "sentence": x.sentence, "chapter": x.chapter} for x in known
        ]
        differs = self.judged.differs if self.judged else None
        said["differs"] = differs._asdict() if differs else {}
        if self.judged and self.judged.together and len(known) > 1:
            said["together"] = True  # all were made; else one of them
        if self.judged and self.judged.partly:
            said["partly"] = True  # they do not explain all that differs
        optional = {"reason": self.reason, "note": self.note, "printed": self.printed}
        return said | {name: text for name, text in optional.items() if text}


def grade(runner: Runner, exercise: Exercise, path: Path) -> Grade:
    """Grade one file.

    Args:
        runner: what runs it.
        exercise: what it must do.
        path: of the file.
    """
    try:
        source = read_source(path)
    except ValueError as error:
        return Grade(str(path), "not run", reason=str(error))
    imported, best = _imports(source), Grade(str(path), "not run")
    torch_first = bool(imported & {"torch", "transformers"})
    for framework in sorted(LIBRARIES, reverse=torch_first):
        found = _grade(runner, exercise, path, source, framework)
        fewer = _raised(found) < _raised(best)
        if best.verdict == "not run" or fewer or found.verdict == "right":
            best = found
        if found.evidence is None or best.verdict == "right":
            break  # it cannot be run, or need not be once more
        if not _raised(best) and not {*LIBRARIES} <= imported:
            break
    return replace(best, file=str(path), source=source)


def read_source(path: Path) -> str:
    """Read a reader's file.

    Raises:
        ValueError: it cannot be read, has no end, is no text, or is too long.
    """
    try:
        check_has_end(path)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"it is longer than {LARGEST:,} bytes")
        if b"\0" in data:
            raise ValueError("it is no text")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"the file cannot be read: {why}") from error


def _imports(source: str) -> set[str]:
    """Name the packages that a file imports."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = [x.module or "" for x in nodes if isinstance(x, ast.ImportFrom)]
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.partition(".")[0] for name in names}


def _raised(grade: Grade) -> float:
    """Say in which part of the calls it raised; more than all if there were none."""
    if grade.evidence is None:
        return 2.0
    outcomes = grade.evidence.outcomes.values()
    return sum(x.error is not None for x in outcomes) / max(1, len(outcomes))


def _grade(
    runner: Runner, exercise: Exercise, path: Path, source: str, framework: str
) -> Grade:
    spec = exercise.spec
    task = task_of(spec, framework, exercise.cases)
    dtypes = tuple(dtype for dtype in task.dtypes if dtype in DTYPES)
    task = replace(task, dtypes=dtypes, file=str(path.resolve()))
    reply = runner.run(source, exercise.function, exercise.arguments, task)
    if reply.answers is None:
        printed = reply.printed
        return Grade("", "not run", None, reply.failed, reply.note, printed)
    answers = _normal(exercise, reply.answers)
    evidence = Evidence(spec, task, answers)
    if reply.ended:
        done = [call for call in task.calls if call not in answers]
        found = Difference("time", done[0].case, reply.ended)
        stopped = Verdict(spec.name, found, ())
        return Grade("", "wrong", stopped, "", reply.note, reply.printed)
    try:
        verdict = judge_evidence(evidence)
    except Exception as error:  # noqa: BLE001 - of ours: other files still get their verdicts
        why = f"what it returned could not be judged ({type(error).__name__})"
        return Grade("", "not run", None, why, reply.note, reply.printed)
    word = "right" if verdict.right else "wrong"
    return Grade("", word, verdict, "", reply.note, reply.printed, evidence)


def _normal(exercise: Exercise, answers: Mapping[Call, Answer]) -> dict[Call, Answer]:
    """Take from what came back what is free to choose."""
    normal = exercise.spec.normal
    return {
        call: replace(
            answer,
            outcome=replace(
                answer.outcome, arrays=tuple(normal(x) for x in answer.outcome.arrays)
            ),
        )
        for call, answer in answers.items()
    }
