"""What reads, runs and compares pages needs neither MkDocs nor its theme."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.utils.meta import get_data

from engine.pages.reading import front_matter
from engine.project import ENGINE, Project
from small_project import SMALL

PROJECT = Project.find(Path(__file__).parents[2])
# The folder of hooks but for what renders a page, or writes README, without a site.
WITHOUT_A_SITE = {"captions", "lists"}
NOT_IMPORTED = {"__main__", "scan"}  # they run; the second one where transformers is

WITHOUT = """
import importlib, sys
from importlib.abc import MetaPathFinder

REFUSED = {"mkdocs", "material", "mkdocs_jupyter", "mkdocstrings"}

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is refused")

sys.meta_path.insert(0, Refuse())
"""
IMPORTS = """
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
RUNS = """
from pathlib import Path
from engine import making
from engine.project import Project

if __name__ == "__main__":
    project = Project(Path(sys.argv[1]))
    problems = making.generate(project)
    print(*problems, sep="\\n", file=sys.stderr)
    made = [*project.docs.rglob("*.svg"), *project.docs.rglob("*.ipynb")]
    print(*sorted(path.name for path in made))
"""


def without_mkdocs(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + code, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ENGINE.parent)},
        capture_output=True,
        text=True,
    )


def modules() -> list[str]:
    """Every module of the engine but the hooks."""
    found = []
    for path in sorted(ENGINE.rglob("*.py")):
        parts = path.relative_to(ENGINE.parent).with_suffix("").parts
        is_hook = parts[1] == "site" and path.stem not in WITHOUT_A_SITE
        if not is_hook and path.stem not in NOT_IMPORTED:
            found.append(".".join(parts).removesuffix(".__init__"))
    return found


def test_all_but_the_hooks_is_imported_without_them() -> None:
    names = modules()
    assert {"engine.plugin", "engine.making", "engine.site.captions"} <= {*names}
    assert len(names) > 35
    done = without_mkdocs(IMPORTS, *names)
    assert done.returncode == 0, done.stderr
    done = without_mkdocs(IMPORTS, "engine.site.hooks")
    assert (
        "mkdocs.config.defaults is refused" in done.stderr or "refused" in done.stderr
    )


@pytest.mark.nightly
def test_a_page_is_run_and_its_copies_are_made_without_them(tmp_path: Path) -> None:
    root = tmp_path / "small"
    shutil.copytree(SMALL, root, ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "run.py"  # pages are run in processes that import it anew
    script.write_text(WITHOUT + RUNS, "utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(root)],
        env={**os.environ, "PYTHONPATH": str(ENGINE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip(), done.stderr
    assert done.stdout.splitlines()[-1].split() == ["scale-line.svg", "scale.ipynb"]


def test_front_matter_is_read_as_mkdocs_reads_it() -> None:
    texts = [path.read_text("utf-8") for path in PROJECT.site_pages]
    texts += [
        "---\na: 1\n...\n\n\nText\n",
        "---\n- a\n---\nText\n",
        "---\na: [\n---\nT\n",
    ]
    assert sum(bool(front_matter(text)[1]) for text in texts) > 40
    for text in texts:
        if text.startswith("---"):
            assert front_matter(text) == get_data(text)
    assert front_matter("Note: no front matter\n") == ("Note: no front matter\n", {})
