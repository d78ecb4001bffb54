"""The pages as tests, on top of pytest-codeblocks.

pytest-codeblocks finds the Markdown files (`--codeblocks`); here each becomes a page of
the site (see `items`), and the session ends with a count of all their blocks.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from pytest_codeblocks.plugin import MarkdownFile  # type: ignore[import-untyped]

from engine.checks import count_line
from engine.items import COUNTS, PageFile
from engine.project import Project


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Turn the Markdown files that pytest-codeblocks found into pages."""
    found = yield
    others = [each for each in found if not isinstance(each, MarkdownFile)]
    if len(others) < len(found):
        project = Project.find(parent.config.rootpath)
        if file_path in project.pages:  # and not a page that is meant to fail
            others.append(PageFile.from_parent(parent, path=file_path))
    return others


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
