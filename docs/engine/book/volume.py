"""The whole book, before it is an EPUB or a PDF: chapters, pictures, style."""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.book import code, figures, formulas
from engine.book.chapters import Chapter, core
from engine.project import Project

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Volume:
    """What both files of the book are made of.

    Attributes:
        title, about: the name of the book, and a sentence.
        author, version, address: as the project says them.
        chapters: in their order.
        pictures: figures and formulas, as SVG, by their paths in the book.
        fonts: the CSS of the site's fonts, with the files of the built site.
    """

    title: str
    about: str
    author: str
    version: str
    address: str
    chapters: list[Chapter]
    pictures: dict[str, str]
    fonts: str

    @classmethod
    def read(cls, project: Project, site: Path, *only: str) -> "Volume":
        """Take the core chapters, or `only` some of them, from the built site.

        Raises:
            ValueError: the site lacks one of them, or a picture.
        """
        names = [x for x in core(project) if x in only or not only]
        url = project.site_url
        chapters = [Chapter.read(site, name, url, names) for name in names]
        pictures = {}
        for path in sorted(set().union(*(x.pictures for x in chapters))):
            if not path.endswith(".svg") or not (site / path).is_file():
                raise ValueError(f"{site / path}: no SVG of a built site")
            pictures[path] = figures.plain((site / path).read_text("utf-8"))
        marks = [mark for x in chapters for mark in x.body.select("span.katex")]
        drawn = formulas.draw([*dict.fromkeys(map(formulas.latex_of, marks))])
        for chapter in chapters:
            formulas.put(chapter.body, drawn)
        pictures |= {x.path: x.svg for x in drawn.values()}
        declared = tomllib.loads((project.root / "pyproject.toml").read_text("utf-8"))
        return cls(
            title=str(project.config["site_name"]),
            about=str(project.config["site_description"]).strip(),
            author=", ".join(x["name"] for x in declared["project"]["authors"]),
            version=project.version,
            address=url,
            chapters=chapters,
            pictures=pictures,
            fonts=_fonts(project, site),
        )

    @cached_property
    def style(self) -> str:
        """The CSS of both files."""
        return f"{(_HERE / 'book.css').read_text('utf-8')}\n{code.rules()}\n"

    @property
    def of_formulas(self) -> str:
        """The CSS for readers that set MathML."""
        return (_HERE / "formulas.css").read_text("utf-8")


def _fonts(project: Project, site: Path) -> str:
    """Return the rules for the site's fonts, that hold in a page anywhere."""
    rules = (project.docs / "assets" / "css" / "fonts.css").read_text("utf-8")
    folder = (site.resolve() / "assets" / "fonts").as_uri()
    return rules.replace("../fonts", folder)
