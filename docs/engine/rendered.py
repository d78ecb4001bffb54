"""A page as the site renders it: the code, the images and the headings it shows."""

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import markdown  # type: ignore[import-untyped]
from mkdocs.utils.yaml import yaml_load

from engine.lines import snippet_options
from engine.page import Page
from engine.project import Project

_BUILTIN = ["toc", "tables", "fenced_code"]  # MkDocs adds these
_VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}


@dataclass(frozen=True)
class ShownCode:
    """A code block and the language it is highlighted in."""

    language: str
    text: str


@dataclass
class Rendered:
    """What the HTML of a page holds."""

    code: list[ShownCode] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)  # of the second level
    images: list[dict[str, str]] = field(default_factory=list)


def render(page: Page) -> Rendered:
    """Render a page with the extensions of mkdocs.yml, and read the HTML."""
    names, options = _extensions(page.project)
    if not page.on_site:
        names = [name for name in names if name != "engine.definitions"]
    converter = markdown.Markdown(extensions=names, extension_configs=options)
    reader = _Reader()
    reader.feed(converter.convert("\n".join(page.body)))
    reader.close()
    return reader.rendered


@functools.cache
def _extensions(project: Project) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return names and options of the extensions, as MkDocs hands them to Markdown."""
    with (project.root / "mkdocs.yml").open("rb") as file:
        entries = yaml_load(file).get("markdown_extensions", [])
    options: dict[str, dict[str, Any]] = {}
    for entry in entries:
        options |= entry if isinstance(entry, dict) else {entry: {}}
    names = [*(name for name in _BUILTIN if name not in options), *options]
    # Without these, what a block is highlighted as cannot be read from the HTML.
    highlight = {"pygments_lang_class": True, "use_pygments": True}
    options["pymdownx.highlight"] = options.get("pymdownx.highlight", {}) | highlight
    if "engine.definitions" in options:
        options["engine.definitions"] = snippet_options(project)
    return names, {name: values or {} for name, values in options.items()}


@dataclass
class _Open:
    """An element whose end was not read yet."""

    tag: str
    classes: list[str]
    text: list[str] = field(default_factory=list)

    @property
    def language(self) -> str:
        """The language that a class names, or the kind of a custom fence."""
        for name in self.classes:
            if name.startswith("language-"):
                return name.removeprefix("language-")
        return self.classes[0] if self.tag == "pre" and self.classes else ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rendered = Rendered()
        self.open: list[_Open] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.rendered.images.append(values)
        if tag not in _VOID:
            self.open.append(_Open(tag, values.get("class", "").split()))

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {element.tag for element in self.open}:
            return
        while (element := self.open.pop()).tag != tag:
            pass  # HTML lets the end of `li` and `p` be left out
        text = "".join(element.text)
        if tag == "pre" and not self._among("linenodiv"):
            around = [element, *reversed(self.open)]
            languages = (each.language for each in around)
            language = next((name for name in languages if name), "")
            self.rendered.code.append(ShownCode(language.lower(), text))
        elif tag == "code" and self.open and self.open[-1].tag == "pre":
            self.open[-1].classes += element.classes
        elif tag == "a" and "headerlink" in element.classes:
            for parent in self.open:
                del parent.text[len(parent.text) - len(element.text) :]
        elif tag == "h2":
            self.rendered.headings.append(" ".join(text.split()))

    def _among(self, name: str) -> bool:
        return any(name in element.classes for element in self.open)
