"""When git first and last saw a file: the dates of the feed."""

import datetime
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from engine.project import Project


@dataclass(frozen=True)
class Dates:
    """When a file came into the repository, and when it last changed there, in UTC."""

    published: str
    updated: str


def dates_of(project: Project, files: Iterable[str]) -> dict[str, Dates]:
    """Return the dates of files in docs/; of what git does not know, those of today."""
    docs = project.relative(project.docs)
    command = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", "log"]
    command += ["--format=%x00%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
    command += ["--name-only", "--relative", "--", docs]
    utc = {**os.environ, "TZ": "UTC"}
    try:
        done = subprocess.run(
            command, cwd=project.root, env=utc, capture_output=True, text=True
        )
        commits = done.stdout.split("\0")[1:]
    except OSError:  # there is no git
        commits = []
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for commit in commits:  # from the last to the first
        date, *names = filter(None, commit.split("\n"))
        first.update(dict.fromkeys(names, date))
        last = {**dict.fromkeys(names, date), **last}
    today = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT00:00:00Z}"
    paths = {file: f"{docs}/{file}" for file in files}
    return {
        file: Dates(first.get(path, today), last.get(path, today))
        for file, path in paths.items()
    }
