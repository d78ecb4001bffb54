"""Figures for a reader with few greys and little CSS.

The site's figures have variables of CSS for the dark scheme, and colours of one
lightness, which on grey paper are one. Here each colour of a line or of an area has
a lightness of its own.
"""

import re

from engine.run.style import COLOURS, INK

# From dark to light, so that neighbours in a figure differ in grey.
GREYS = {
    "blue": "#12457a",
    "orange": "#cf6a15",
    "green": "#0e7d66",
    "red": "#4f0a17",
}
_VARIABLE = re.compile(r"var\(--\w+,\s*(#[0-9a-f]{6})\)")
_DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{(?:[^{}]*\{[^{}]*\})*\}")
_DARK_RULE = ".dark{display:none}"
_IMAGE = re.compile(r'<image class="dark"[^>]*/>')  # of a heat map


def plain(svg: str) -> str:
    """Return a figure for light paper, in colours that differ in grey."""
    svg = _IMAGE.sub("", _DARK.sub("", svg).replace(_DARK_RULE, ""))
    svg = _VARIABLE.sub(r"\1", svg).replace("currentColor", INK[0])
    for name, colour in GREYS.items():
        svg = svg.replace(COLOURS[name][0], colour)
    return svg
