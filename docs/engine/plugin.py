"""The pages as tests, on top of pytest-codeblocks.

pytest-codeblocks finds the Markdown files (`--codeblocks`); here each becomes a page of
the site. Its tests share one run of its blocks, so `--dist loadfile` gives them to one
worker of pytest-xdist. Any of them can be run alone: the blocks above it are run first.
The session ends with a count of all blocks.
"""

import contextlib
import functools
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from pytest_codeblocks.plugin import MarkdownFile  # type: ignore[import-untyped]

from engine.pages.blocks import Block, PageError
from engine.pages.checking import page_problems
from engine.pages.reading import Page
from engine.project import Project
from engine.run.cache import Cache
from engine.run.compiling import BlockFailed
from engine.run.figures import place_figures, touching_problems
from engine.run.outputs import output_problem
from engine.run.running import Runner
from engine.run.working import (
    all_of,
    copies_alone,
    core_alone,
    made_of,
    package_imported_anew,
)


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many Python blocks the pages have, and what became of them."""
    stats = terminalreporter.stats
    reports = [*stats.get("passed", []), *stats.get("failed", [])]
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


_project_at = functools.cache(Project.find)


def project_of(config: pytest.Config) -> Project:
    """Return the project that pytest runs in, read once."""
    return _project_at(config.rootpath)


class PageFile(MarkdownFile):  # type: ignore[misc]
    """A page of the site."""

    page: Page
    to_pass: set[str]  # names of its tests, until they do

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests of the page."""
        self.to_pass = set()
        try:
            self.page = Page(project_of(self.config), self.path)
            _ = self.page.blocks, self.page.depths
        except PageError as error:
            problem = str(error)
            yield self._test("can be read", lambda _: [problem])
            return
        for block in self.page.blocks:
            origin = block.fence.opening.origin
            above = "" if origin.file == self.path else f"{origin.file.name} "
            check = functools.partial(block_problems, block=block)
            yield self._test(f"{above}line {origin.line}", check, block.line)
        yield self._test("every block is run", every_block_is_run)
        yield self._test("the page", lambda item: page_problems(item.parent.page))
        yield self._test("figures", figures)
        if self.page.is_chapter:
            yield self._test("one file alone", one_file_alone)
        if self.page.depths:
            core = self._test("the core alone", core_runs_alone)
            if not self.asked_for:
                core.add_marker(pytest.mark.nightly)
                self.to_pass.discard(core.name)
            yield core

    @property
    def asked_for(self) -> bool:
        """Whether the command line names the page, and not a folder with all."""
        invoked = self.config.invocation_params.dir
        names = (name.partition("::")[0] for name in self.config.args)
        return self.path in {(invoked / name).resolve() for name in names}

    @functools.cached_property
    def runner(self) -> Runner:
        """The run that all tests of the page share."""
        self.leaving = contextlib.ExitStack()
        self.leaving.enter_context(package_imported_anew(self.page.project))
        runner = Runner(self.page)
        self.leaving.callback(runner.close)
        return runner

    def teardown(self) -> None:
        """Keep what the site takes from a page in order; free what the blocks hold."""
        if "runner" not in vars(self):
            return
        with self.leaving:
            # The clock of a page that is watched by pytest is not the reader's.
            if not self.to_pass and not self.page.measures_time:
                made, inputs = made_of(all_of(self.runner))
                Cache(self.page.project).store(self.page, inputs, made)

    def _test(self, name: str, check: "Check", line: int = 1) -> pytest.Item:
        item: PageItem = PageItem.from_parent(self, name=name)
        item.check, item.line = check, line
        self.to_pass.add(name)
        return item


class PageItem(pytest.Item):
    """A block or a check of a page; it fails with messages, not a traceback of ours."""

    parent: PageFile
    check: "Check"
    line: int

    def runtest(self) -> None:
        """Fail with all problems that the check found, paths as from the root."""
        try:
            problems = self.check(self)
        except (PageError, BlockFailed) as error:
            problems = [str(error)]
        if problems:
            message = project_of(self.config).tidy("\n".join(problems))
            pytest.fail(message, pytrace=False)
        self.parent.to_pass.discard(self.name)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the page, and the fence of a block."""
        return self.path, self.line - 1, self.name


Check = Callable[[PageItem], list[str]]


def block_problems(item: PageItem, block: Block) -> list[str]:
    """Run a block after those above it, and compare what it prints to the page."""
    runner = item.parent.runner
    result = runner.result(block)
    if block.number in runner.left_out:
        item.parent.to_pass.discard(item.name)
        pytest.skip(runner.left_out[block.number])
    problem = output_problem(block, result, runner.again)
    answer = result.answered.problem if result.answered else None
    return [each for each in (problem, answer) if each]


def every_block_is_run(item: PageItem) -> list[str]:
    """Count the blocks, and what became of them."""
    page, runner = item.parent.page, item.parent.runner
    for block in page.blocks:
        with contextlib.suppress(BlockFailed):
            runner.result(block)
    found, run, left_out = len(page.blocks), len(runner.ran), len(runner.left_out)
    item.user_properties.append((COUNTS, (found, run, left_out)))
    if found == run + left_out:
        return []
    counts = f"{found} Python blocks found, but {run} run + {left_out} left out"
    return [f"{page.top}: {counts}: one that fails stops its page"]


def figures(item: PageItem) -> list[str]:
    """Find the place of each figure, and labels that touch."""
    page, runner = item.parent.page, item.parent.runner
    return touching_problems(place_figures(page, runner.results()))


def core_runs_alone(item: PageItem) -> list[str]:
    """Run the core in a process of its own, without what its folds of depth hold."""
    return core_alone(item.parent.page)


def one_file_alone(item: PageItem) -> list[str]:
    """Run the source that the chapter embeds where the package is not."""
    return copies_alone(item.parent.page)
