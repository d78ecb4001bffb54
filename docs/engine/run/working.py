"""Run pages in processes of their own, and make what the site takes from them."""

import contextlib
import importlib
import io
import multiprocessing
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import (
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.copies import alone
from engine.copies.notebooks import Ran, notebooks
from engine.copies.standalone import standalone_files
from engine.pages.blocks import PageError
from engine.pages.checking import page_problems
from engine.pages.depth import core_blocks
from engine.pages.exercises import answers_of
from engine.pages.reading import Page
from engine.project import Project
from engine.run.compiling import BlockFailed
from engine.run.figures import place_figures, touching_problems
from engine.run.outputs import UNSEEDED, output_problem
from engine.run.running import Runner
from engine.run.style import finished

AT_ONCE = 2


@dataclass
class Outcome:
    """What came of a page; paths are relative to the root."""

    problems: list[str] = field(default_factory=list)
    failed: bool = False  # the page could not be run to its end
    printed: dict[int, str] = field(default_factory=dict)  # by block; what runs repeat
    products: dict[str, str] = field(default_factory=dict)  # path and text
    inputs: list[str] = field(default_factory=list)  # files of the package
    seconds: float = 0.0


def run_pages(pages: list[Page]) -> Iterator[tuple[Page, Outcome]]:
    """Yield the outcome of each page as it comes.

    Each gets a process that is forked from one that imported torch and matplotlib,
    which takes most of the time that a short page needs, and nothing of the project:
    every page imports the package anew, as it is now.
    """
    context = _context(pages)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = {pool.submit(_in_process, context, page, work): page for page in pages}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def core_alone(page: Page) -> list[str]:
    """Run the core of a page without its depth, and compare what it prints."""
    context = _context([page])
    return _in_process(context, page, work_core).problems


def copies_alone(page: Page) -> list[str]:
    """Run the code that a chapter embeds, as one file, where the package is not."""
    return _in_process(_context([page]), page, work_copies).problems


def _context(pages: list[Page]) -> Any:
    way = "spawn" if sys.platform == "win32" else "forkserver"
    context: Any = multiprocessing.get_context(way)
    shared = [__name__, "matplotlib.pyplot"]
    shared += ["torch"] if any(page.uses_torch for page in pages) else []
    context.set_forkserver_preload(shared)
    return context


def _in_process(context: Any, page: Page, does: "Work") -> Outcome:
    """Return the outcome of a page, whose process may die."""
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(does, page.project.root, page.path).result()
        except BrokenProcessPool:
            died = page.project.tidy(f"{page.top}: its process died")
            return Outcome([died], failed=True)


def work(root: Path, path: Path) -> Outcome:
    """Return the outcome of a page; this is where a new process begins."""
    return _outcome(root, path, _make)


def work_core(root: Path, path: Path) -> Outcome:
    """Return the outcome of the core of a page alone."""
    return _outcome(root, path, _run_core)


def work_copies(root: Path, path: Path) -> Outcome:
    """Return the outcome of the one-file copies of a page."""
    return _outcome(root, path, _run_copies)


Work = Callable[[Path, Path], Outcome]


def _outcome(root: Path, path: Path, does: Callable[[Page, Outcome], None]) -> Outcome:
    project, started = Project(root), time.perf_counter()
    outcome, said = Outcome(), io.StringIO()
    with contextlib.redirect_stderr(said):  # progress bars and the like
        try:
            does(Page(project, path), outcome)
        except (BlockFailed, PageError) as error:
            outcome.failed = True
            outcome.problems.append(f"{error}\n{said.getvalue()}".strip())
    outcome.problems = [project.tidy(problem) for problem in outcome.problems]
    outcome.seconds = time.perf_counter() - started
    return outcome


def _make(page: Page, outcome: Outcome) -> None:
    outcome.problems += page_problems(page)
    with contextlib.closing(Runner(page)) as runner:
        ran = all_of(runner)
        for block in page.blocks:
            if block.left_out is None:
                result = ran.results[block.number]
                problem = output_problem(block, result, runner.again)
                if not problem or UNSEEDED not in problem:
                    outcome.printed[block.number] = result.stdout
                answer = result.answered.problem if result.answered else None
                outcome.problems += [each for each in (problem, answer) if each]
    outcome.problems += touching_problems(ran.placed)
    outcome.products, outcome.inputs = made_of(ran)


def _run_core(page: Page, outcome: Outcome) -> None:
    with contextlib.closing(Runner(page)) as runner:
        blocks = core_blocks(page)
        for block, result in zip(blocks, runner.only(blocks), strict=True):
            if problem := output_problem(block, result, lambda _: None):
                outcome.problems.append(f"the core without its depth: {problem}")


def _run_copies(page: Page, outcome: Outcome) -> None:
    files = standalone_files(page)
    for name in _modules(page.project):
        del sys.modules[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for file in files:
            path = Path(folder, file.name)
            path.write_text(file.text, "utf-8")
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    alone.main(page.project.package, path)
            except SystemExit as error:  # a name that nothing defines
                outcome.problems.append(str(error))
            except Exception:  # noqa: BLE001  # whatever the code of a page raises
                outcome.problems.append(f"{file.name}: {traceback.format_exc()}")


def all_of(runner: Runner) -> Ran:
    """Run a page to its end, and return all that its blocks left behind."""
    page, results = runner.page, runner.results()
    asked = answers_of(page.project, page.name) if page.is_chapter else {}
    if asked:
        importlib.import_module(f"{page.project.package}.check")  # for its notebooks
    files = (getattr(x, "__file__", None) for x in _modules(page.project).values())
    modules = sorted({Path(file) for file in files if file})
    return Ran(page, results, place_figures(page, results), modules, asked)


def made_of(ran: Ran) -> tuple[dict[str, str], list[str]]:
    """Return the files that the site takes from a page, and what they hang on."""
    page, project = ran.page, ran.page.project
    products = {
        f"figures/{x.place.name}": finished(x.svg, x.place.alt) for x in ran.placed
    }
    inputs = set(ran.modules)
    if ran.modules:
        inputs |= {x for x in project.package_files() if _may_read(page, x)}
    if page.is_chapter:
        for name, text in notebooks(ran).items():
            products[f"notebooks/{name}.ipynb"] = text
        for file in standalone_files(page):
            products[f"downloads/{file.name}"] = file.text
            inputs |= set(file.sources)
    docs = project.relative(project.docs)
    texts = {f"{docs}/{file}": text for file, text in products.items()}
    return texts, sorted(map(project.relative, inputs))


def _may_read(page: Page, path: Path) -> bool:
    """Say whether a page may read a file of the package: data, but not all texts."""
    if "check" not in path.parts:
        return path.suffix != ".py"
    return path.suffix == ".toml" and path.stem in (page.name, "texts")


@contextlib.contextmanager
def package_imported_anew(project: Project) -> Iterator[None]:
    """Let a page import the package as it does in a process of its own."""
    before = _modules(project)
    for name in before:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in _modules(project):
            del sys.modules[name]
        sys.modules.update(before)


def _modules(project: Project) -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == project.package
    }
