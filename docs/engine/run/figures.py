"""Figures: how they look, and how they become SVG that follows the page's scheme."""

import html
import io
import posixpath
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.pages.blocks import Origin, PageError
from engine.pages.reading import Page

if TYPE_CHECKING:
    from engine.pages.reading import Rendered
    from engine.run.running import Result


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
    problems += [
        f"{place.origin}: the figure {place.name} must begin with {page.name}-"
        for place in places
        if place.name != f"{page.name}.svg"
        and not place.name.startswith(f"{page.name}-")
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
