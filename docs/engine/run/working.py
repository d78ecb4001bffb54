"""Run pages in processes of their own, and make what the site takes from them."""

import contextlib
import dataclasses
import io
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from engine.copies.notebooks import Ran, notebook
from engine.copies.standalone import standalone_files
from engine.pages.blocks import PageError
from engine.pages.checking import page_problems
from engine.pages.reading import Page
from engine.project import Project
from engine.run.cache import Cache
from engine.run.compiling import BlockFailed
from engine.run.figures import place_figures, report, themed, touching_problems
from engine.run.outputs import UNSEEDED, output_problem
from engine.run.running import Result, Runner, SecondRun


@dataclass
class Outcome:
    """What came of a page; paths are relative to the root."""

    problems: list[str] = field(default_factory=list)
    failed: bool = False  # the page could not be run to its end
    found: int = 0  # blocks
    printed: dict[int, str] = field(default_factory=dict)  # by number of the block
    unseeded: dict[int, str] = field(default_factory=dict)  # what no run repeats
    products: dict[str, str] = field(default_factory=dict)  # path and text
    inputs: list[str] = field(default_factory=list)  # files of the package
    figures: list[str] = field(default_factory=list)  # a line about each
    ran: bool = False  # its blocks, rather than that what they left still holds
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
    ran = _results(page, cached, outcome)
    with contextlib.closing(SecondRun(page)) as second:
        for block in page.blocks:
            if block.left_out() is None:
                result = ran.results[block.number]
                problem = output_problem(block, result, second.stdout)
                if problem and UNSEEDED in problem:
                    outcome.unseeded[block.number] = problem
                outcome.printed[block.number] = result.stdout
                outcome.problems += [problem] if problem else []
    ran.placed = place_figures(page, ran.results)
    outcome.problems += touching_problems(ran.placed)
    outcome.figures = [page.project.tidy(line) for line in report(ran.placed)]
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


def _results(page: Page, cached: bool, outcome: Outcome) -> Ran:
    """Return what the blocks leave behind, from the cache if that still holds."""
    cache, project = Cache(page.project), page.project
    stored = cache.results(page) if cached else None
    if stored is not None:
        results = [Result(**result) for result in stored["results"]]
        return Ran(page, results, [], [project.root / x for x in stored["modules"]])
    outcome.ran = True
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


AT_ONCE = 2


def run_pages(
    project: Project, pages: list[Page], *, cached: bool = True
) -> Iterator[tuple[Page, "Outcome"]]:
    """Yield the outcome of each page as it comes.

    Each page with Python gets a process that is forked from one that imported torch
    and matplotlib, which takes most of the time that a short page needs, and nothing of
    the project: every page imports the package anew, as it is now. With `cached`,
    blocks are not run again where what they left behind still holds.
    """
    context = _context(project, pages, cached)
    waiting = _jobs(pages)
    running: dict[Connection, tuple[list[Page], BaseProcess]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            job = waiting.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            arguments = project.root, [page.path for page in job], cached, sender
            process: BaseProcess = context.Process(
                target=work, args=arguments, daemon=True
            )
            process.start()
            sender.close()
            running[receiver] = job, process
        for ready in wait(list(running)):
            assert isinstance(ready, Connection)
            job, process = running[ready]
            page = job.pop(0)
            try:
                outcome = ready.recv()
            except EOFError:
                process.join()
                problem = f"its process died with exit code {process.exitcode}"
                outcome = Outcome([project.tidy(f"{page.top}: {problem}")], failed=True)
                waiting += [job] if job else []
                job = []
            if not job:
                process.join()
                del running[ready]
            yield page, outcome


def _jobs(pages: list[Page]) -> list[list[Page]]:
    """Give a process to each page with Python, and one to all others together."""
    alone = [[page] for page in pages if page.has_python]
    together = [page for page in pages if not page.has_python]
    return [*alone, together] if together else alone


def _context(
    project: Project, pages: list[Page], cached: bool
) -> ForkServerContext | SpawnContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    cache = Cache(project)
    to_run = [
        page
        for page in pages
        if page.has_python and not (cached and cache.results(page) is not None)
    ]
    context.set_forkserver_preload(preloaded(project, to_run))
    return context


def preloaded(project: Project, to_run: list[Page]) -> list[str]:
    """Name the modules that all pages share; Python says nothing of one not there."""
    names = [__name__]
    if to_run:
        names.append("matplotlib.pyplot")
        if project.needs_torch and any(project.package in page.text for page in to_run):
            names.append("torch")
    return names
