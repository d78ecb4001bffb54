"""A small project of its own for every test: a package `tiny` and a site about it."""

import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.pages.reading import Page
from engine.project import Project
from small_project import SMALL, Write


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Copy the small project, and forget its package afterwards."""
    root = tmp_path / "small"
    shutil.copytree(SMALL, root, ignore=shutil.ignore_patterns("__pycache__"))
    yield Project(root)
    for name in list(sys.modules):
        if name.partition(".")[0] == "tiny":
            del sys.modules[name]


@pytest.fixture
def write(project: Project) -> Write:
    """Return a function that writes a page of the small site and reads it."""

    def write_page(text: str, name: str = "page.md") -> Page:
        path = project.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
        return Page(Project(project.root), path)

    return write_page
