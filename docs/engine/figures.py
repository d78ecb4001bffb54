"""Figures: how they look, and how they become SVG that follows the page's scheme."""

import html
import io
import re
import sys
from typing import Any

# Read on white and on the dark scheme alike: each keeps a contrast of 3 with both.
COLOURS = ("#2f7ed8", "#d1662b", "#2b9160", "#b358c4", "#8f7a1f", "#d04a6f", "#6b7f99")

STYLE: dict[str, Any] = {
    # The same drawing gives the same bytes.
    "svg.hashsalt": "figure",
    "svg.fonttype": "none",
    # Black is the ink of the page (see `themed`), and the paper is the page itself.
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "axes.edgecolor": "black",
    "grid.color": "#808080",
    "grid.linewidth": 0.4,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # Sizes, for a column about 700 pixels wide and for a phone.
    "figure.figsize": (6.4, 3.2),
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10,
    "lines.linewidth": 1.8,
    # One pixel per number, scaled by the reader's browser: sharp and small.
    "image.interpolation": "none",
    "image.cmap": "viridis",
}

_INK = (
    "<style>.figure{color:#1f2430}"
    "@media (prefers-color-scheme:dark){.figure{color:#dfe3ec}}</style>"
)


def set_style() -> None:
    """Begin a page with the site's style, drawing into memory."""
    import matplotlib
    from cycler import cycler

    matplotlib.use("agg")
    matplotlib.rcdefaults()
    style: Any = STYLE | {"axes.prop_cycle": cycler(color=COLOURS)}
    matplotlib.rcParams.update(style)


def take_figures() -> list[str]:
    """Close the figures that are open, and return them as SVG."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot as plt

    drawn = []
    for number in plt.get_fignums():
        file = io.StringIO()
        plt.figure(number).savefig(file, format="svg")
        drawn.append(_bare(file.getvalue()))
    plt.close("all")
    return drawn


def themed(svg: str, alt: str) -> str:
    """Finish a figure for the site: named, and in ink that suits light and dark.

    An `<img>` of Material follows the scheme that the reader chose, so a media query
    in the image does.
    """
    root_end = svg.index(">") + 1
    title = f"<title>{html.escape(alt, quote=False)}</title>"
    return f"{svg[:root_end]}{title}{_INK}{svg[root_end:]}"


def _bare(svg: str) -> str:
    """Drop the date and the like, and turn black into the colour of the text."""
    svg = re.sub(
        r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.S
    )
    svg = re.sub(r"#000000\b", "currentColor", svg)
    svg = re.sub(r"[ \t]+$", "", svg, flags=re.M)
    return svg.replace(
        "<svg ", '<svg class="figure" role="img" fill="currentColor" ', 1
    )
