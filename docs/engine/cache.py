"""Remember for which sources a page was run, and what was made of it then."""

import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.page import Page
from engine.project import ENGINE, Project

_LIBRARIES = ("torch", "numpy", "matplotlib", "nbformat", "pymdown-extensions")


class Cache:
    """One small file per page, in .cache/engine.

    A page is fresh while its text, snippets included, the files of the package that
    its run used, the engine and the libraries are what they were, and what was made of
    it is still there.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.root / ".cache" / "engine"

    def is_fresh(self, page: Page) -> bool:
        """Whether running the page again would change nothing."""
        record = self._record(page)
        files = {**record.get("inputs", {}), **record.get("products", {})}
        return record.get("key", {}) == {"sha256": self._key(page)} and all(
            self._digest_of(name) == digest for name, digest in files.items()
        )

    def products(self, page: Page) -> set[str]:
        """Return the files that the page's last good run made."""
        return set(self._record(page).get("products", {}))

    def store(self, page: Page, inputs: Iterable[str], products: Iterable[str]) -> None:
        """Note that a page was run, from `inputs`, and gave `products`."""
        record = {
            "key": {"sha256": self._key(page)},
            "inputs": {name: self._digest_of(name) for name in inputs},
            "products": {name: self._digest_of(name) for name in products},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write(self._file(page), json.dumps(record, indent=1))

    def _record(self, page: Page) -> Mapping[str, Mapping[str, str]]:
        try:
            record: dict[str, dict[str, str]] = json.loads(self._file(page).read_text())
        except (OSError, ValueError):
            return {}
        return record

    def _file(self, page: Page) -> Path:
        name = self.project.relative(page.path).replace("/", "-")
        return self.folder / f"{name}.json"

    def _digest_of(self, name: str) -> str:
        path = self.project.root / name
        return _digest(path.read_bytes()) if path.is_file() else ""

    def _key(self, page: Page) -> str:
        text = "\n".join([self._surroundings, page.text, *page.lines])
        return _digest(text.encode())

    @functools.cached_property
    def _surroundings(self) -> str:
        files = [*sorted(ENGINE.glob("*.py")), self.project.root / "mkdocs.yml"]
        versions = [f"{name} {_version(name)}" for name in _LIBRARIES]
        return "\n".join(
            [sys.version, *versions, *(_digest(f.read_bytes()) for f in files)]
        )


def write(path: Path, text: str) -> None:
    """Write a file if it would change, and never leave half of one."""
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, "utf-8")
    half.replace(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
