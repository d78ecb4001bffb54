"""Compare the output that a page shows with what its block printed."""

import difflib
import re

from engine.blocks import Block, Fence, squeeze
from engine.reading import Page
from engine.running import Result

# A float with the blanks before it, whose number changes with the sign and the width
# of what stands below it in a column. Versions (3.11.2) and names (v1.0) are text.
_FLOAT = re.compile(
    r"[ ]*(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))"
    r"(?:[eE][-+]?\d+)?(?!\w|\.\w)"
)


def same_output(shown: str, printed: str) -> bool:
    """Say whether a page shows what was printed: floats to the digits it shows.

    The last digit shown may differ by one, as it does when another machine rounds a
    sum the other way. All else is compared to the letter, ends of lines aside.
    """
    shown, printed = squeeze(shown), squeeze(printed)
    if _FLOAT.sub("#", shown) != _FLOAT.sub("#", printed):
        return False
    pairs = zip(_FLOAT.findall(shown), _FLOAT.findall(printed), strict=True)
    return all(_close(a.strip(), b.strip()) for a, b in pairs)


def difference(shown: str, printed: str) -> str:
    """Return a diff from the page to what was printed."""
    diff = difflib.unified_diff(
        squeeze(shown).split("\n"),
        squeeze(printed).split("\n"),
        "the page shows",
        "the block prints",
        lineterm="",
    )
    return "\n".join(diff)


def _close(shown: str, printed: str) -> bool:
    mantissa, _, exponent = shown.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    units = 1.001  # of the last digit shown
    if not exponent and decimals == 0:
        decimals = 3  # `1.` is how torch writes a whole number, not one rounded to 1
    elif not exponent and decimals == 1:
        units = 0.501  # a whole step of 0.1 would let 1.0 pass for 0.9
    step = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(shown) - float(printed)) <= units * step


def output_problem(block: Block, result: Result) -> str | None:
    """Return how a page's output differs from what its block printed, if it does."""
    if block.output is None or same_output(block.output.code, result.stdout):
        return None
    return (
        f"{block.output.opening.origin}: the output is stale\n"
        f"{difference(block.output.code, result.stdout)}\n"
        "`make outputs` writes what the blocks print into the pages."
    )


def with_outputs(page: Page, printed: dict[int, str]) -> tuple[str, int]:
    """Return the text of a page with true outputs, and how many were not."""
    raw = page.path.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in raw else "\n"
    lines = raw.split(newline)
    count = 0
    for block in reversed(page.blocks):
        output = block.output
        if output is None or block.number not in printed:
            continue
        if not same_output(output.code, printed[block.number]):
            first = output.opening.origin.line  # the index of the line below the fence
            lines[first : first + len(output.lines)] = _indented(
                output, printed[block.number]
            )
            count += 1
    return newline.join(lines), count


def _indented(output: Fence, printed: str) -> list[str]:
    lines = printed.rstrip("\n").split("\n") if printed.strip() else []
    if any(line.startswith(output.ticks) for line in lines):
        raise ValueError(f"{output.opening.origin}: the output would close its fence")
    return [f"{output.prefix}{line}".rstrip() for line in lines]
