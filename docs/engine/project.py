"""The project as the engine sees it: where its pages are, and what mkdocs.yml says."""

import ast
import functools
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pathspec
import yaml

PACKAGE = "tformer"  # `package` under `extra` in mkdocs.yml names another one
ENGINE = Path(__file__).parent
PACKAGES = Path(sys.prefix) / "npm" / "node_modules"  # docs/npm/install.py fills it

# GitHub shows these; they are no part of the site, but their Python runs as well.
OTHER_PAGES = ("README.md", ".github/CONTRIBUTING.md")

# As in MkDocs, which leaves these out whatever mkdocs.yml says.
_NEVER_SHOWN = [".*", "/templates/"]


@dataclass(frozen=True)
class Project:
    """A folder with a mkdocs.yml."""

    root: Path

    @classmethod
    def find(cls, start: Path) -> "Project":
        """Return the project that holds the folder `start`."""
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / "mkdocs.yml").is_file():
                return cls(folder)
        raise FileNotFoundError(f"no mkdocs.yml in {start} or in a folder above it")

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """What stands in mkdocs.yml."""
        with (self.root / "mkdocs.yml").open("rb") as file:
            read: dict[str, Any] = yaml.load(file, yaml.Loader)  # `!!python/name` too
        return read

    @property
    def package(self) -> str:
        """The name of the package that the pages are about."""
        return str((self.config.get("extra") or {}).get("package", PACKAGE))

    @functools.cached_property
    def version(self) -> str:
        """The version of the package, which stands in its `__init__.py` alone."""
        text = (self.root / self.package / "__init__.py").read_text("utf-8")
        found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.package}/__init__.py has no line __version__")
        return found[1]

    @property
    def docs(self) -> Path:
        """The folder of the site's pages."""
        return self.root / str(self.config.get("docs_dir", "docs"))

    @property
    def site_url(self) -> str:
        """The address of the site, with a slash at its end."""
        return str(self.config.get("site_url") or "").rstrip("/") + "/"

    @property
    def repo_url(self) -> str:
        """The address of the repository, without a slash at its end."""
        return str(self.config.get("repo_url") or "").rstrip("/")

    @functools.cached_property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The options of each Markdown extension, with paths that hold anywhere."""
        found: dict[str, dict[str, Any] | None] = {}
        for entry in self.config.get("markdown_extensions", []):
            found |= entry if isinstance(entry, dict) else {entry: {}}
        options = {name: dict(given or {}) for name, given in found.items()}
        if snippets := options.get("engine.definitions"):
            bases = snippets.get("base_path", ["."])
            snippets["base_path"] = [str(self.root / base) for base in bases]
        return options

    @functools.cached_property
    def site_pages(self) -> list[Path]:
        """The Markdown files that the site shows."""
        excluded = (self.config.get("exclude_docs") or "").splitlines()
        spec = pathspec.GitIgnoreSpec.from_lines([*_NEVER_SHOWN, *excluded])
        found = sorted(self.docs.rglob("*.md"))
        return [x for x in found if not spec.match_file(x.relative_to(self.docs))]

    @functools.cached_property
    def pages(self) -> list[Path]:
        """All Markdown files whose Python is run."""
        others = (self.root / name for name in OTHER_PAGES)
        return [*self.site_pages, *(path for path in others if path.is_file())]

    def relative(self, path: Path) -> str:
        """Return a path as it reads from the root, or as it is if it lies outside."""
        inside = path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if inside else str(path)

    def tidy(self, text: str) -> str:
        """Shorten the paths in a message to how they read from the root."""
        return text.replace(f"{self.root}{os.sep}", "")

    def page_url(self, path: Path) -> str:
        """Return the address of a page, or of another file in docs/, on the site."""
        if path in (self.root / name for name in OTHER_PAGES):
            return f"{self.repo_url}/blob/HEAD/{self.relative(path)}"
        url = path.relative_to(self.docs).as_posix()
        stem, _, suffix = url.rpartition(".")
        if suffix in ("md", "ipynb") and not url.startswith("notebooks/"):
            url = "" if stem == "index" else stem.removesuffix("/index") + "/"
        return self.site_url + url

    @functools.cached_property
    def public_names(self) -> dict[str, str]:
        """Where each name that can be imported from the package is defined.

        They stand in the package's `__init__.pyi`; folders and modules do not count.
        """
        stub = self.root / self.package / "__init__.pyi"
        found = ast.parse(stub.read_text("utf-8") if stub.exists() else "").body
        return {
            alias.asname or alias.name: node.module or ""
            for node in found
            if isinstance(node, ast.ImportFrom) and node.module != self.package
            for alias in node.names
        }

    def package_files(self) -> list[Path]:
        """Return every file of the package, sources and data."""
        files = filter(Path.is_file, (self.root / self.package).rglob("*"))
        return sorted(path for path in files if "__pycache__" not in path.parts)
