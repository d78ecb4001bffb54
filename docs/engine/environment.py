"""What a page finds when it starts, the same on every run.

- torch computes with one thread, since a sum depends on how many threads share it;
  matplotlib draws into memory, in the style of `figures.py`.
- Numbers are printed as by default, whatever a page before has set.
- The working folder is an empty one of the page's own: a page cannot rely on files
  that its reader does not have.
- Nothing is seeded. On the contrary, the generators start from a random state: a page
  that forgets to seed what it prints is found out at its next run, not at a reader's.
"""

import contextlib
import importlib.util
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine import figures
from engine.page import Page


@contextlib.contextmanager
def page_environment(page: Page) -> Iterator[Path]:
    """Prepare the process for a page; yield its working folder."""
    with contextlib.ExitStack() as leaving:
        folder = leaving.enter_context(tempfile.TemporaryDirectory(prefix="page-"))
        leaving.enter_context(_importable(page.project.root))
        if _uses_torch(page):
            leaving.enter_context(_one_thread())
        if _installed("numpy"):
            leaving.enter_context(_printing())
        if _installed("matplotlib"):
            leaving.enter_context(_drawing())
        _unseed()
        yield Path(folder)


def _uses_torch(page: Page) -> bool:
    """Whether the page may import torch, itself or through the package."""
    code = "\n".join(block.fence.code for block in page.blocks)
    through_package = page.project.needs_torch and page.project.package in code
    return _installed("torch") and ("torch" in code or through_package)


def _installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


@contextlib.contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let pages import the project's package from its sources."""
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _drawing() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        figures.set_style()
        yield
        figures.take_figures()


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    """Forget afterwards how the page had numbers printed: more pages may follow."""
    import numpy

    with numpy.printoptions():
        yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_printoptions(profile="default")


def _unseed() -> None:
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
