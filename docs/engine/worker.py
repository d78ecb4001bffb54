"""Run one page in a process of its own, and make what the site takes from it."""

import contextlib
import io
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from engine.checks import output_problem, page_problems
from engine.failures import BlockFailed
from engine.figures import themed
from engine.lines import PageError
from engine.notebooks import Ran, notebook
from engine.page import Page
from engine.places import place_figures
from engine.project import Project
from engine.running import Runner
from engine.standalone import standalone_files


@dataclass
class Outcome:
    """What came of a page; paths are relative to the root."""

    problems: list[str] = field(default_factory=list)
    failed: bool = False  # the page could not be run to its end
    printed: dict[int, str] = field(default_factory=dict)  # by number of the block
    found: int = 0  # blocks
    left_out: int = 0
    products: dict[str, str] = field(default_factory=dict)  # path and text
    inputs: list[str] = field(default_factory=list)  # files of the package
    seconds: float = 0.0


def work(root: Path, path: Path, connection: Connection) -> None:
    """Run a page and send its outcome; this is where a new process begins."""
    started = time.perf_counter()
    outcome, said = Outcome(), io.StringIO()
    project = Project(root)
    with contextlib.redirect_stderr(said):  # progress bars and the like
        try:
            _run(Page(project, path), outcome)
        except (BlockFailed, PageError) as error:
            outcome.failed = True
            outcome.problems.append(f"{error}\n{said.getvalue()}".strip())
    outcome.problems = [project.tidy(problem) for problem in outcome.problems]
    outcome.seconds = time.perf_counter() - started
    connection.send(outcome)
    connection.close()


def _run(page: Page, outcome: Outcome) -> None:
    outcome.found = len(page.blocks)
    outcome.problems += page_problems(page)
    with contextlib.closing(Runner(page)) as runner:
        results = runner.results()
        modules = _imported(page.project)
    outcome.left_out = len(runner.left_out)
    for block in page.blocks:
        if block.number in runner.ran:
            outcome.printed[block.number] = results[block.number].stdout
            problem = output_problem(block, results[block.number])
            outcome.problems += [problem] if problem else []
    docs = page.project.docs
    ran = Ran(page, results, place_figures(page, results), modules)
    products = {
        docs / "figures" / x.place.name: themed(x.svg, x.place.alt) for x in ran.placed
    }
    inputs = set(modules)
    if modules:  # these may have read any of them
        files = page.project.package_files()
        inputs |= {path for path in files if path.suffix != ".py"}
    if page.is_chapter:
        products[docs / "notebooks" / f"{page.name}.ipynb"] = notebook(ran)
        for file in standalone_files(page):
            products[docs / "downloads" / file.name] = file.text
            inputs |= set(file.sources)
    relative = page.project.relative
    outcome.products = {relative(path): text for path, text in products.items()}
    outcome.inputs = sorted(map(relative, inputs))


def _imported(project: Project) -> list[Path]:
    """Return the files of the package's modules that the page imported."""
    files = (
        getattr(module, "__file__", None)
        for name, module in sys.modules.items()
        if name.partition(".")[0] == project.package
    )
    return sorted({Path(file) for file in files if file})
