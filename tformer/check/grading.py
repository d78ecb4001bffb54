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

LARGEST = 1 << 20  # bytes of a file
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
        optional = {"reason": self.reason, "note": self.note, "printed": self.printed}
        return said | {name: text for name, text in optional.items() if text}


def grade(runner: Runner, exercise: Exercise, path: Path, label: str = "") -> Grade:
    """Grade one file.

    Args:
        runner: what runs it.
        exercise: what it must do.
        path: of the file.
        label: how the file is called in what is said; the path, if not given.
    """
    label = label or str(path)
    try:
        source = _source(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Grade(label, "not run", reason=f"the file cannot be read: {why}")
    best: Grade | None = None
    for framework in _frameworks(source):
        found = _grade(runner, exercise, path, source, framework)
        if best is None or _raised(found) < _raised(best) or found.verdict == "right":
            best = found
        if found.evidence is None or best.verdict == "right":
            break  # it cannot be run, or need not be once more
        if not _raised(best) and not {"numpy", "torch"} <= _imports(source):
            break
    return replace(best, file=label) if best else Grade(label, "not run")


def _source(path: Path) -> str:
    """Read a file.

    Raises:
        ValueError: it is no text, or too long.
    """
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is longer than {LARGEST:,} bytes")
    if b"\0" in data:
        raise ValueError("it is no text")
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _frameworks(source: str) -> list[str]:
    """Say whose arrays to try first: torch's for a file that imports torch."""
    torch = _imports(source) & {"torch", "transformers"}
    return ["torch", "numpy"] if torch else ["numpy", "torch"]


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
