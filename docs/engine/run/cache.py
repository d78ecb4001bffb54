"""Remember of each page from what it was made, and what.

A page is *fresh* while its text, snippets included, the files of the package that its
run used, the engine and the libraries are what they were, and what was made of it is
still there.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.pages.reading import Page
from engine.project import ENGINE, Project
from engine.run.fonts import installed

# Files and folders of the engine that shape nothing that is made of a page, and what
# of mkdocs.yml does.
_NO_MAKERS = {"__main__", "mistakes", "plugin", "results", "site", "speed"}
_SETTINGS = ("docs_dir", "site_url", "repo_url", "markdown_extensions", "extra")
_LIBRARIES = ["torch", "numpy", "matplotlib", "nbformat", "pymdown-extensions"]
_LIBRARIES += ["fonttools", "pillow"]


class Cache:
    """A small file per page, in .cache/engine."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def is_fresh(self, page: Page) -> bool:
        """Whether making the page again would change nothing."""
        record = self._read(page)
        return record.get("key") == self._key(page) and all(
            self._digests(record[files]) == record[files]
            for files in ("inputs", "products")
        )

    def products(self, page: Page) -> set[str]:
        """Return the files that were made of the page when it last was in order."""
        return set(self._read(page).get("products", {}))

    def store(
        self, page: Page, inputs: Iterable[str], products: Mapping[str, str]
    ) -> None:
        """Write what was made of a page, text by path, and note from which inputs."""
        for file, text in products.items():
            write(self.project.root / file, text)
        record = {
            "key": self._key(page),
            "inputs": self._digests(inputs),
            "products": self._digests(products),
        }
        write(self._file(page), json.dumps(record, indent=1))

    def _key(self, page: Page) -> str:
        text = "\n".join([*_state(self.project.root), page.text, *page.lines])
        return hashlib.sha256(text.encode()).hexdigest()

    def _digests(self, names: Iterable[str]) -> dict[str, str]:
        return {name: digest_of(self.project.root / name) for name in names}

    def _file(self, page: Page) -> Path:
        name = self.project.relative(page.path).replace("/", "-")
        return self.project.root / ".cache" / "engine" / f"{name}.json"

    def _read(self, page: Page) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self._file(page).read_text())
        except (OSError, ValueError):
            return {}
        return record


def write(path: Path, text: str) -> None:
    """Write a file if it would change, and never leave half of one."""
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, "utf-8")
    half.replace(path)


def digest_of(path: Path) -> str:
    """Return a digest of a file, or nothing where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@functools.cache
def _state(root: Path) -> list[str]:
    """Describe the engine, the settings of the site, and the libraries."""
    modules = sorted(ENGINE.rglob("*.py"))
    files = [x for x in modules if not {x.stem, x.parent.name} & _NO_MAKERS]
    config = {name: Project(root).config.get(name) for name in _SETTINGS}
    settings = json.dumps(config, default=_named, sort_keys=True)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES]
    fonts = f"fonts: {installed()}"
    return [sys.version, *versions, fonts, settings, *map(digest_of, files)]


def _named(x: Any) -> str:
    """Name what YAML made of `!!python/name`: its repr has an address."""
    return str(getattr(x, "__qualname__", type(x).__name__))
