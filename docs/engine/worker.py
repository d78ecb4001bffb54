"""Run pages in a process of their own, and make what the site takes from them."""

import contextlib
import dataclasses
import io
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from engine.cache import Cache
from engine.checks import output_problem, page_problems
from engine.failures import BlockFailed
from engine.figures import themed
from engine.lines import PageError
from engine.notebooks import Ran, notebook
from engine.page import Page
from engine.places import place_figures
from engine.project import Project
from engine.running import Result, Runner
from engine.standalone import standalone_files


@dataclass
class Outcome:
    """What came of a page; paths are relative to the root."""

    problems: list[str] = field(default_factory=list)
    failed: bool = False  # the page could not be run to its end
    found: int = 0  # blocks
    printed: dict[int, str] = field(default_factory=dict)  # by number of the block
    products: dict[str, str] = field(default_factory=dict)  # path and text
    inputs: list[str] = field(default_factory=list)  # files of the package
    seconds: float = 0.0

    @property
    def left_out(self) -> int:
        """How many blocks were left out of a run that came to its end."""
        return 0 if self.failed else self.found - len(self.printed)


def work(root: Path, paths: list[Path], cached: bool, connection: Connection) -> None:
    """Send the outcome of each page; this is where a new process begins.

    Args:
        root: the folder of the project.
        paths: of the pages.
        cached: whether blocks need not run again where their results still hold.
        connection: to send to.
    """
    project = Project(root)
    for path in paths:
        started = time.perf_counter()
        outcome, said = Outcome(), io.StringIO()
        with contextlib.redirect_stderr(said):  # progress bars and the like
            try:
                _make(Page(project, path), cached, outcome)
            except (BlockFailed, PageError) as error:
                outcome.failed = True
                outcome.problems.append(f"{error}\n{said.getvalue()}".strip())
        outcome.problems = [project.tidy(problem) for problem in outcome.problems]
        outcome.seconds = time.perf_counter() - started
        connection.send(outcome)
    connection.close()


def _make(page: Page, cached: bool, outcome: Outcome) -> None:
    outcome.found = len(page.blocks)
    outcome.problems += page_problems(page)
    ran = _results(page, cached)
    for block in page.blocks:
        if block.left_out() is None:
            outcome.printed[block.number] = ran.results[block.number].stdout
            problem = output_problem(block, ran.results[block.number])
            outcome.problems += [problem] if problem else []
    ran.placed = place_figures(page, ran.results)
    docs = page.project.docs
    products = {
        docs / "figures" / x.place.name: themed(x.svg, x.place.alt) for x in ran.placed
    }
    inputs = _used(page.project, ran.modules)
    if page.has_notebook:
        products[docs / "notebooks" / f"{page.name}.ipynb"] = notebook(ran)
    if page.is_chapter:
        for file in standalone_files(page):
            products[docs / "downloads" / file.name] = file.text
            inputs |= set(file.sources)
    relative = page.project.relative
    outcome.products = {relative(path): text for path, text in products.items()}
    outcome.inputs = sorted(map(relative, inputs))


def _results(page: Page, cached: bool) -> Ran:
    """Return what the blocks leave behind, from the cache if that still holds."""
    cache, project = Cache(page.project), page.project
    stored = cache.results(page) if cached else None
    if stored is not None:
        results = [Result(**result) for result in stored["results"]]
        return Ran(page, results, [], [project.root / x for x in stored["modules"]])
    with contextlib.closing(Runner(page)) as runner:
        ran = Ran(page, runner.results(), [], _imported(project))
    if cached:
        inputs = map(project.relative, _used(project, ran.modules))
        record = {
            "results": [dataclasses.asdict(result) for result in ran.results],
            "modules": [project.relative(path) for path in ran.modules],
        }
        cache.store_results(page, sorted(inputs), record)
    return ran


def _imported(project: Project) -> list[Path]:
    """Return the files of the package's modules that the page imported."""
    files = (
        getattr(module, "__file__", None)
        for name, module in sys.modules.items()
        if name.partition(".")[0] == project.package
    )
    return sorted({Path(file) for file in files if file})


def _used(project: Project, modules: list[Path]) -> set[Path]:
    """Return the files that a run with these modules may depend on."""
    data = {path for path in project.package_files() if path.suffix != ".py"}
    return {*modules, *data} if modules else set()
