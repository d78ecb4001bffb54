"""`tformer check`: a verdict on the reader's own code."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from tformer.check.exercises import EXERCISES, Exercise
from tformer.check.grading import grade
from tformer.check.running import SECONDS, Runner
from tformer.check.telling import address, tell
from tformer.cli.black_box import SECONDS as MODEL_SECONDS
from tformer.cli.black_box import check_model
from tformer.cli.check_chapter import asked_for, check_chapter
from tformer.files import sha256_of, write_json

KEPT = Path(".tformer-check.json")  # what was right, with the hash of the file
EVERY = 0.3  # seconds between two looks at a file


def check(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="An exercise; start writes the files to begin with; without it, "
            "all exercises are listed.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="What is checked; NAME.py of this folder if none is given.",
            show_default=False,
        ),
    ] = None,
    hint: Annotated[
        int | None, typer.Option(min=1, max=3, help="Print a hint; the third has code.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a file.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Check again whenever a file changes, until Ctrl-C."
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option("--all", help="Check all exercises of which NAME.py is here."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:FUNCTION",
            help="Ask a whole model, which FUNCTION of FILE returns or a folder holds: "
            "whether it sees the future, and what else shows from outside.",
        ),
    ] = None,
    seconds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=3600,
            help=f"How long one file may take: {SECONDS}, a model {MODEL_SECONDS}.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check your own code: write a part of the Transformer, and be told what you did.

    tformer check  ·  tformer check start rotary  ·  tformer check rotary

    An exercise of a chapter, by its number: tformer check masks 5 FILE

    tformer check --model my.py:make_model

    Exit codes: 0 all are right, 1 not all, 2 wrong usage.
    """
    given = files or []
    if model is not None:
        if name is not None or hint is not None or watch or every:
            raise typer.BadParameter("--model stands alone, or with --json")
        _leave(check_model(model, as_json, seconds or MODEL_SECONDS))
    seconds = seconds or SECONDS
    if every:
        if name is not None or hint is not None:
            raise typer.BadParameter("--all takes no exercise and no hint")
        _leave(_all(as_json, watch, seconds))
    elif name is None:
        if hint is not None or watch or as_json:
            raise typer.BadParameter("name the exercise", param_hint="NAME")
        _list()
    elif asked_for(name, given):
        _leave(check_chapter(name, given, hint, as_json, seconds))
    elif name == "start":
        if hint is not None or watch or as_json:
            raise typer.BadParameter("start takes exercises alone")
        _start([_exercise(each) for each in given])
    elif hint is not None:
        typer.echo(_hint(_exercise(name), hint))
    else:
        exercise = _exercise(name)
        pairs = [(exercise, Path(x)) for x in given or [f"{exercise.name}.py"]]
        _leave(_checked(pairs, as_json, watch, seconds))


def _leave(right: bool) -> None:
    raise typer.Exit(0 if right else 1)


def _exercise(name: str) -> Exercise:
    if name in EXERCISES:
        return EXERCISES[name]
    near = get_close_matches(name.removesuffix(".py"), EXERCISES, 1)
    said = f"did you mean {near[0]}?" if near else "tformer check lists them"
    raise typer.BadParameter(f"there is no exercise {name!r}: {said}")


def _list() -> None:
    """List the exercises, with what is done in this folder."""
    known = _progress()
    typer.echo("Exercises, in the order of the chapters:\n")
    for exercise in EXERCISES.values():
        mark = "begun" if Path(f"{exercise.name}.py").exists() else ""
        if state := known.get(exercise.name):
            same = state["sha256"] == _hash(Path(state["file"]))
            mark = "right" if state["verdict"] == "right" and same else "begun"
        chapter = exercise.chapter.partition("#")[0]
        typer.echo(f"  {mark:5}  {exercise.name:18} {chapter:17} {exercise.title}")
    typer.echo("\nBegin:  tformer check start rotary    Then:  tformer check rotary")


def _start(exercises: list[Exercise]) -> None:
    """Write files to begin with; what is there is never written over."""
    if not exercises:
        raise typer.BadParameter("name an exercise: tformer check start rotary")
    for exercise in exercises:
        path = Path(f"{exercise.name}.py")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(exercise.starter)
        except FileExistsError:
            said = f"{path} is there already, and stays as it is"
            raise ValueError(f"{said}: rename it to begin anew") from None
        typer.echo(f"{path} is written: {exercise.statement}")
        typer.echo(f"    {address(exercise.chapter)}")
        typer.echo(f"Then: tformer check {exercise.name}")


def _hint(exercise: Exercise, number: int) -> str:
    text = exercise.hints[number - 1]
    if not text:
        raise ValueError(f"there is no hint {number} of {exercise.name} yet")
    return text


def _all(as_json: bool, watch: bool, seconds: int) -> bool:
    pairs = [(x, Path(f"{x.name}.py")) for x in EXERCISES.values()]
    pairs = [(exercise, path) for exercise, path in pairs if path.exists()]
    if not pairs:
        said = "no file of an exercise is here: tformer check start NAME writes one"
        raise typer.BadParameter(said)
    return _checked(pairs, as_json, watch, seconds, several=True)


def _checked(
    pairs: list[tuple[Exercise, Path]],
    as_json: bool,
    watch: bool,
    seconds: int,
    several: bool = False,
) -> bool:
    """Check files, and once more whenever one changes; return whether all are right."""
    with Runner(seconds) as runner:
        verdicts: list[str] = []
        for exercise, path in _again(pairs) if watch else pairs:
            seen, found = _hash(path), grade(runner, exercise, path)
            verdicts.append(found.verdict)
            if as_json:
                named = {"exercise": exercise.name} if several else {}
                typer.echo(json.dumps(found.as_json() | named))
                continue
            if not path.exists() and path == Path(f"{exercise.name}.py"):
                typer.echo(
                    f"tformer check start {exercise.name} writes a file to begin"
                )
            typer.echo(tell(exercise, found))
            typer.echo() if watch or len(pairs) > 1 else None
            _keep(exercise, path, seen, found.verdict)
    right = verdicts.count("right")
    if right < len(verdicts):
        typer.echo(f"right: {right} of {len(verdicts)}", err=True)
    return right == len(verdicts)


def _again(
    pairs: Iterable[tuple[Exercise, Path]],
) -> Iterator[tuple[Exercise, Path]]:
    """Yield every file, and again when it changes; without an end."""
    seen: dict[Path, str] = {}
    while True:
        for exercise, path in pairs:
            now = _hash(path)
            if seen.get(path) != now:
                seen[path] = now
                yield exercise, path
        time.sleep(EVERY)


def _hash(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError:
        return ""


def _progress() -> dict[str, dict[str, str]]:
    """Read what was right in this folder; a file that is no such list is ignored."""
    try:
        known = json.loads(KEPT.read_text("utf-8"))
        fields = ("file", "sha256", "verdict")
        return {
            str(name): {key: str(state[key]) for key in fields}
            for name, state in known.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def _keep(exercise: Exercise, path: Path, seen: str, verdict: str) -> None:
    """Keep the verdict; where that cannot be written, nothing is kept."""
    state = {"file": str(path), "sha256": seen, "verdict": verdict}
    with suppress(OSError, UnicodeEncodeError):
        write_json(KEPT, _progress() | {exercise.name: state})
