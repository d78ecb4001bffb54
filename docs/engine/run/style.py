"""How figures look: sizes, the font, and colours for light and for dark pages.

Pages draw with plain matplotlib. What they draw has the colours of a light page; for a
dark one, `finished` gives each colour of the book its twin: lines, text, heat maps. A
block that is pasted elsewhere draws the same picture in matplotlib's own colours.
"""

import base64
import functools
import html
import io
import re
from typing import Any

from engine.run import fonts

# In the order of matplotlib's own, so that C0 is blue and C7 gray elsewhere as well.
COLOURS = {  # on a light page, on a dark page
    "blue": ("#2170b8", "#6cb2f2"),
    "orange": ("#c05508", "#f59a52"),
    "green": ("#0e7d66", "#45c4a0"),
    "red": ("#a11d36", "#ef6478"),
    "purple": ("#58338f", "#d0bbfb"),
    "brown": ("#7d6118", "#dcc88f"),
    "pink": ("#c44a93", "#f7a8d6"),
    "gray": ("#69717e", "#959eab"),
}
INK = ("#23272d", "#dcdee2")  # of the text: what a page draws in black
PAPER = ("#fffefb", "#16181b")  # of the page: what a page draws in white
FAINT = ("#808080", "#878d95")  # matplotlib's "gray", and the grid

# What matplotlib calls "Blues" and "RdBu", in the book's colours; 0 is the paper.
_BLUES = ("#d3e4f3", "#8fbbe0", "#4189c7", "#1b5796", "#0b2c55")
_BLUES_DARK = ("#21415f", "#2c6aa6", "#4692d3", "#93c8f3", "#e9f5ff")
_REDS = ("#f7d9ca", "#eaa283", "#d0603f", "#98311f", "#541210")
_REDS_DARK = ("#532a20", "#934931", "#d2674a", "#f3a98c", "#ffe9df")
MAPS = {  # from the lowest value to the highest
    "Blues": ((PAPER[0], *_BLUES), (PAPER[1], *_BLUES_DARK)),
    "RdBu": (
        (*reversed(_REDS), PAPER[0], *_BLUES),
        (*reversed(_REDS_DARK), PAPER[1], *_BLUES_DARK),
    ),
}

SIZE = 12  # points: 16 pixels of CSS
STYLE: dict[str, Any] = {
    # The same drawing gives the same bytes.
    "svg.hashsalt": "figure",
    "svg.fonttype": "none",
    # Black is the ink of the page, and the paper is the page itself.
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "axes.edgecolor": "black",
    "axes.linewidth": 0.8,
    "grid.color": FAINT[0],
    "grid.linewidth": 0.4,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # 461 pixels wide; on a phone 358, and then 12 points are 12.4 pixels.
    "figure.figsize": (4.8, 2.9),
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.03,
    "figure.constrained_layout.use": True,
    "font.size": SIZE,
    "axes.titlesize": SIZE,
    "axes.titleweight": 600,
    "axes.labelsize": SIZE,
    "xtick.labelsize": SIZE,
    "ytick.labelsize": SIZE,
    "legend.fontsize": SIZE,
    "legend.handlelength": 1.4,
    "figure.titlesize": SIZE,
    "figure.titleweight": 600,
    "lines.linewidth": 2.0,
    # One pixel per number, scaled by the reader's browser: sharp and small.
    "image.interpolation": "none",
    "image.cmap": "Blues",
}


def set_style() -> None:
    """Begin a page with the site's style, drawing into memory."""
    import matplotlib
    from cycler import cycler

    matplotlib.use("agg")
    matplotlib.rcdefaults()
    families = fonts.families()
    style: Any = STYLE | {
        "axes.prop_cycle": cycler(color=[light for light, _ in COLOURS.values()]),
        "font.family": families,
        "mathtext.fontset": "custom",
        "mathtext.rm": families[0],
        "mathtext.it": f"{families[0]}:italic",
        "mathtext.bf": f"{families[0]}:semibold",
        "mathtext.sf": families[0],
        "mathtext.cal": f"{families[0]}:italic",
        "mathtext.fallback": "stixsans",
    }
    matplotlib.rcParams.update(style)


