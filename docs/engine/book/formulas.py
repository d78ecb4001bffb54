"""Formulas: MathML where a reader knows it, and a picture everywhere else.

The page has each formula as MathML, as KaTeX wrote it. MathJax draws the same LaTeX as
an SVG without fonts. Both stand in the book, and its style shows one of them:
`formulas.css` holds a rule that only what sets MathML understands.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from bs4 import Tag

from engine.book.folds import new
from engine.node import node
from engine.project import PACKAGES

_SCRIPT = Path(__file__).parents[2] / "npm" / "pictures.mjs"
_BOX = re.compile(
    r'viewBox="[-\d.]+ (?P<top>-?[\d.]+) (?P<width>[\d.]+) (?P<high>[\d.]+)"'
)
# What the SVG says for a page, and a book does not need.
_NEEDLESS = re.compile(r' (?:data-[\w-]+|role|focusable|style|aria-\w+)="[^"]*"')
_SIZE = re.compile(r' (?:width|height)="[\d.]+ex"')
EM = 1000  # units of MathJax's fonts
WIDE = 17  # em: what is wider is set smaller, to fit a screen of six inches
SCALE = 1.1  # its letters are smaller than those of a font for text

Formula = tuple[str, bool]  # its LaTeX, and whether it stands in a line of its own


@dataclass(frozen=True)
class Picture:
    """A formula as an SVG; its measures are in em of the text around it."""

    svg: str
    width: float
    depth: float  # how far it reaches below the line

    @property
    def path(self) -> str:
        """The path of the file in the book."""
        return f"formulas/{hashlib.sha256(self.svg.encode()).hexdigest()[:12]}.svg"


def latex_of(mark: Tag) -> Formula:
    """Return the LaTeX of a formula that KaTeX has set."""
    source = mark.find("annotation")
    block = isinstance(mark.math, Tag) and mark.math.get("display") == "block"
    return (source.get_text() if source else ""), block


def draw(formulas: list[Formula]) -> dict[Formula, Picture]:
    """Return a picture of each formula.

    Raises:
        ValueError: MathJax does not know what KaTeX knows.
    """
    made = json.loads(node(_SCRIPT, PACKAGES, text=json.dumps(formulas)))
    pictures = {}
    for formula, svg in zip(formulas, made, strict=True):
        box = _BOX.search(svg) if isinstance(svg, str) else None
        if box is None:
            raise ValueError(f"MathJax cannot draw {formula[0]}: {svg}")
        top, width, high = (
            float(box[x]) / EM * SCALE for x in ("top", "width", "high")
        )
        text = _SIZE.sub("", _NEEDLESS.sub("", svg))
        size = f' width="{16 * width:.1f}" height="{16 * high:.1f}"'
        text = text.replace("<svg", f"<svg{size}", 1).replace("currentColor", "#000")
        pictures[formula] = Picture(text, width, high + top)
    return pictures


def put(body: Tag, pictures: dict[Formula, Picture]) -> None:
    """Put each formula into a chapter in both forms."""
    for mark in body.select("span.katex"):
        latex, block = formula = latex_of(mark)
        picture, math = pictures[formula], mark.math
        if math is None:
            raise ValueError(f"{latex} has no MathML")
        for extra in math("annotation"):
            extra.decompose()
        math.semantics and math.semantics.unwrap()
        for sign in math("mo"):  # KaTeX writes `mod` as a row of letters inside of one
            sign.string = sign.get_text()
        said = math["alttext"] = " ".join(latex.split())
        wide = picture.width > WIDE
        if wide:
            math["style"] = f"font-size:{WIDE / picture.width:.2f}em"
        style = f"width:{picture.width:.3f}em"
        if not block:
            style += f";vertical-align:{-picture.depth:.3f}em"
        image = new("img", src=picture.path, alt=said, style=style)
        kind = "formula" + " display" * block + " wide" * wide
        both = new("span", class_=kind)
        both.extend([math.extract(), image])
        mark.replace_with(both)
