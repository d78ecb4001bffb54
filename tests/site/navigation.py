"""The pages of the site, from the navigation in mkdocs.yml."""

from collections.abc import Iterator
from typing import Any

import yaml

from address import ROOT, SOURCE

CONFIG = yaml.safe_load(SOURCE.read_text("utf-8"))


def _files(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _files(part)


def url(file: str) -> str:
    """Return the address of a source file's page, below the home page."""
    stem = file.removesuffix(".md").removesuffix(".ipynb")
    return "" if stem == "index" else stem.removesuffix("/index") + "/"


def front_matter(file: str) -> dict[str, Any]:
    """Return what a page says about itself before its text."""
    text = (ROOT / "docs" / file).read_text("utf-8")
    _, head, _ = text.split("---\n", 2)
    return dict(yaml.safe_load(head))


FILES = list(_files(CONFIG["nav"]))
PAGES = [url(file) for file in FILES]
MARKDOWN = [file for file in FILES if file.endswith(".md")]
CHAPTERS = [file for file in MARKDOWN if front_matter(file).get("kind") == "chapter"]
REFERENCE = [file for file in FILES if file.startswith("reference/")]
