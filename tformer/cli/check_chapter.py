"""`tformer check masks 5 my.py`: an exercise of a chapter."""

import json
from pathlib import Path

import typer

from tformer.check.answers import todo
from tformer.check.asked import Exercise, chapters, exercises
from tformer.check.chapter_files import as_json, exercise_of, look
from tformer.check.exercises import EXERCISES
from tformer.check.running import Runner
from tformer.check.telling import tell


def asked_for(name: str | None, files: list[str]) -> bool:
    """Say whether an exercise of a chapter is meant, by its number, or all of them."""
    if name not in chapters():
        return False
    return files[0].isdecimal() if files else name not in EXERCISES


def check_chapter(
    chapter: str, given: list[str], hint: int | None, in_json: bool, seconds: int
) -> bool:
    """Look at answers to one exercise; return whether all are right."""
    if not given:
        _list(chapter)
        return True
    number, *files = given
    asked = exercises(chapter).get(int(number))
    if asked is None:
        there = ", ".join(map(str, exercises(chapter)))
        raise typer.BadParameter(f"{chapter} has the exercises {there}, not {number}")
    if hint is not None:
        if hint > 1 or not asked.hint:
            raise ValueError(f"there is no hint {hint} of {asked.title}")
        typer.echo(asked.hint)
        return True
    if asked.kind == "open" or not files:
        typer.echo(_what(asked))
        return True
    right = True
    with Runner(seconds) as runner:
        for path in map(Path, files):
            found, said = look(runner, asked, path)
            right &= found.verdict == "right"
            if in_json:
                typer.echo(json.dumps(as_json(asked, found, said)))
            elif said is not None:
                typer.echo(f"{path}: {said.text}")
            elif asked.kind == "function":
                typer.echo(tell(exercise_of(asked), found))
            else:
                typer.echo(f"{path}: {found.verdict}\n{found.reason}.")
    return right


def _list(chapter: str) -> None:
    for asked in exercises(chapter).values():
        typer.echo(f"{asked.title}  {asked.kind:8}  {todo(asked).splitlines()[0]}")


def _what(asked: Exercise) -> str:
    """Say what a file must hold."""
    if asked.kind == "open":
        return f"{asked.title} is open, and judged by you. {asked.asks}"
    what = "a function" if asked.kind == "function" else "a variable"
    example = f"tformer check {asked.title} FILE"
    return f"{todo(asked)}\nWrite {what} {asked.name} into a file. Then: {example}"
