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
PAGE: Arguments = {"pages": {"nargs": 1, "type": Path, "metavar": "page"}}
COMMANDS: dict[str, tuple[str, Arguments]] = {
    "generate": ("make figures, notebooks and downloads of changed pages", PAGES),
    "downloads": ("write the one-file code of each chapter, and run no page", PAGES),
    "outputs": ("write what the blocks print into the pages", PAGES),
    "figures": ("say of each figure how large it is, and what it lacks", PAGES),
    "check": ("run the pages, changed or not, and write nothing", PAGES),
    "alone": ("run notebooks and downloads where the package is not", PAGES),
    "serve": ("serve one page, and build it again at each edit", PAGE),
    "look": ("take four pictures of a page, into .cache/look", PAGE),
    "uses": (
        "say which pages show code of a file, or of a definition in it",
        {"asked": {"metavar": "FILE[:NAME]"}},
    ),
    "results": (
        "keep the results of runs, and write the page of results",
        {"runs": {"nargs": "*", "type": Path, "help": "folders of runs"}},
    ),
    "speed": ("write the page of speed from what `make bench` kept", {}),
    "chapter": (
        "write a new chapter, and put it where chapters are listed",
        {
            "name": {"help": "of the file: rms-norm"},
            "module": {"help": "what it teaches: tformer/nn/norm.py"},
            "--after": {"help": "the chapter before it; else the last"},
        },
    ),
    "lists": ("write README's table, the links to the next chapter, the numbers", {}),
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
    if given.command == "chapter":
        from engine.chapter import make_chapter

        print(*make_chapter(project, given.name, given.module, given.after), sep="\n")
    elif given.command == "lists":
        from engine.site.lists import write_links, write_readme

        written = [*write_links(project), *["README.md"] * write_readme(project)]
        print("\n".join(f"{file}: written" for file in written) or "all as it was")
    elif given.command == "results":
        from engine.results import write

        write(project.docs, given.runs)
    elif given.command == "speed":
        from engine.speed import write as write_speed

        write_speed(project.docs)
    elif given.command == "uses":
        from engine.looking import uses

        pages, problems = making.read_pages(project, project.pages)
        found = uses(project, pages, given.asked)
        print("\n".join(found or [f"no page shows {given.asked}"]))
        return problems
    else:
        return _on_pages(project, given.command, [x.resolve() for x in given.pages])
    return []


def _on_pages(project: Project, command: str, pages: list[Path]) -> list[str]:
    known = project.site_pages if command in ("serve", "look") else project.pages
    for path in pages:
        if path not in known:
            raise ValueError(f"{project.relative(path)} is no page for `{command}`")
    if command in ("serve", "look"):
        from engine.looking import look, serve

        return {"serve": serve, "look": look}[command](project, pages[0])
    work = {
        "generate": making.generate,
        "downloads": making.write_downloads,
        "outputs": making.rewrite_outputs,
        "figures": making.list_figures,
        "check": making.check,
        "alone": making.run_alone,
    }[command]
    return work(project, pages or None)


if __name__ == "__main__":
    sys.exit(main())
