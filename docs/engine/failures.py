"""Tell what went wrong in a block, with the file and line where it did."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from engine.blocks import Block
from engine.lines import Origin
from engine.page import Page
from engine.project import ENGINE


class BlockFailed(Exception):
    """A block raised; the message is a traceback that begins in the page."""


def describe(
    error: BaseException, page: Page, block: Block, copied: Mapping[int, Origin]
) -> str:
    """Write the traceback of what a block raised, without the frames of the engine.

    `copied` says where the lines below the page's listing are from.
    """
    trace = traceback.TracebackException(
        type(error), error, _below_engine(error.__traceback__)
    )
    for index, frame in enumerate(trace.stack):
        line = frame.lineno or 0
        if frame.filename == str(page.path) and line in copied:
            trace.stack[index] = _true_frame(frame, copied[line])
    place = _innermost(trace, page.project.root) or f"{page.path}:{block.line}"
    if isinstance(error, SyntaxError) and not trace.stack:  # of the block itself
        place = f"{error.filename}:{error.lineno}"
    lines = "".join(trace.format_exception_only()).strip().splitlines()
    first = lines[-1 if isinstance(error, SyntaxError) else 0]
    return f"{place}: {first}\n\n{''.join(trace.format())}"


def _below_engine(tb: TracebackType | None) -> TracebackType | None:
    """Skip the frames through which the engine called the block."""
    while tb and Path(tb.tb_frame.f_code.co_filename).parent == ENGINE:
        tb = tb.tb_next
    return tb


def _true_frame(
    frame: traceback.FrameSummary, origin: Origin
) -> traceback.FrameSummary:
    return traceback.FrameSummary(
        str(origin.file), origin.line, frame.name, line=frame.line
    )


def _innermost(trace: traceback.TracebackException, root: Path) -> str | None:
    """Return the place of the last line that is the page's or the package's own."""
    own = [
        frame
        for frame in trace.stack
        if Path(frame.filename).is_relative_to(root)
        and "site-packages" not in Path(frame.filename).parts
    ]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None
