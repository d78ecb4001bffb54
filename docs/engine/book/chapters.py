"""Which chapters the book has, and each as it stands in the book."""

import posixpath
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag

from engine.book import code, folds, links
from engine.book.folds import line, new
from engine.pages.reading import CHAPTERS
from engine.project import Project
from engine.site.lists import chapters

# What a reader of the book comes to: text as tokens, a trained translator, and writing
# with it. With all that these build on, they are the core.
LAST = ("tokens", "dates", "kv-cache")

# What only a browser can use, and the marks of what stands there in the page.
_LEFT_OUT = (
    "script, .headerlink, .twemoji, .depth-switch, .depth-minutes, .task-list-control, "
    "[data-exercise], .katex-html"
)
_KEPT = {  # the attributes; a formula keeps all that it has
    *("id", "class", "href", "src", "alt", "width", "height"),
    *("colspan", "rowspan", "start", "type", "lang"),
}


def core(project: Project) -> dict[str, str]:
    """Return the names of the core chapters and their titles, in their order."""
    pages = {page.path.stem: page for page in chapters(project)}
    needed, waiting = set[str](), list(LAST)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += [
            x.removesuffix(".md") for x in pages[name].meta.get("builds_on", ())
        ]
    return {name: page.title for name, page in pages.items() if name in needed}


@dataclass
class Chapter:
    """A chapter of the book: `body` is XHTML but for the name of its namespace."""

    name: str
    title: str
    body: Tag
    pictures: set[str] = field(default_factory=set)  # paths in the site

    @property
    def sections(self) -> list[tuple[str, str]]:
        """The id and the text of each heading of the second level."""
        found = self.body.select("h2[id]")
        return [(str(x["id"]), " ".join(x.get_text().split())) for x in found]

    @classmethod
    def read(cls, site: Path, name: str, url: str, names: Collection[str]) -> "Chapter":
        """Take a chapter from the built site.

        Args:
            site: the folder of the site.
            name: of the chapter, as `masks`.
            url: the address of the site, with a slash at its end.
            names: the chapters of the book; a link to another one leads to the site.

        Raises:
            ValueError: the site does not have the chapter.
        """
        here = f"{CHAPTERS}/{name}/"
        file = site / here / "index.html"
        if not file.is_file():
            raise ValueError(f"{file} is not there: `make build` writes it")
        # As a browser does, lxml ends a paragraph where a block begins.
        soup = BeautifulSoup(file.read_text("utf-8"), "lxml")
        body = soup.find("article")
        if body is None or body.h1 is None:
            raise ValueError(f"{file} has no article with a title")
        address = urljoin(url, here)
        code.wrap(body)  # first: the rest of a page is a tenth of its elements
        for found in body.select(_LEFT_OUT):
            found.decompose()
        for word in body("abbr"):  # its explanation shows where a mouse is
            word.unwrap()
        _online(body, address)
        folds.unfold(body, address)
        pictures = _pictures(body, here)
        links.lead(body, address, {f"{urljoin(url, CHAPTERS)}/{x}/": x for x in names})
        _plain(body)
        return cls(name, body.h1.get_text().strip(), body, pictures)


def _online(body: Tag, address: str) -> None:
    """Say in one line where to find notebook and files, and each live piece."""
    for found in body.select(".chapter-links"):
        text = "Its code, notebook and live pieces: "
        found.replace_with(line(text, address))
    for piece in body.select("figure.live"):
        heading = piece.find_previous(["h2", "h3"], id=True)
        place = f"{address}#{heading['id']}" if isinstance(heading, Tag) else address
        piece.insert_after(line("To be moved in a browser: ", place))
        piece.unwrap()


def _pictures(body: Tag, here: str) -> set[str]:
    """Name each picture by its path in the site; return these paths."""
    found = set[str]()
    for image in body("img"):
        path = posixpath.normpath(posixpath.join(here, str(image["src"])))
        image["src"] = path
        found.add(path)
    return found


def _plain(body: Tag) -> None:
    """Drop attributes that a book does not know, and KaTeX's wrappers."""
    for tag in body.find_all(True):
        if tag.name == "math" or tag.find_parent("math"):
            continue
        tag.attrs = {key: x for key, x in tag.attrs.items() if key in _KEPT}
    for cell in body.select("td code"):  # a name of several words may break in a table
        words = cell.get_text().split("_")
        cell.string = words[0]
        for word in words[1:]:
            cell.extend(["_", new("wbr"), word])
    for text in body("div", class_="arithmatex"):
        text["class"] = "display"
    for mark in body.select(".katex-display, .katex-mathml"):
        mark.unwrap()
