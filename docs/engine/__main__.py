"""The command line: `python -m engine`, a command, and pages."""

import argparse
import sys
from pathlib import Path
from typing import Any

if not __package__:  # `python docs/engine`, where nothing put docs/ on the path
    sys.path[0] = str(Path(__file__).parents[1])

from engine import making
from engine.project import Project

Arguments = dict[str, dict[str, Any]]
PAGES: Arguments = {"pages": {"nargs": "*", "type": Path}}
WORK = {
    "generate": making.generate,
    "downloads": making.write_downloads,
    "outputs": making.rewrite_outputs,
}
COMMANDS: dict[str, tuple[str, Arguments]] = {
    "generate": ("make figures, notebooks and downloads of changed pages", PAGES),
    "downloads": ("write the one-file code of each chapter, and run no page", PAGES),
    "outputs": ("write what the blocks print into the pages", PAGES),
    "results": (
        "keep the results of runs, and write the page of results",
        {"runs": {"nargs": "*", "type": Path, "help": "folders of runs"}},
    ),
    "speed": ("write the page of speed from what `make bench` kept", {}),
    "lists": ("write README's table of chapters", {}),
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (does, takes) in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does)
        for argument, about in takes.items():
            command.add_argument(argument, **about)
    given = parser.parse_args(arguments)
    try:
        problems = _run(Project.find(Path.cwd()), given)
    except ValueError as error:
        parser.error(str(error))
    for problem in problems:
        print(problem, end="\n\n", file=sys.stderr)
    return 1 if problems else 0


def _run(project: Project, given: argparse.Namespace) -> list[str]:
    """Run a command; return what is wrong, or raise ValueError for what it is given."""
    if given.command == "lists":
        from engine.site.lists import write_readme

        print("README.md: written" if write_readme(project) else "as it was")
    elif given.command == "results":
        from engine.results import write

        write(project.docs, given.runs)
    elif given.command == "speed":
        from engine.speed import write as write_speed

        write_speed(project.docs)
    else:
        pages = [path.resolve() for path in given.pages]
        for path in pages:
            if path not in project.pages:
                raise ValueError(f"{project.relative(path)} is no page")
        return WORK[given.command](project, pages or None)
    return []


if __name__ == "__main__":
    sys.exit(main())
