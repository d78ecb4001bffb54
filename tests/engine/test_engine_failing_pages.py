"""Pages that are meant to fail: each says at its end how."""

import re
import shutil
from pathlib import Path

import pytest

from engine.project import Project
from small_project import problems_of

PAGES = sorted((Path(__file__).parent / "pages").glob("*.md"))


@pytest.mark.parametrize("source", PAGES, ids=lambda path: path.stem)
def test_page_fails_as_it_says(source: Path, project: Project) -> None:
    """The failure names the file and line, in the package where it is there."""
    path = project.docs / source.name
    shutil.copy(source, path)
    said = re.search(r"<!-- fails: (.*) -->\s*\Z", source.read_text("utf-8"))
    assert said, "the page does not say how it fails"
    found = "\n".join(problems_of(project, path))
    assert re.search(said[1], found, re.DOTALL), found
