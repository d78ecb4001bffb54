"""What the tests of the engine do with a page of the small project."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from engine.pages.reading import Page
from engine.run.running import Result, Runner

SMALL = Path(__file__).parent / "project"
Write = Callable[..., Page]  # the fixture `write`


def run(page: Page) -> list[Result]:
    """Run all blocks of a page."""
    with contextlib.closing(Runner(page)) as runner:
        return runner.results()
