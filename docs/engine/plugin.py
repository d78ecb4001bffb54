"""The pages as tests, on top of pytest-codeblocks.

pytest-codeblocks finds the Markdown files (`--codeblocks`); here each becomes a page of
the site (see `items`), whose tests all go to one worker of pytest-xdist. The session
ends with a count of all blocks.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_codeblocks.plugin import MarkdownFile  # type: ignore[import-untyped]

from engine.checks import count_line
from engine.items import COUNTS, PageFile, project_of

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
        line = count_line(len(counts), found, run, left_out)
        terminalreporter.write_line(line)