_COLOUR = re.compile(r"(?<=[:\s])#[0-9a-f]{6}\b")
_STYLED = re.compile(r'style="[^"]*#[0-9a-f]{6}[^"]*"')
_IMAGE = re.compile(
    r'<image xlink:href="data:image/png;base64,(?P<png>[^"]*)"'
    r"(?P<rest>[^>]*?)(?P<end>/?>)"
)


def finished(svg: str, alt: str) -> str:
    """Finish a figure for the site: named, with its fonts, for light and for dark.

    An `<img>` of Material follows the scheme that the reader chose, so a media query
    in the image does.
    """
    dark: dict[str, str] = {}

    def style(match: re.Match[str]) -> str:
        return _COLOUR.sub(colour, match[0])

    def colour(match: re.Match[str]) -> str:
        pair = _pairs().get(match[0])
        if pair is None:
            return match[0]
        dark[f"--c{match[0][1:]}"] = pair[1]
        return f"var(--c{match[0][1:]},{pair[0]})"

    def image(match: re.Match[str]) -> str:
        pair = _recoloured(base64.b64decode(match["png"]))
        if pair is None:
            return match[0]
        return "".join(
            f'<image class="{scheme}" xlink:href="data:image/png;base64,{png}"'
            f"{match['rest'].replace(' id=', ' data-id=')}{match['end']}"
            for scheme, png in zip(("light", "dark"), pair, strict=True)
        )

    svg = _IMAGE.sub(image, _STYLED.sub(style, svg))
    values = "".join(f";{name}:{value}" for name, value in sorted(dark.items()))
    rules = (
        f".figure{{color:{INK[0]}}}.dark{{display:none}}"
        "@media (prefers-color-scheme:dark){"
        f".figure{{color:{INK[1]}{values}}}.light{{display:none}}.dark{{display:inline}}}}"
    )
    style_sheet = f"<style>{rules}{fonts.face_rules(svg)}</style>"
    title = f"<title>{html.escape(alt, quote=False)}</title>"
    return svg.replace(">", f">{title}{style_sheet}", 1)


@functools.cache
def _pairs() -> dict[str, tuple[str, str]]:
    """Return for each colour of the book what it is on light and on dark pages."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    pairs: dict[str, tuple[str, str]] = {}
    for name in MAPS:
        drawn = map(to_hex, colormaps[name](range(256)))
        light, dark = (map(to_hex, ramp / 255) for ramp in _ramps(name))
        pairs |= dict(zip(drawn, zip(light, dark, strict=True), strict=True))
    return pairs | {
        **{light: (light, dark) for light, dark in COLOURS.values()},
        "#ffffff": PAPER,
        FAINT[0]: FAINT,
    }


def _ramps(name: str) -> tuple[Any, Any]:
    """Return a colour map of the book for both schemes, each uint8 (256, 3)."""
    from matplotlib.colors import LinearSegmentedColormap

    light, dark = (
        LinearSegmentedColormap.from_list(name, colours)(range(256), bytes=True)[:, :3]
        for colours in MAPS[name]
    )
    return light, dark


NEAR = 6  # in any of red, green and blue: rounding, and edges that were smoothed


def _recoloured(png: bytes) -> tuple[str, str] | None:
    """Return a heat map in the book's colours for both schemes, as base64.

    None for a picture in other colours than those of `MAPS`.
    """
    import numpy as np
    from matplotlib import colormaps
    from PIL import Image

    pixels = np.array(Image.open(io.BytesIO(png)).convert("RGBA"))
    rgb, seen = pixels[..., :3].astype(int), pixels[..., 3] > 0
    colours, place = np.unique(rgb[seen], axis=0, return_inverse=True)
    for name in MAPS:
        drawn = colormaps[name](range(256), bytes=True)[:, :3].astype(int)
        far = np.abs(colours[:, None] - drawn).max(-1)  # (colours, 256)
        if colours.size and (far.min(1) <= NEAR).mean() > 0.95:
            made = []
            for ramp in _ramps(name):
                out = pixels.copy()
                out[seen, :3] = ramp[far.argmin(1)][place.ravel()]
                file = io.BytesIO()
                Image.fromarray(out).save(file, "PNG", optimize=True)
                made.append(base64.b64encode(file.getvalue()).decode("ascii"))
            return made[0], made[1]
    return None
