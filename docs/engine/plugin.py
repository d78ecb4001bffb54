"""The pages as tests, on top of pytest-codeblocks.

pytest-codeblocks finds the Markdown files (`--codeblocks`); here each becomes a page of
the site, whose tests all go to one worker of pytest-xdist. They share one run of its
blocks, and any of them can be run alone: the blocks above it are run first. The session
ends with a count of all blocks.
"""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_codeblocks.plugin import (  # type: ignore[import-untyped]
    MarkdownFile,
    TestBlock,
)

from engine.copies.alone import problem_of
from engine.copies.standalone import standalone_files
from engine.pages.blocks import Block, PageError
from engine.pages.checking import page_problems
from engine.pages.reading import Page
from engine.project import Project
from engine.run.compiling import BlockFailed
from engine.run.figures import place_figures, touching_problems
from engine.run.outputs import output_problem
from engine.run.running import Runner

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling  # type: ignore[import-untyped]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Turn the Markdown files that pytest-codeblocks found into pages."""
    found = yield
    others = [each for each in found if not isinstance(each, MarkdownFile)]
    is_markdown = len(others) < len(found)
    # Other Markdown files are no pages of the site, or are meant to fail.
    if is_markdown and file_path in project_of(parent.config).pages:
        others.append(PageFile.from_parent(parent, path=file_path))
    return others


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "Scheduling | None":
    """Send a page to one worker, all else to whichever is free, as `load` does.

    Told by the node ids, since the marks of `loadgroup` do not reach every pytest.
    """
    from xdist.scheduler import LoadGroupScheduling

    class PageScheduling(LoadGroupScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file, _, _ = nodeid.partition("::")
            return file if file.endswith(".md") else str(super()._split_scope(nodeid))

    if config.getoption("dist") not in ("load", "loadgroup"):
        return None
    return PageScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many Python blocks the pages have, and what became of them."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    properties = (each for report in reports for each in report.user_properties)
    counts = [value for name, value in properties if name == COUNTS]
    if counts:
        found, run, left_out = (sum(column) for column in zip(*counts, strict=True))
        equal = "=" if found == run + left_out else "!="
        terminalreporter.write_line(
            f"pages: {len(counts)}, Python blocks: {found} found {equal} "
            f"{run} run + {left_out} left out with a reason"
        )


COUNTS = "python blocks"  # a property of the report: how many found, run, left out


def project_of(config: pytest.Config) -> Project:
    """Return the project that pytest runs in, read once."""
    return _project_at(config.rootpath)


@functools.cache
def _project_at(root: Path) -> Project:
    return Project.find(root)


class PageFails(Exception):
    """What is wrong with a page; the message is all there is to say."""


class PageFile(MarkdownFile):  # type: ignore[misc]
    """A page of the site."""

    page: Page

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests of the page."""
        self.project = project_of(self.config)
        try:
            self.page = Page(self.project, self.path)
            _ = self.page.blocks
        except PageError as error:
            problem = str(error)
            yield self._test("can be read", lambda _: [problem])
            return
        for block in self.page.blocks:
            origin = block.fence.opening.origin
            above = "" if origin.file == self.path else f"{origin.file.name} "
            item = BlockItem.from_parent(self, name=f"{above}line {origin.line}")
            item.obj = block
            yield item
        yield self._test("every block is run", every_block_is_run)
        yield self._test("the page", the_page)
        yield self._test("figures", figures)
        if self.page.is_chapter:
            yield self._test("one file alone", one_file_alone)

    @functools.cached_property
    def runner(self) -> Runner:
        """The run that all tests of the page share."""
        return Runner(self.page)

    def teardown(self) -> None:
        """Free what the blocks hold once the last test of the page is done."""
        if "runner" in vars(self):
            self.runner.close()

    def _test(self, name: str, check: Callable[["PageItem"], list[str]]) -> pytest.Item:
        item: PageItem = PageItem.from_parent(self, name=name)
        item.check = check
        return item


class _Tidy(pytest.Item):
    """A test whose failure is a message with places in it, not a traceback of ours."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        """Write the message, with paths from the root."""
        project = project_of(self.config)
        if isinstance(excinfo.value, PageFails | PageError | BlockFailed):
            return project.tidy(str(excinfo.value))
        return str(pytest.Item.repr_failure(self, excinfo))


class BlockItem(_Tidy, TestBlock):  # type: ignore[misc]
    """A Python block: it runs, and prints what the page shows."""

    parent: PageFile
    obj: Block

    def runtest(self) -> None:
        """Run the block, after those above it."""
        result = self.parent.runner.result(self.obj)
        reason = self.parent.runner.left_out.get(self.obj.number)
        if reason is not None:
            pytest.skip(reason)
        problem = output_problem(self.obj, result, self.parent.runner.again)
        if problem:
            raise PageFails(problem)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the fence."""
        return self.path, self.obj.line - 1, self.name


class PageItem(_Tidy):
    """A check of the page as a whole."""

    parent: PageFile
    check: Callable[["PageItem"], list[str]]

    def runtest(self) -> None:
        """Fail with all problems that the check found."""
        problems = self.check(self)
        if problems:
            raise PageFails("\n".join(problems))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the page."""
        return self.path, 0, self.name


def every_block_is_run(item: PageItem) -> list[str]:
    """Count the blocks, and what became of them."""
    page, runner = item.parent.page, item.parent.runner
    for block in page.blocks:
        with contextlib.suppress(BlockFailed):
            runner.result(block)
    found, run, left_out = len(page.blocks), len(runner.ran), len(runner.left_out)
    item.user_properties.append((COUNTS, (found, run, left_out)))
    problems = []
    if found != run + left_out:
        counts = f"{found} Python blocks found, but {run} run + {left_out} left out"
        problems.append(f"{page.top}: {counts}: one that fails stops its page")
    return problems


def figures(item: PageItem) -> list[str]:
    """Find the place of each figure, and labels that touch."""
    page, runner = item.parent.page, item.parent.runner
    return touching_problems(place_figures(page, runner.results()))


def the_page(item: PageItem) -> list[str]:
    """Check what the page says, shows and lacks, whatever its blocks do."""
    return page_problems(item.parent.page)


def one_file_alone(item: PageItem) -> list[str]:
    """Run the source that the chapter embeds where the package is not."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for file in standalone_files(item.parent.page):
            path = Path(folder, file.name)
            path.write_text(file.text, "utf-8")
            problems.append(problem_of(item.parent.project.package, path))
    return [problem for problem in problems if problem]
