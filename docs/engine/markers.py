"""Snippet markers in the package: each start has one end, and each name one section."""

import re

from engine.lines import Origin
from engine.project import Project

_MARKER = re.compile(
    r"-+8<-+[ \t]+\[\s*(?P<kind>start|end)\s*:\s*(?P<name>[a-z][-\w]*)\s*\]",
    re.IGNORECASE,
)


def marker_problems(project: Project) -> list[str]:
    """Return what the site would include wrongly without a word.

    An end that is missing or misspelt includes all to the end of the file.
    """
    problems = []
    for path in project.package_files():
        if path.suffix == ".py":
            lines = path.read_text("utf-8").split("\n")
            numbered = [
                (Origin(path, n), x) for n, x in enumerate(lines, 1) if "8<-" in x
            ]
            problems += _unpaired(numbered)
    return problems


def _unpaired(lines: list[tuple[Origin, str]]) -> list[str]:
    problems = []
    open_at: dict[str, Origin] = {}
    closed: set[str] = set()
    for origin, line in lines:
        marker = _MARKER.search(line)
        if not marker:
            problems.append(f"{origin}: not a snippet marker: {line.strip()}")
            continue
        kind, name = marker["kind"].lower(), marker["name"]
        if kind == "start" and name in open_at.keys() | closed:
            problems.append(f"{origin}: a second section `{name}`")
        elif kind == "start":
            open_at[name] = origin
        elif name in open_at:
            del open_at[name]
            closed.add(name)
        else:
            problems.append(f"{origin}: no section `{name}` begins above this end")
    problems += [f"{where}: `{name}` never ends" for name, where in open_at.items()]
    return problems
