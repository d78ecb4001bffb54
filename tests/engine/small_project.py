"""What the tests of the engine do with a page of the small project."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from engine.pages.blocks import PageError
from engine.pages.checking import page_problems
from engine.pages.reading import Page
from engine.project import Project
from engine.run.compiling import BlockFailed
from engine.run.figures import place_figures
from engine.run.outputs import output_problem
from engine.run.running import Result, Runner

SMALL = Path(__file__).parent / "project"
Write = Callable[..., Page]  # the fixture `write`


def run(page: Page) -> list[Result]:
    """Run all blocks of a page."""
    with contextlib.closing(Runner(page)) as runner:
        return runner.results()


def problems_of(project: Project, path: Path) -> list[str]:
    """Return all that is wrong with a page, as the tests of pages find it."""
    problems = []
    try:
        page = Page(project, path)
        problems += page_problems(page)
        with contextlib.closing(Runner(page)) as runner:
            results = runner.results()
            for block in page.blocks:
                result = results[block.number]
                problems.append(output_problem(block, result, runner.again))
        place_figures(page, results)
    except (PageError, BlockFailed) as error:
        problems.append(str(error))
    return [project.tidy(problem) for problem in problems if problem]
