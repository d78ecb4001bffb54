"""The pages of the site: mkdocs.yml's navigation, and a page for each module."""

from typing import Any

from address import ROOT
from engine.pages.listing import files_of
from engine.pages.reading import Page
from engine.project import Project

PROJECT = Project(ROOT)


def url(file: str) -> str:
    """Return the address of a source file's page, below the home page."""
    return PROJECT.page_url(PROJECT.docs / file).removeprefix(PROJECT.site_url)


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
    return Page(PROJECT, PROJECT.docs / file).meta


FILES = list(files_of(PROJECT.config["nav"]))
MODULES = module_urls()
PAGES = [*(url(file) for file in FILES), *MODULES.values()]
MARKDOWN = [file for file in FILES if file.endswith(".md")]
CHAPTERS = [file for file in MARKDOWN if front_matter(file).get("kind") == "chapter"]
