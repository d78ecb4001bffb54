"""Draw social cards: an SVG with text and a figure, and resvg makes a PNG of it."""

import functools
import hashlib
import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.run import fonts
from engine.run.style import INK, PAPER

WIDTH, HEIGHT = 1200, 630

_MARGIN, _BAR = 72, 12
_LOWEST = HEIGHT - 100  # where figures end
_SOFT, _BLUE, _RULE = "#59616b", "#0b5c8a", "#e4e0d6"  # as in book.css
_SERIF, _SANS = "Source Serif 4", fonts.FAMILY
_FILES = (
    ("source-serif-4/files/source-serif-4-latin-wght-normal", 600, _SERIF, "SemiBold"),
    ("source-sans-3/files/source-sans-3-latin-wght-normal", 400, _SANS, "Regular"),
    ("source-sans-3/files/source-sans-3-latin-wght-normal", 600, _SANS, "SemiBold"),
    ("source-sans-3/files/source-sans-3-latin-wght-italic", 400, _SANS, "Italic"),
)
_ROOT = re.compile(
    r'<svg\b[^>]*viewBox="[\d.-]+ [\d.-]+ (?P<w>[\d.]+) (?P<h>[\d.]+)"[^>]*>'
)
_VARIABLE = re.compile(r"var\(--\w+,(#\w+)\)")
_STYLE = re.compile(r"<style\b.*?</style>", re.DOTALL)
_FOR_DARK = re.compile(r'<image class="dark"[^>]*/>')


@dataclass(frozen=True)
class Card:
    """What a card says; `figure` is an SVG of the engine, or nothing."""

    title: str
    text: str
    foot: str
    figure: str = ""


def drawn(card: Card, cache: Path) -> bytes:
    """Return a card as PNG, drawn if it is not in the cache."""
    import resvg_py

    svg = as_svg(card)
    state = "\n".join([svg, resvg_py.__version__, *files()])
    path = cache / f"{hashlib.sha256(state.encode()).hexdigest()[:20]}.png"
    if not path.is_file():
        picture = resvg_py.svg_to_bytes(
            svg_string=svg,
            skip_system_fonts=True,
            font_files=files(),
            sans_serif_family=_SANS,
        )
        cache.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    return path.read_bytes()


def as_svg(card: Card) -> str:
    """Lay a card out: the figure below the text or at its right, where it is larger."""
    inner = WIDTH - 2 * _MARGIN
    words, end = _words(card, inner)
    below = (_MARGIN, end, inner, _LOWEST - end)
    column = inner / 2
    right = (_MARGIN + column + 48, _MARGIN, column - 48, _LOWEST - _MARGIN)
    box: tuple[float, float, float, float] = below
    if card.figure and _scale(card.figure, *right[2:]) > _scale(card.figure, *box[2:]):
        (words, _), box = _words(card, column), right
    base = HEIGHT - 40
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER[0]}"/>',
        f'<rect width="{_BAR}" height="{HEIGHT}" fill="{_BLUE}"/>',
        *words,
        *([_placed(card.figure, *box)] if card.figure else []),
        _logo(_MARGIN, base - 26, 32),
        _text(_MARGIN + 44, base, 28, _BLUE, "tformer", _SANS, 600),
        _text(WIDTH - _MARGIN, base, 26, _SOFT, card.foot, _SANS, 400, "end"),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink">{"".join(parts)}</svg>'
    )


def _words(card: Card, width: float) -> tuple[list[str], float]:
    """Set the title and the text in a column; return where it ends as well."""
    size = 64 if len(lines_of(card.title, _SERIF, 64, width)) < 3 else 54
    parts, y = [], _MARGIN + 50.0
    for line in lines_of(card.title, _SERIF, size, width):
        parts.append(_text(_MARGIN, y, size, INK[0], line, _SERIF, 600))
        y += size * 1.14
    for line in lines_of(card.text, _SANS, 31, width):
        parts.append(_text(_MARGIN, y, 31, _SOFT, line, _SANS, 400))
        y += 42
    return parts, y


def _placed(figure: str, x: float, y: float, width: float, height: float) -> str:
    """Return a figure as large as a box allows, in its middle, on light paper."""
    (w, h), scale = _size(figure), _scale(figure, width, height)
    left, top = x + (width - w * scale) / 2, y + (height - h * scale) / 2
    body = _STYLE.sub("", _FOR_DARK.sub("", figure[figure.index("<svg") :]), count=1)
    body = _VARIABLE.sub(r"\1", body).replace("</svg>", "")
    return (
        f'<svg x="{left:.1f}" y="{top:.1f}" width="{w * scale:.1f}" color="{INK[0]}" '
        f'height="{h * scale:.1f}" viewBox="0 0 {w} {h}" fill="{INK[0]}">'
        f"{_ROOT.sub('', body, count=1)}</svg>"
    )


def _size(figure: str) -> tuple[float, float]:
    root = _ROOT.search(figure)
    return (float(root["w"]), float(root["h"])) if root else (1.0, 1.0)


def _scale(figure: str, width: float, height: float) -> float:
    w, h = _size(figure)
    return min(width / w, height / h)


def _logo(x: float, y: float, size: float) -> str:
    """Return the sign of the site: a causal mask of three."""
    dots = [(5, 5), (5, 12), (12, 12), (5, 19), (12, 19), (19, 19)]
    circles = "".join(f'<circle cx="{a}" cy="{b}" r="2.8"/>' for a, b in dots)
    return (
        f'<svg x="{x}" y="{y}" width="{size}" height="{size}" viewBox="0 0 24 24">'
        f'<g fill="{_BLUE}">{circles}</g></svg>'
    )


def _text(
    x: float,
    y: float,
    size: int,
    colour: str,
    text: str,
    family: str,
    weight: int,
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x}" y="{y:.1f}" fill="{colour}" font-family="&quot;{family}&quot;" '
        f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{html.escape(text)}</text>"
    )


def lines_of(text: str, family: str, size: int, width: float) -> list[str]:
    """Break a text into lines that are no wider than `width` pixels."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _font(family, size).getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@functools.cache
def _font(family: str, size: int) -> Any:
    from PIL import ImageFont

    number = [name for _, _, name, _ in _FILES].index(family)
    return ImageFont.truetype(files()[number], size)


@functools.cache
def files() -> list[str]:
    """Return the fonts that cards are set in; the last has arrows and Greek letters."""
    from matplotlib import font_manager

    made = [
        str(fonts.as_truetype(file, weight, (family, style)))
        for file, weight, family, style in _FILES
    ]
    return [*made, font_manager.findfont(fonts.FALLBACK)]
