"""The places of a page that figures go to: `![alt text](../figures/name.svg)`."""

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.lines import Origin, PageError
from engine.page import Page

if TYPE_CHECKING:
    from engine.rendered import Rendered
    from engine.running import Result

FIGURES = "figures"  # the folder in docs/
_IMAGE = re.compile(
    r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+\.svg)(?:#[^)\s]*)?[^)]*\)"
)


@dataclass(frozen=True)
class Place:
    """A link to a figure, at line `index` of the expanded page."""

    index: int
    origin: Origin
    alt: str
    name: str  # of the file in docs/figures


@dataclass(frozen=True)
class Placed:
    """A figure and where it belongs; `block` is the number of the block it is from."""

    place: Place
    block: int
    svg: str


def find_places(page: Page) -> list[Place]:
    """Return the links of a page to files in docs/figures, in order."""
    inside = {n for f in page.fences for n in range(f.start, f.end + 1)}
    places = []
    for index, line in enumerate(page.lines):
        if index in inside:
            continue
        for image in _IMAGE.finditer(line):
            name = _figure_name(page, image["target"])
            if name:
                places.append(Place(index, line.origin, image["alt"].strip(), name))
    return places


def image_problems(page: Page, rendered: "Rendered") -> list[str]:
    """Return what is wrong with the images of a page, whatever its blocks draw."""
    places = find_places(page)
    problems = [
        f"{place.origin}: the figure {place.name} has no alternative text"
        for place in places
        if not place.alt
    ]
    shown: Counter[str] = Counter()
    for image in rendered.images:
        source = image.get("src", "")
        name = _figure_name(page, source)
        if name:
            shown[name] += 1
        elif not image.get("alt", "").strip():
            problems.append(f"{page.top}: the image {source} has no alternative text")
    for name in (shown - Counter(place.name for place in places)).elements():
        how = f"write it as ![what it shows](../{FIGURES}/{name})"
        problems.append(f"{page.top}: {name} is linked in a way unknown here: {how}")
    return problems


def place_figures(page: Page, results: list["Result"]) -> list[Placed]:
    """Give each figure to the first free place below its block.

    Raises:
        PageError: a figure without a place, or a place without a figure.
    """
    waiting: list[tuple[int, str]] = []
    events: list[tuple[int, int, Place | None]] = []
    events += [(b.fence.start, b.number, None) for b in page.blocks]
    events += [(place.index, -1, place) for place in find_places(page)]
    placed = []
    for _, number, place in sorted(events, key=lambda event: event[0]):
        if place is None:
            waiting += [(number, svg) for svg in results[number].figures]
        elif waiting:
            placed.append(Placed(place, *waiting.pop(0)))
        else:
            problem = f"no block above this place draws {place.name}"
            raise PageError(place.origin, problem)
    for number, _ in waiting:
        opening = page.blocks[number].fence.opening.origin
        how = f"put ![what it shows](../{FIGURES}/{page.name}-….svg) below the block"
        raise PageError(opening, f"the block leaves a figure without a place: {how}")
    return placed


def repeated_names(pages: list[Page]) -> list[str]:
    """Return a problem for each figure name that two places share."""
    first: dict[str, Origin] = {}
    problems = []
    for page in pages:
        for place in find_places(page):
            if place.name in first:
                where = first[place.name]
                problems.append(f"{place.origin}: {place.name} is also used at {where}")
            first.setdefault(place.name, place.origin)
    return problems


def _figure_name(page: Page, target: str) -> str | None:
    """Return the file name of a link into docs/figures, else None."""
    if not page.on_site:
        return None
    folder = page.path.parent.relative_to(page.project.docs).as_posix()
    path = posixpath.normpath(posixpath.join(folder, target.partition("#")[0]))
    inside = posixpath.dirname(path) == FIGURES and path.endswith(".svg")
    return posixpath.basename(path) if inside else None
