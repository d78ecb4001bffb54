"""The command line: `python -m engine`, a command, and pages."""

import argparse
import sys
from pathlib import Path

if not __package__:  # `python docs/engine`, where nothing put docs/ on the path
    sys.path[0] = str(Path(__file__).parents[1])

from engine.project import Project


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in (
        ("generate", "make figures, notebooks and downloads of the pages that changed"),
        ("downloads", "write the one-file code of each chapter, and run no page"),
        ("outputs", "write what the blocks print into the pages"),
        ("check", "run the pages, changed or not, and write nothing"),
        ("alone", "run notebooks and downloads where the package is not"),
    ):
        command = commands.add_parser(name, help=does, description=does)
        command.add_argument(
            "pages", nargs="*", type=Path, help="all, if none is given"
        )
    does = "keep the results of runs, and write the page of results"
    results = commands.add_parser("results", help=does, description=does)
    results.add_argument("runs", nargs="*", type=Path, help="folders of runs")
    does = "write a new chapter, and put it where chapters are listed"
    chapter = commands.add_parser("chapter", help=does, description=does)
    chapter.add_argument("name", help="of the file: rms-norm")
    chapter.add_argument("module", help="what it teaches: tformer/nn/norm.py")
    chapter.add_argument("--after", help="the chapter before it; else the last")
    does = "write README's table of chapters"
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
        from engine.lists import write_readme

        print("README.md: written" if write_readme(project) else "README.md: as it was")
        return 0
    if options.command == "results":
        from engine.results import write

        write(project.docs, options.runs)
        return 0
    pages = [path.resolve() for path in options.pages] or None
    for path in pages or []:
        if path not in project.pages:
            parser.error(f"{project.relative(path)} is no page of this project")
    problems = _run(options.command, project, pages)
    for problem in problems:
        print(problem, end="\n\n", file=sys.stderr)
    return 1 if problems else 0


def _run(command: str, project: Project, pages: list[Path] | None) -> list[str]:
    # Imported when needed: `generate` is quick where nothing has changed.
    if command == "generate":
        from engine.making import generate

        return generate(project, pages)
    if command == "downloads":
        from engine.making import write_downloads

        return write_downloads(project, pages)
    if command == "outputs":
        from engine.making import rewrite_outputs

        return rewrite_outputs(project, pages)
    from engine.making import check, run_alone

    return check(project, pages) if command == "check" else run_alone(project, pages)


if __name__ == "__main__":
    sys.exit(main())
