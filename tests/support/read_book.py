"""An EPUB as a test reads it, and what is wrong with it."""

import posixpath
from pathlib import Path
from urllib.parse import unquote, urldefrag
from xml.etree import ElementTree
from zipfile import ZIP_STORED, ZipFile

from bs4 import BeautifulSoup, Tag

FOLDER = "EPUB/"
XHTML, MATHML = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/1998/Math/MathML}"
# What only a browser has.
MOVES = ("script", "input", "button", "details", "summary", "iframe", "canvas", "form")


class ReadBook:
    """An EPUB, unpacked; its pages parsed as XML, so that a wrong one raises."""

    def __init__(self, file: Path) -> None:
        with ZipFile(file) as archive:
            self.entries = archive.infolist()
            self.files = {
                x.filename.removeprefix(FOLDER): archive.read(x) for x in self.entries
            }
        self.pages = {
            name: ElementTree.fromstring(data)
            for name, data in self.files.items()
            if name.endswith(".xhtml")
        }

    def all(self, page: str, tag: str) -> list[ElementTree.Element]:
        """Return the elements of a page."""
        return list(self.pages[page].iter(tag))

    def problems(self, site: Path, address: str) -> list[str]:
        """Return what is wrong: links, pictures, ids, and what a book cannot do."""
        wrong = []
        if (self.entries[0].filename, self.entries[0].compress_type) != (
            "mimetype",
            ZIP_STORED,
        ):
            wrong.append("mimetype must come first, not compressed")
        used = set()
        for page, tree in self.pages.items():
            ids = [x.get("id") for x in tree.iter() if x.get("id")]
            wrong += [
                f"{page}: two have the id {x}" for x in {*ids} if ids.count(x) > 1
            ]
            wrong += [f"{page}: <{x}>" for x in MOVES if self.all(page, XHTML + x)]
            for image in self.all(page, f"{XHTML}img"):
                used.add(image.get("src"))
                if image.get("src") not in self.files or not image.get("alt"):
                    wrong.append(f"{page}: the picture {image.attrib}")
            for link in self.all(page, f"{XHTML}a"):
                wrong += self._link_problems(page, link.get("href", ""), site, address)
        pictures = {x for x in self.files if x.endswith((".svg", ".png"))}
        return wrong + [f"nobody shows {x}" for x in sorted(pictures - used)]

    def _link_problems(
        self, page: str, href: str, site: Path, address: str
    ) -> list[str]:
        target, fragment = urldefrag(href)
        if target.startswith(address):
            return (
                [] if on_site(site, target.removeprefix(address), fragment) else [href]
            )
        if target.startswith("https://"):
            return []
        inside = self.pages.get(posixpath.normpath(target) if target else page)
        found = inside is not None and (
            not fragment or any(x.get("id") == fragment for x in inside.iter())
        )
        return [] if found else [f"{page}: {href} leads nowhere"]


def on_site(site: Path, path: str, fragment: str) -> bool:
    """Whether a built site has a page, and the anchor in it: `a=b` is a state."""
    file = site / unquote(path)
    file = file / "index.html" if path.endswith("/") or not path else file
    if not fragment or "=" in fragment or not file.is_file():
        return file.is_file()
    return f'id="{fragment}"' in file.read_text("utf-8")


def article(site: Path, name: str) -> Tag:
    """Return a chapter as the site has it."""
    text = (site / "chapters" / name / "index.html").read_text("utf-8")
    found = BeautifulSoup(text, "lxml").find("article")
    assert isinstance(found, Tag)
    return found


def code_of_page(site: Path, name: str) -> list[str]:
    """Return the code of a chapter that the book has to show, in any order.

    Docstrings stand there with their first line, as a page shows them; what only draws
    a figure is left out.
    """
    page = article(site, name)
    for fold in page("details"):
        title = fold.summary.get_text() if fold.summary else ""
        if title.startswith("The code of this") and not fold.find("p"):
            fold.decompose()
    for rest in page.select(".fold-rest"):
        rest.decompose()
    return sorted(code.get_text().rstrip("\n") for code in page.select("pre > code"))


def code_of_book(book: ReadBook, name: str) -> list[str]:
    """Return the code of a chapter of the book."""
    blocks = book.all(f"{name}.xhtml", f"{XHTML}pre")
    return sorted("".join(block.itertext()).rstrip("\n") for block in blocks)
