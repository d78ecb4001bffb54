"""Figures: how they become SVG, where they belong on the page, what is wrong there."""

import io
import math
import posixpath
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.pages.blocks import Block, Origin, PageError
from engine.pages.reading import Page
from engine.run.style import SIZE

if TYPE_CHECKING:
    from engine.pages.reading import Rendered
    from engine.run.running import Result


# A phone of 390 pixels shows 358 of a page, and no text below 12 can be read there.
PHONE, READABLE = 358, 12.0
PIXELS = 4 / 3  # of CSS in a point


def take_figures() -> list[tuple[str, str]]:
    """Close the figures that are open; return each as SVG, and what touches in it."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot as plt

    from engine.run.touching import touching_labels

    drawn = []
    for number in plt.get_fignums():
        figure, file = plt.figure(number), io.StringIO()
        touching = "; ".join(touching_labels(figure))
        figure.savefig(file, format="svg")
        drawn.append((bare(file.getvalue()), touching))
    plt.close("all")
    return drawn


# Metadata says when it was drawn; what is shorter than a hundredth of a point, no
# screen shows; a group around one element groups nothing.
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_LONG = re.compile(r"(-?\d+\.\d\d)\d+")
_PLACED = re.compile(r'\s(?:d|x|y|points)="[^"]*"|translate\([^)]*\)')
_ALONE = re.compile(
    r'<g id="\w+">\s*(<(?:path|use)\b[^>]*/>|<text\b[^>]*>[^<]*</text>)\s*</g>'
)
_BREAK = re.compile(r"\s*\n\s*")


def bare(svg: str) -> str:
    """Drop what nobody sees, and turn black into the colour of the text."""
    svg = _METADATA.sub("", svg[svg.index("<svg") :])
    svg = re.sub(r"#000000\b", "currentColor", svg)
    root = '<svg class="figure" role="img" fill="currentColor" '
    svg = svg.replace("<svg ", root, 1)
    svg = _PLACED.sub(lambda x: _BREAK.sub(" ", _LONG.sub(r"\1", x[0])), svg)
    return _BREAK.sub("\n", _ALONE.sub(r"\1", svg))


class Size(NamedTuple):
    """How large a figure is, in pixels of CSS."""

    width: int
    height: int
    least_width: int  # at which the smallest text can still be read


def size_of(svg: str) -> Size:
    """Read the size of a figure from its SVG."""
    found = re.search(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (float(x) for x in found.groups()) if found else (0.0, 0.0)
    sizes = [
        float(size)
        for style, text in re.findall(
            r'<(?:text|tspan)[^>]*style="([^"]*)"[^>]*>([^<]*)', svg
        )
        for size in re.findall(r"font-size:\s*([\d.]+)px", style)
        if text.strip()
    ]
    smallest = min(sizes, default=SIZE) * PIXELS
    pixels = round(width * PIXELS)
    return Size(pixels, round(height * PIXELS), math.ceil(pixels * READABLE / smallest))


FIGURES = "figures"  # the folder in docs/
_IMAGE = re.compile(
    r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+\.svg)(?:#[^)\s]*)?"
    r'(?:\s+"(?P<caption>.*?)")?[^")]*\)'
)


@dataclass(frozen=True)
class Place:
    """A link to a figure, at line `index` of the expanded page."""

    index: int
    origin: Origin
    alt: str
    name: str  # of the file in docs/figures
    caption: str = ""


@dataclass(frozen=True)
class Placed:
    """A figure and where it belongs; `block` is the number of the block it is from."""

    place: Place
    block: int
    svg: str
    touching: str = ""  # which of its labels cannot be read for others


def find_places(page: Page) -> list[Place]:
    """Return the links of a page to files in docs/figures, in order."""
    places = []
    for index, line in page.prose:
        for image in _IMAGE.finditer(line):
            name = _figure_name(page, image["target"])
            if name:
                alt, caption = image["alt"].strip(), (image["caption"] or "").strip()
                places.append(Place(index, line.origin, alt, name, caption))
    return places


def image_problems(page: Page, rendered: "Rendered") -> list[str]:
    """Return what is wrong with the images of a page, whatever its blocks draw."""
    places, problems = find_places(page), []
    named = Counter(place.name for place in places)
    how = '![what it shows](file.svg "What to see in it.")'
    for place in places:
        own = f"{place.name.removesuffix('.svg')}-".startswith(f"{page.name}-")
        wrong = {
            "has no alternative text": not place.alt,
            f"must begin with {page.name}-": not own,
            f"has no caption: {how}": not place.caption,
            "stands in two places": named[place.name] > 1,
        }
        told = f"{place.origin}: the figure {place.name}"
        problems += [f"{told} {what}" for what, is_so in wrong.items() if is_so]
    shown: Counter[str] = Counter()
    for image in rendered.images:
        source = image.get("src", "")
        name = _figure_name(page, source)
        if name:
            shown[name] += 1
        elif not image.get("alt", "").strip():
            problems.append(f"{page.top}: the image {source} has no alternative text")
    for name in (shown - named).elements():
        how = f"write it as ![what it shows](../{FIGURES}/{name})"
        problems.append(f"{page.top}: {name} is linked in a way unknown here: {how}")
    return problems


def touching_problems(placed: list[Placed]) -> list[str]:
    """Return a problem for each figure in which labels touch."""
    return [
        f"{each.place.origin}: in the figure {each.place.name}, {each.touching}"
        for each in placed
        if each.touching
    ]


def place_figures(page: Page, results: list["Result"]) -> list[Placed]:
    """Give each figure to the first free place below its block; none is left over."""
    waiting: list[tuple[Block, str, str]] = []
    events: list[tuple[int, Block | Place]] = [(b.fence.start, b) for b in page.blocks]
    events += [(place.index, place) for place in find_places(page)]
    placed = []
    for _, each in sorted(events, key=lambda event: event[0]):
        if isinstance(each, Block):
            waiting += [(each, *drawn) for drawn in results[each.number].figures]
        elif waiting:
            block, svg, touching = waiting.pop(0)
            placed.append(Placed(each, block.number, svg, touching))
        else:
            problem = f"no block above this place draws {each.name}"
            raise PageError(each.origin, problem)
    for block, *_ in waiting:
        how = f"put ![what it shows](../{FIGURES}/{page.name}-….svg) below the block"
        problem = f"the block leaves a figure without a place: {how}"
        raise PageError(block.fence.opening.origin, problem)
    return placed


def _figure_name(page: Page, target: str) -> str | None:
    """Return the file name of a link into docs/figures, else None."""
    if not page.on_site:
        return None
    folder = page.path.parent.relative_to(page.project.docs).as_posix()
    path = posixpath.normpath(posixpath.join(folder, target.partition("#")[0]))
    inside = posixpath.dirname(path) == FIGURES and path.endswith(".svg")
    return posixpath.basename(path) if inside else None
