"""The site's font in its figures: for matplotlib's measuring, and inside each SVG.

An image cannot use the fonts of the page around it. So each figure carries the few
glyphs that it shows, 5 to 15 KB. The fonts are read whole, as npm has them: the files
that the site serves are cut down. Where they are not installed, figures fall back to
those of matplotlib.
"""

import base64
import contextlib
import functools
import hashlib
import html
import io
import os
import re
from collections.abc import Mapping
from typing import Any

from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from PIL import ImageFont

from engine.node import node
from engine.project import ENGINE, PACKAGES

FAMILY = "Source Sans 3"
FALLBACK = "DejaVu Sans"  # comes with matplotlib, and has the arrows and Greek letters
FOLDER = PACKAGES / "@fontsource-variable"
CACHE = ENGINE.parents[1] / ".cache" / "fonts"
# What matplotlib may ask for: the weight, the name of the style, the file.
FACES = (
    (400, "Regular", "source-sans-3/files/source-sans-3-latin-wght-normal"),
    (600, "SemiBold", "source-sans-3/files/source-sans-3-latin-wght-normal"),
    (400, "Italic", "source-sans-3/files/source-sans-3-latin-wght-italic"),
)
_SCRIPT = ENGINE.parent / "npm" / "face.mjs"


def installed() -> bool:
    """Whether the site's fonts are there; `make` puts them there."""
    return all((FOLDER / f"{file}.woff2").is_file() for *_, file in FACES)


@functools.cache
def families() -> list[str]:
    """Make the site's font known to matplotlib; return the families to draw with."""
    if not installed():
        return [FALLBACK]
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for face in FACES:
        if (path := _static(*face)) not in known:
            font_manager.fontManager.addfont(path)
    return [FAMILY, FALLBACK]


@functools.cache
def font(weight: int, size: int) -> ImageFont.FreeTypeFont:
    """Return the site's font for drawing with Pillow."""
    from matplotlib import font_manager

    wanted = font_manager.FontProperties(family=families(), weight=weight)
    return ImageFont.truetype(str(font_manager.findfont(wanted)), size)


def face_rules(svg: str) -> str:
    """Return CSS that holds the glyphs of all text in an SVG.

    The same text gives the same bytes.
    """
    families()  # where the drawing was made by another process
    rules = []
    for (path, family, style, weight), signs in sorted(_needed(svg).items()):
        data = base64.b64encode(_subset(path, "".join(sorted(signs)))).decode("ascii")
        rules.append(
            f"@font-face{{font-family:'{family}';font-style:{style};"
            f"font-weight:{weight};src:url(data:font/woff;base64,{data})}}"
        )
    return "".join(rules)


# What text is drawn in: the style of the element that holds it.
_TEXT = re.compile(r'<(?:text|tspan)[^>]*style="(?P<style>[^"]*)"[^>]*>(?P<text>[^<]+)')
Face = tuple[str, str, str, int]  # the file, and as what the SVG asks for it


def _needed(svg: str) -> dict[Face, set[str]]:
    """Return the signs that each font has to show: the first one that has them."""
    needed: dict[Face, set[str]] = {}
    for match in _TEXT.finditer(svg):
        pairs = (part.partition(":") for part in match["style"].split(";"))
        style = {name.strip(): value.strip() for name, _, value in pairs}
        names = re.findall(r"'([^']+)'", style.get("font-family", ""))
        slant = "italic" if style.get("font-style", "normal") != "normal" else "normal"
        given = style.get("font-weight", "400")
        weight = int(given) if given.isdigit() else {"bold": 700}.get(given, 400)
        for sign in set(html.unescape(match["text"])) - {"\n"}:
            for name in names:
                face = _face(name, slant, 600 if weight > 500 else 400)
                if face and ord(sign) in _glyphs(face[0]):
                    needed.setdefault(face, set()).add(sign)
                    break
    return needed


@functools.cache
def _face(family: str, slant: str, weight: int) -> Face | None:
    from matplotlib import font_manager

    given: Any = {"family": family, "style": slant, "weight": weight}
    wanted = font_manager.FontProperties(**given)
    with contextlib.suppress(ValueError):
        path = font_manager.findfont(wanted, fallback_to_default=False)
        return str(path), family, slant, weight
    return None


@functools.cache
def _glyphs(path: str) -> Mapping[int, str]:
    glyphs: Mapping[int, str] = TTFont(path, lazy=True).getBestCmap()
    return glyphs


@functools.lru_cache(maxsize=256)
def _subset(path: str, signs: str) -> bytes:
    """Return a font of these signs alone, compressed as woff."""
    from fontTools import subset  # type: ignore[import-untyped]

    options = subset.Options()
    options.layout_features = ["kern", "mark"]
    options.hinting = False
    options.name_IDs = []
    options.notdef_outline = True
    font = TTFont(path, recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=signs)
    subsetter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()


def _static(weight: int, style: str, file: str) -> str:
    """Return one weight of a variable web font as a file that matplotlib reads.

    It is made once for each state of the font, and calls itself by the family and this
    style.
    """
    source = FOLDER / f"{file}.woff2"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    path = CACHE / f"{digest}-{weight}-{style}.ttf"
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.{os.getpid()}")
        node(_SCRIPT, PACKAGES, source, str(weight), half, text="")
        font = TTFont(half, recalcTimestamp=False)
        for number, text in (1, FAMILY), (2, style), (4, f"{FAMILY} {style}"):
            font["name"].setName(text, number, 3, 1, 0x409)
            font["name"].setName(text, number, 1, 0, 0)
        font.save(half)
        half.replace(path)
    return str(path)
