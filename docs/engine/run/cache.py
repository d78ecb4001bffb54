"""Remember what the blocks of a page left behind, and what was made of the page.

A page is *fresh* while its text, snippets included, the files of the package that its
run used, the engine and the libraries are what they were, and what was made of it is
still there. Its *results* hold longer: while its code, and that of the package, means
the same. A comment changes nothing, unless the page reads source or lines: of itself,
or of the package. The last few states are kept, so that taking a change back costs no
run.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.pages.reading import Page
from engine.project import ENGINE, Project
from engine.run.fonts import installed

# What shapes the results of blocks, and what shapes nothing that is made of a page.
_RUNNING = (
    *("pages/blocks", "pages/reading"),
    *("run/compiling", "run/running", "run/figures", "run/style", "run/touching"),
    *("run/fonts", "run/shortening"),
)
_USERS = ("__main__", "hooks", "looking", "plugin")  # and the folder results
STATES = 8  # of the results of a page
_SOURCE = re.compile(
    r"\b(getsource\w*|getframeinfo|currentframe|_getframe|\w+_lineno|co_firstlineno"
    r"|traceback|linecache|tokenize|inspect\.(stack|trace|findsource|getcomments)"
    r"|from inspect import .*(stack|trace|findsource|getcomments)|inspect as)\b"
)
_SOURCE_OF = re.compile(r"\b(?:inspect\.)?getsource(?:lines)?\((\w+)\)")
_LIBRARIES = (
    *("torch", "numpy", "matplotlib", "nbformat", "pymdown-extensions"),
    *("fonttools", "pillow"),
)


class Cache:
    """Two small files per page, in .cache/engine."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.root / ".cache" / "engine"

    def is_fresh(self, page: Page) -> bool:
        """Whether making the page again would change nothing."""
        record = self._read(page, "made")
        return (
            record.get("key") == self._page_key(page)
            and self._unchanged(record["inputs"])
            and self._unchanged(record["products"])
        )

    def products(self, page: Page) -> set[str]:
        """Return the files that were made of the page when it last was in order."""
        return set(self._read(page, "made").get("products", {}))

    def store(self, page: Page, inputs: Iterable[str], products: Iterable[str]) -> None:
        """Note that `products` were made of a page, from `inputs`."""
        record = {
            "key": self._page_key(page),
            "inputs": self._digests(inputs),
            "products": self._digests(products),
        }
        self._write(page, "made", record)

    def results(self, page: Page) -> dict[str, Any] | None:
        """Return what the blocks of the page left behind, if it still holds."""
        key, meaning = self._code_key(page), not _reads_package_source(page)
        for record in self._read(page, "results").get("states", []):
            if record["key"] == key and self._unchanged(record["inputs"], meaning):
                results: dict[str, Any] = record["results"]
                return results
        return None

    def store_results(
        self, page: Page, inputs: Iterable[str], results: dict[str, Any]
    ) -> None:
        """Keep what the blocks of a page left behind when they used `inputs`."""
        key = self._code_key(page)
        digests = self._digests(inputs, meaning=not _reads_package_source(page))
        record = {"key": key, "inputs": digests, "results": results}
        states = self._read(page, "results").get("states", [])
        self._write(page, "results", {"states": [record, *states][:STATES]})

    def _page_key(self, page: Page) -> str:
        engine = [
            p
            for p in sorted(ENGINE.rglob("*.py"))
            if p.stem not in _USERS and p.parent.name != "results"
        ]
        files = [*engine, self.project.root / "mkdocs.yml"]
        return _digest("\n".join([*_state(*files), page.text, *page.lines]).encode())

    def _code_key(self, page: Page) -> str:
        files = [ENGINE / f"{name}.py" for name in _RUNNING]
        said = str if _reads_source(page) else meaning_of
        blocks = [(said(block.fence.code), block.left_out()) for block in page.blocks]
        return _digest("\n".join([*_state(*files), repr(blocks)]).encode())

    def _digests(self, names: Iterable[str], meaning: bool = False) -> dict[str, str]:
        return {name: digest_of(self.project.root / name, meaning) for name in names}

    def _unchanged(self, digests: dict[str, str], meaning: bool = False) -> bool:
        return self._digests(digests, meaning) == digests

    def _file(self, page: Page, kind: str) -> Path:
        name = self.project.relative(page.path).replace("/", "-")
        return self.folder / f"{name}.{kind}.json"

    def _read(self, page: Page, kind: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self._file(page, kind).read_text())
        except (OSError, ValueError):
            return {}
        return record

    def _write(self, page: Page, kind: str, record: dict[str, Any]) -> None:
        write(self._file(page, kind), json.dumps(record, indent=1))


def write(path: Path, text: str) -> None:
    """Write a file if it would change, and never leave half of one."""
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, "utf-8")
    half.replace(path)


def digest_of(path: Path, meaning: bool) -> str:
    """Return a digest of a file; of its `meaning`, where it is Python."""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    if meaning and path.suffix == ".py":
        return _digest_of_meaning(content)
    return _digest(content)


def meaning_of(code: str) -> str:
    """Return what is left of Python without comments, blanks and line breaks."""
    try:
        return ast.dump(ast.parse(code))
    except (SyntaxError, ValueError):
        return code


@functools.lru_cache(maxsize=512)
def _digest_of_meaning(content: bytes) -> str:
    return _digest(meaning_of(content.decode("utf-8", "replace")).encode())


def _reads_source(page: Page) -> bool:
    """Whether a page may see how code is written, and on which line."""
    return bool(_SOURCE.search(_code(page)))


def _reads_package_source(page: Page) -> bool:
    """Whether it may see more than the source of what it defines in its own blocks."""
    code = _code(page)
    own = set(re.findall(r"^(?:def|class) (\w+)", code, re.M))
    rest = _SOURCE_OF.sub(lambda x: "" if x.group(1) in own else x.group(), code)
    return bool(_SOURCE.search(rest))


def _code(page: Page) -> str:
    return "\n".join(block.fence.code for block in page.blocks)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@functools.cache
def _state(*files: Path) -> list[str]:
    """Describe the libraries and some files."""
    versions = [f"{name} {_version(name)}" for name in _LIBRARIES]
    drawn = f"with the fonts of the site: {installed()}"
    digests = (_digest(path.read_bytes()) for path in files)
    return [sys.version, *versions, drawn, *digests]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
