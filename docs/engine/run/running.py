"""Run the blocks of a page, top to bottom, in one `__main__` module."""

import contextlib
import functools
import os
import random
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import matplotlib
import numpy as np
from _pytest.capture import FDCapture

from engine.pages.blocks import Block
from engine.pages.reading import Page
from engine.run import figures
from engine.run.answering import Answered, answered
from engine.run.compiling import BlockFailed, Compiler, describe
from engine.run.style import set_style


@dataclass
class Result:
    """What a block left behind."""

    stdout: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)  # SVG, what touches
    has_value: bool = False  # its last line is an expression that is not None
    answered: Answered | None = None  # what a check said, where it ends a solution


class Runner:
    """Runs the blocks of one page in their order, each once."""

    def __init__(self, page: Page) -> None:
        self.page = page
        # The outcome of each block that was run, the reason for each that was not.
        self.ran: dict[int, Result | BlockFailed] = {}
        self.left_out: dict[int, str] = {}
        self._module = types.ModuleType("__main__")
        self._module.__file__ = str(page.path)
        self._compiler = Compiler(page.path, page.text.count("\n") + 1)
        self._leaving = contextlib.ExitStack()
        self._second: Runner | None = None

    def result(self, block: Block) -> Result:
        """Return what `block` left behind, after all blocks above it: none may fail."""
        for above in self.page.blocks[: block.number]:
            if isinstance(self._outcome(above), BlockFailed):
                place = f"{self.page.path}:{above.line}"
                raise BlockFailed(f"not run, since the block at {place} failed")
        outcome = self._outcome(block)
        if isinstance(outcome, BlockFailed):
            raise outcome
        return outcome

    def results(self) -> list[Result]:
        """Run the whole page."""
        return [self.result(block) for block in self.page.blocks]

    def only(self, blocks: list[Block]) -> list[Result]:
        """Run some blocks of the page, without those between them."""
        outcomes = [*map(self._outcome, blocks)]
        if failed := next((x for x in outcomes if isinstance(x, BlockFailed)), None):
            raise failed
        return [x for x in outcomes if isinstance(x, Result)]

    def again(self, block: Block) -> str | None:
        """Return what a block prints in another run, or None where it fails."""
        if self._second is None:
            self._second = Runner(self.page)
        try:
            return self._second.result(block).stdout
        except BlockFailed:
            return None

    def close(self) -> None:
        """Free what the page holds, and put the process back as it was."""
        if self._second:
            self._second.close()
        self._module.__dict__.clear()
        self._leaving.close()

    def _outcome(self, block: Block) -> Result | BlockFailed:
        if block.left_out is not None:
            self.left_out[block.number] = block.left_out
            return Result()
        if block.number not in self.ran:
            self.ran[block.number] = self._run(block)
        return self.ran[block.number]

    def _run(self, block: Block) -> Result | BlockFailed:
        result, capture = Result(), FDCapture(1)  # what a subprocess prints as well
        capture.start()
        try:
            with self._as_main():
                result.has_value = self._execute(block)
                result.figures = figures.take_figures()
                result.stdout = capture.snap()
                above = [x.stdout for x in self.ran.values() if isinstance(x, Result)]
                printed = "".join([*above, result.stdout])
                names = self._module.__dict__
                result.answered = answered(self.page, block, names, printed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # exit(), pytest.skip() too
            message = describe(error, self.page, block)
            printed = capture.snap()
            said = f"\nIt had printed:\n{printed}"
            return BlockFailed(message + said if printed else message)
        else:
            return result
        finally:
            capture.done()

    def _execute(self, block: Block) -> bool:
        """Run a block; say whether its last line has a value that is not None."""
        statements, value = self._compiler.compile(block.lines)
        for code in statements:
            exec(code, self._module.__dict__)
        return value is not None and eval(value, self._module.__dict__) is not None

    @functools.cached_property
    def _folder(self) -> Path:
        return enter_page(self.page, self._leaving)

    @contextlib.contextmanager
    def _as_main(self) -> Iterator[None]:
        """Be the program: `__main__`, its arguments and its working folder."""
        arguments = mock.patch.object(sys, "argv", [str(self.page.path)])
        main = sys.modules["__main__"]
        with contextlib.chdir(self._folder), arguments:
            sys.modules["__main__"] = self._module
            try:
                yield
            finally:
                sys.modules["__main__"] = main


def enter_page(page: Page, leaving: contextlib.ExitStack) -> Path:
    """Prepare the process for a page, until `leaving`; return its working folder."""
    folder = leaving.enter_context(tempfile.TemporaryDirectory(prefix="page-"))
    root = str(page.project.root)
    sys.path.insert(0, root)  # the package is imported from its sources
    leaving.callback(sys.path.remove, root)
    if page.uses_torch:
        import torch

        leaving.callback(torch.set_num_threads, torch.get_num_threads())
        leaving.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_num_threads(1)
    leaving.enter_context(np.printoptions())  # more pages may follow
    leaving.enter_context(matplotlib.rc_context())
    set_style()
    leaving.callback(_forget)

    for name in ("_exit", "execv", "execve"):
        leaving.enter_context(mock.patch.object(os, name, _no_end(name)))
    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    return Path(folder)


def _forget() -> None:
    """Close the page's figures, and forget how it had tensors printed."""
    figures.take_figures()
    if "torch" in sys.modules:
        sys.modules["torch"].set_printoptions(profile="default")


class PageEnded(BaseException):
    """A block ended the process, in which more blocks and pages were to run."""


def _no_end(name: str) -> Callable[..., None]:
    """Let nothing end the process as if all were well; a fork of it may end."""
    process, real = os.getpid(), getattr(os, name)

    def end(*given: object) -> None:
        if os.getpid() != process:
            real(*given)
        raise PageEnded(f"os.{name}({', '.join(map(repr, given))})")

    return end
