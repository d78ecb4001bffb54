"""The pages of the site: mkdocs.yml's navigation, and a page for each module."""

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


def module_urls() -> dict[str, str]:
    """Return the address of each module's page, by the module's dotted name."""
    found = {}
    for path in sorted((ROOT / "tformer").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if len(parts) > 1 and not any(part.startswith("_") for part in parts):
            found[".".join(parts)] = f"api/{'/'.join(parts)}/"
    return found


def front_matter(file: str) -> dict[str, Any]:
    """Return what a page says about itself before its text."""
    text = (ROOT / "docs" / file).read_text("utf-8")
    _, head, _ = text.split("---\n", 2)
    return dict(yaml.safe_load(head))


FILES = list(_files(CONFIG["nav"]))
MODULES = module_urls()
PAGES = [*(url(file) for file in FILES), *MODULES.values()]
MARKDOWN = [file for file in FILES if file.endswith(".md")]
CHAPTERS = [file for file in MARKDOWN if front_matter(file).get("kind") == "chapter"]
