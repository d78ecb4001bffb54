"""The command line: `python -m engine`, a command, and pages."""

import argparse
import sys
from pathlib import Path

if not __package__:  # `python docs/engine`, where nothing put docs/ on the path
    sys.path[0] = str(Path(__file__).parents[1])

from engine.project import Project

COMMANDS = {  # on pages; all, if none is given
    "generate": "make figures, notebooks and downloads of the pages that changed",
    "downloads": "write the one-file code of each chapter, and run no page",
    "outputs": "write what the blocks print into the pages",
    "figures": "say of each figure how large it is, and what it lacks",
    "check": "run the pages, changed or not, and write nothing",
    "alone": "run notebooks and downloads where the package is not",
}
ON_ONE_PAGE = {
    "serve": "serve one page, and build it again at each edit",
    "look": "take four pictures of a page, into .cache/look",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument("pages", nargs="*", type=Path)
    for name, does in ON_ONE_PAGE.items():
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument("pages", nargs=1, type=Path, metavar="page")
    does = "say which pages show code of a file, or of a definition in it"
    command = commands.add_parser("uses", help=does, description=does)
    command.add_argument("asked", metavar="FILE[:NAME]")
    does = "keep the results of runs, and write the page of results"
    results = commands.add_parser("results", help=does, description=does)
    results.add_argument("runs", nargs="*", type=Path, help="folders of runs")
    does = "write the page of speed from what `make bench` kept"
    commands.add_parser("speed", help=does, description=does)
    does = "write a new chapter, and put it where chapters are listed"
    chapter = commands.add_parser("chapter", help=does, description=does)
    chapter.add_argument("name", help="of the file: rms-norm")
    chapter.add_argument("module", help="what it teaches: tformer/nn/norm.py")
    chapter.add_argument("--after", help="the chapter before it; else the last")
    does = "write README's table, the links from chapter to chapter, and their numbers"
    commands.add_parser("lists", help=does, description=does)
    options = parser.parse_args(arguments)
    project = Project.find(Path.cwd())
    if options.command == "chapter":
        from engine.chapter import make_chapter

        try:
            new = make_chapter(project, options.name, options.module, options.after)
        except ValueError as error:
            parser.error(str(error))
        print("\n".join(new))
        return 0
    if options.command == "lists":
        from engine.pages.numbers import write_numbers
        from engine.site.lists import write_links, write_readme

        written = [*write_links(project), *["README.md"] * write_readme(project)]
        written += write_numbers(project)
        print("\n".join(f"{file}: written" for file in written) or "all as it was")
        return 0
    if options.command == "results":
        from engine.results import write

        write(project.docs, options.runs)
        return 0
    if options.command == "speed":
        from engine.speed import write as write_speed

        write_speed(project.docs)
        return 0
    if options.command == "uses":
        return _uses(project, options.asked)
    pages = [path.resolve() for path in options.pages] or None
    for path in pages or []:
        if path not in project.pages:
            parser.error(f"{project.relative(path)} is no page of this project")
    if options.command in ON_ONE_PAGE and pages:
        if pages[0] not in project.site_pages:
            parser.error(f"{project.relative(pages[0])} is no page of the site")
        return _one(options.command, project, pages[0])
    return _told(_run(options.command, project, pages))


def _told(problems: list[str]) -> int:
    for problem in problems:
        print(problem, end="\n\n", file=sys.stderr)
    return 1 if problems else 0


def _run(command: str, project: Project, pages: list[Path] | None) -> list[str]:
    from engine import making

    return {
        "generate": making.generate,
        "downloads": making.write_downloads,
        "outputs": making.rewrite_outputs,
        "figures": making.list_figures,
        "check": making.check,
        "alone": making.run_alone,
    }[command](project, pages)


def _one(command: str, project: Project, page: Path) -> int:
    from engine.looking import look, serve

    if command == "serve":
        return serve(project, page)
    return _told(look(project, page))


def _uses(project: Project, asked: str) -> int:
    from engine.looking import uses
    from engine.making import read_pages

    pages, problems = read_pages(project, project.pages)
    try:
        print("\n".join(uses(project, pages, asked) or [f"no page shows {asked}"]))
    except ValueError as error:
        problems = [str(error)]
    return _told(problems)


if __name__ == "__main__":
    sys.exit(main())
