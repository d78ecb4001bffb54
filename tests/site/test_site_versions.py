"""The book of a release says which it is, and that the newest page is the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from address import ROOT, read

PAGE = "changelog"
BANNER = "This is the book as it was at release"


def html_of(folder: Path, **environment: str) -> str:
    """Build one page, and return it."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder],
        cwd=ROOT,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "ENGINE_PAGE": f"docs/{PAGE}.md",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (folder / PAGE / "index.html").read_text("utf-8")


@pytest.mark.nightly
def test_the_book_of_a_release_leads_to_the_newest(tmp_path: Path) -> None:
    """mike sets this variable, and would put the version into the address."""
    newest = f"{read()[1]}/{PAGE}/"
    kept = html_of(tmp_path / "kept", MIKE_DOCS_VERSION="0.2.0")
    assert f'<link rel="canonical" href="{newest}">' in kept
    assert f"{BANNER} 0.2.0." in kept
    assert re.search(rf'{BANNER}.*?<a href="{newest}">', kept, re.DOTALL)


def test_the_newest_has_no_banner(site: Path) -> None:
    for page in ("", f"{PAGE}/"):
        html = (site / page / "index.html").read_text("utf-8")
        assert f'<link rel="canonical" href="{read()[1]}/{page}">' in html
        assert BANNER not in html
        assert "md-banner" not in html.partition("<body")[2]
