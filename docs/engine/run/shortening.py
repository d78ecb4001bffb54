"""Shorten the SVG that matplotlib writes: much of it says nothing that one can see."""

import re

# A hundredth of a point is less than any screen shows.
_LONG = re.compile(r"(-?\d+\.\d\d)\d+")
_PLACED = re.compile(r'\s(?:d|x|y|points)="[^"]*"|translate\([^)]*\)')
_ALONE = re.compile(
    r'<g id="\w+">\s*(<(?:path|use)\b[^>]*/>|<text\b[^>]*>[^<]*</text>)\s*</g>'
)
_BREAK = re.compile(r"\s*\n\s*")


def shortened(svg: str) -> str:
    """Return the same picture in fewer signs: an element stands on one line."""

    def placed(match: re.Match[str]) -> str:
        return _BREAK.sub(" ", _LONG.sub(r"\1", match[0]))

    return _BREAK.sub("\n", _ALONE.sub(r"\1", _PLACED.sub(placed, svg)))
