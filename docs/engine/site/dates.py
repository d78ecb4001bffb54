"""When git first and last saw a file: the dates of the feed."""

import datetime
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from engine.project import Project


@dataclass(frozen=True)
class Dates:
    """When a file came into the repository, and when it last changed there."""

    published: str
    updated: str


def dates_of(project: Project, files: Iterable[str]) -> dict[str, Dates]:
    """Return the dates of files in docs/; of what git does not know, those of today."""
    docs = project.relative(project.docs)
    command = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", "log"]
    command += ["--format=%x00%cI", "--name-only", "--relative", "--", docs]
    try:
        done = subprocess.run(
            command, cwd=project.root, capture_output=True, text=True, check=False
        )
        commits = done.stdout.split("\0")[1:]
    except OSError:  # there is no git
        commits = []
    known: dict[str, Dates] = {}
    for commit in commits:  # from the last to the first
        date, *names = filter(None, commit.split("\n"))
        moment = _utc(datetime.datetime.fromisoformat(date))
        for name in names:
            known[name] = Dates(
                moment, known[name].updated if name in known else moment
            )
    today = _utc(
        datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0)
    )
    return {file: known.get(f"{docs}/{file}", Dates(today, today)) for file in files}


def _utc(moment: datetime.datetime) -> str:
    """Return a moment in one time zone: so they can be compared as text."""
    return f"{moment.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
