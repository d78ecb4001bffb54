"""Compare the output that a page shows with what its block printed."""

import difflib
import re

from engine.lines import squeeze

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
