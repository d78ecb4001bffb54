"""Social cards: what a link to a page looks like where somebody shares it.

A chapter has a picture of its own, 1200 × 630 pixels: its title, the question it
answers, and its opening figure, as it is on a light page. All other pages share one.
They are drawn from SVG by resvg when the site is built, and only when they changed; the
template `partials/about.html` names them.
"""

import functools
import hashlib
import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

from engine.project import Project
from engine.run import fonts
from engine.run.style import INK, PAPER
from engine.site import project_of
from engine.site.hooks import one_page
from engine.site.lists import plain

FOLDER = "assets/cards"  # on the site
SHARED = "book"  # the card of all pages that are no chapter
FIGURE = "chapters/attention.md"  # whose figure it shows
WIDTH, HEIGHT = 1200, 630

_MARGIN, _BAR = 72, 12
_LOWEST = HEIGHT - 100  # where figures end
_SOFT, _BLUE = "#59616b", "#0b5c8a"  # as in book.css
_SERIF, _SANS = "Source Serif 4", fonts.FAMILY
_FILES = (
    ("source-serif-4/files/source-serif-4-latin-wght-normal", 600, _SERIF, "SemiBold"),
    ("source-sans-3/files/source-sans-3-latin-wght-normal", 400, _SANS, "Regular"),
    ("source-sans-3/files/source-sans-3-latin-wght-normal", 600, _SANS, "SemiBold"),
    ("source-sans-3/files/source-sans-3-latin-wght-italic", 400, _SANS, "Italic"),
)
_PLACE = re.compile(r"!\[[^\]]*\]\(\S*/figures/(?P<name>[\w.-]+\.svg)")
_ROOT = re.compile(r'<svg\b[^>]*viewBox="\S+ \S+ (?P<w>[\d.]+) (?P<h>[\d.]+)"[^>]*>')
_VARIABLE = re.compile(r"var\(--\w+,(#\w+)\)")
# What a figure has for dark pages, and the style that chooses.
_DARK = re.compile(r'<style\b.*?</style>|<image class="dark"[^>]*/>', re.DOTALL)


@dataclass(frozen=True)
class Card:
    """What a card says; `figure` is an SVG of the engine, or nothing."""

    title: str
    text: str
    foot: str
    figure: str = ""


def on_post_build(config: MkDocsConfig) -> None:
    """Write the card of each chapter, and the one for all other pages."""
    project, listed = project_of(config), config.extra["chapters"]
    wanted = one_page(config)
    title, _, text = str(config.site_description or config.site_name).partition(": ")
    text = f"{text[:1].upper()}{text[1:]}"
    cards = {SHARED: Card(title, text, f"{len(listed)} chapters")}
    for number, chapter in enumerate(listed, 1):
        figure = opening_figure(project, chapter.text)
        question = plain(str(chapter.meta.get("question") or ""))
        foot = f"Chapter {number} of {len(listed)}"
        cards[chapter.stem] = Card(plain(chapter.title), question, foot, figure)
        if chapter.file == FIGURE:
            cards[SHARED] = Card(title, text, f"{len(listed)} chapters", figure)
    for name, card in cards.items():
        if wanted is None or name == Path(wanted).stem:
            path = Path(config.site_dir, FOLDER, f"{name}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(drawn(card, project.root / ".cache" / "cards"))


def opening_figure(project: Project, text: str) -> str:
    """Return the first figure of a page, as the engine drew it, or nothing."""
    place = _PLACE.search(text)
    path = project.docs / "figures" / place["name"] if place else None
    return path.read_text("utf-8") if path and path.is_file() else ""


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
    inner, base = WIDTH - 2 * _MARGIN, HEIGHT - 40
    words, end = _words(card, inner)
    if card.figure:
        figure = _VARIABLE.sub(r"\1", _DARK.sub("", card.figure))
        root = _ROOT.search(figure)
        w, h = (float(root["w"]), float(root["h"])) if root else (1.0, 1.0)
        below = (_MARGIN, end, inner, _LOWEST - end)
        right = (_MARGIN + inner / 2 + 48, _MARGIN, inner / 2 - 48, _LOWEST - _MARGIN)
        box = max(below, right, key=lambda box: min(box[2] / w, box[3] / h))
        if box is right:
            words, _ = _words(card, inner / 2)
        x, y, width, height = box
        start = (
            f'<svg x="{x}" y="{y}" width="{width}" height="{height}" '
            f'viewBox="0 0 {w} {h}" color="{INK[0]}" fill="{INK[0]}">'
        )
        words.append(_ROOT.sub(start, figure[figure.index("<svg") :], count=1))
    sign = [(5, 5), (5, 12), (12, 12), (5, 19), (12, 19), (19, 19)]  # a causal mask
    dots = "".join(f'<circle cx="{a}" cy="{b}" r="2.8"/>' for a, b in sign)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER[0]}"/>'
        f'<rect width="{_BAR}" height="{HEIGHT}" fill="{_BLUE}"/>{"".join(words)}'
        f'<svg x="{_MARGIN}" y="{base - 26}" width="32" height="32" '
        f'viewBox="0 0 24 24" fill="{_BLUE}">{dots}</svg>'
        f"{_text(_MARGIN + 44, base, 28, _BLUE, 'tformer', _SANS, 600)}"
        f'<g text-anchor="end">'
        f"{_text(WIDTH - _MARGIN, base, 26, _SOFT, card.foot, _SANS, 400)}</g></svg>"
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


def _text(
    x: float, y: float, size: int, colour: str, text: str, family: str, weight: int
) -> str:
    return (
        f'<text x="{x}" y="{y:.1f}" fill="{colour}" font-family="&quot;{family}&quot;" '
        f'font-size="{size}" font-weight="{weight}">{html.escape(text)}</text>'
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
