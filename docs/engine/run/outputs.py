"""What a page shows against what its block prints: compared, and written."""

import difflib
import re
from collections.abc import Callable

from engine.pages.blocks import Block, squeeze
from engine.pages.reading import Page
from engine.run.running import Result

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


def _difference(shown: str, printed: str, a: str, b: str) -> str:
    """Return a diff from what is called `a` to what is called `b`."""
    before, after = (squeeze(text).split("\n") for text in (shown, printed))
    return "\n".join(difflib.unified_diff(before, after, a, b, lineterm=""))


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


UNSEEDED = "differs between runs: seed it, as in `torch.manual_seed(0)`"


def output_problem(
    block: Block, result: Result, again: Callable[[Block], str | None]
) -> str | None:
    """Return how a page's output differs from what its block printed, if it does.

    `again` runs it once more, to tell a stale output from one that no run repeats.
    """
    output, printed = block.output, result.stdout
    if same_output(output.code if output else "", printed):
        return None
    origin = (output or block.fence).opening.origin
    second = again(block)
    if second is not None and not same_output(second, printed):
        change = _difference(printed, second, "one run", "another run")
        return f"{origin}: what the block prints {UNSEEDED}\n{change}"
    what = "the block prints, and the page shows nothing of it in an .output fence"
    change = squeeze(printed)
    if output:
        what = "the output is stale"
        change = _difference(output.code, printed, "the page shows", "the block prints")
    advice = "`make outputs` writes what the blocks print into the pages."
    return f"{origin}: {what}\n{change}\n{advice}"


def with_outputs(page: Page, printed: dict[int, str]) -> tuple[str, int]:
    """Return the text of a page with true outputs, and how many were not.

    An output that is missing is put below its block.
    """
    raw = page.path.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in raw else "\n"
    lines = raw.split(newline)
    count = 0
    for block in reversed([x for x in page.blocks if x.number in printed]):
        output, said = block.output, printed[block.number]
        ends_here = page.lines[block.fence.end].origin.file == page.path
        if output is not None and not same_output(output.code, said):
            first = output.opening.origin.line  # the index of the line below the fence
            new = _indented(output.prefix, said)
            lines[first : first + len(output.lines)] = new
            count += 1
        elif output is None and said.strip() and ends_here:
            _show(page, block, said, lines)
            count += 1
    return newline.join(lines), count


def _show(page: Page, block: Block, printed: str, lines: list[str]) -> None:
    """Put an output below a block that has none."""
    fence = block.fence
    at = page.lines[fence.end].origin.line  # the index of the line below the fence
    text = _indented(fence.prefix, printed)
    blank = fence.prefix.rstrip()
    new = [blank, f"{fence.prefix}```{{.text .output}}", *text, f"{fence.prefix}```"]
    if at < len(lines) and lines[at].strip(" >"):
        new.append(blank)
    lines[at:at] = new


def _indented(prefix: str, printed: str) -> list[str]:
    lines = printed.rstrip("\n").split("\n") if printed.strip() else []
    return [f"{prefix}{line}".rstrip() for line in lines]
