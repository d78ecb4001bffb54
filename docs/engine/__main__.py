"""The command line: `python -m engine`, a command, and pages."""

import argparse
import sys
from pathlib import Path

if not __package__:  # `python docs/engine`, where nothing put docs/ on the path
    sys.path[0] = str(Path(__file__).parents[1])

from engine import making
from engine.project import Project

WORK = {
    "generate": making.generate,
    "downloads": making.write_downloads,
    "outputs": making.rewrite_outputs,
}
COMMANDS = {
    "generate": "make figures, notebooks and downloads of changed pages",
    "downloads": "write the one-file code of each chapter, and run no page",
    "outputs": "write what the blocks print into the pages",
    "results": "keep the results in folders of runs, and write the page of results",
    "speed": "write the page of speed from what `make bench` kept",
    "families": "count all presets, and write the page of families",
    "lists": "write README's table of chapters",
    "book": "make an EPUB and a PDF of the core chapters from the built site",
    "release": "say what is new in the release that a tag names, or what forbids it",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does)
        if name in WORK or name == "results":
            what = "page" if name in WORK else "run"
            command.add_argument("paths", nargs="*", type=Path, metavar=what)
        if name == "families":
            told = "count only the presets that are not counted yet: seconds"
            command.add_argument("--new", action="store_true", help=told)
        if name == "release":
            command.add_argument("tag", help="as v0.2.0")
        if name == "book":
            for folder, told in (("site", "built"), ("dist", "to write into")):
                command.add_argument(f"--{folder}", type=Path, help=told)
    given = parser.parse_args(arguments)
    try:
        problems = _run(Project.find(Path.cwd()), given)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for problem in problems:
        print(problem, end="\n\n", file=sys.stderr)
    return 1 if problems else 0


def _run(project: Project, given: argparse.Namespace) -> list[str]:
    """Run a command; return what is wrong, or raise ValueError for what it is given."""
    if given.command == "lists":
        from engine.site.lists import write_readme

        print("README.md: written" if write_readme(project) else "as it was")
    elif given.command == "release":
        from engine.release import notes

        print(notes(project, given.tag), end="")
    elif given.command == "book":
        from engine.book import write as write_book

        site = given.site or project.root / "site"
        for made in write_book(project, site, given.dist or project.root / "dist"):
            print(project.relative(made))
    elif given.command == "results":
        from engine.results import write

        write(project.docs, given.paths)
    elif given.command == "speed":
        from engine.speed import write as write_speed

        write_speed(project.docs)
    elif given.command == "families":
        from engine.families import write as write_families

        write_families(project.docs, anew=not given.new)
    else:
        pages = [path.resolve() for path in given.paths]
        for path in pages:
            if path not in project.pages:
                raise ValueError(f"{project.relative(path)} is no page")
        return WORK[given.command](project, pages or None)
    return []


if __name__ == "__main__":
    sys.exit(main())
