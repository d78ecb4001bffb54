"""Only pages that changed are run again, each in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.project import ENGINE, Project

Engine = Callable[..., "Done"]


@dataclass
class Done:
    """A command that came to its end."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def engine(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Engine:
    """Return the command line of the engine, in the small project."""
    monkeypatch.chdir(project.root)

    def call(*arguments: str) -> Done:
        code = main(list(arguments))
        return Done(code, *capsys.readouterr())

    return call


def made(done: Done) -> set[str]:
    lines = (line for line in done.stdout.splitlines() if line.startswith("made "))
    return {Path(line.split()[1].rstrip(":")).stem for line in lines}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


MADE = [
    "figures/scale-line.svg",
    "notebooks/scale.ipynb",
    "downloads/scale.py",
    "downloads/scale_numpy.py",
]


@pytest.mark.nightly
def test_pages_are_run_when_what_they_use_changes(
    project: Project, engine: Engine
) -> None:
    root, docs = project.root, project.docs
    first = engine("generate")
    assert first.returncode == 0, first.stderr
    assert made(first) == {"scale", "index"}
    figure, book, file, twin = (docs / name for name in MADE)
    assert "<title>A line that rises" in figure.read_text("utf-8")
    assert json.loads(book.read_text("utf-8"))["nbformat"] == 4
    assert "class Scaler" in file.read_text("utf-8")
    assert "numpy" in twin.read_text("utf-8")

    before = os.times().children_user
    command = [sys.executable, str(ENGINE), "generate"]
    again = subprocess.run(command, cwd=root, capture_output=True, check=True)
    assert again.stdout == b""  # nothing to do, and done quickly
    assert os.times().children_user - before < 1.0

    orphan = docs / "figures" / "of-a-page-that-is-gone.svg"
    orphan.write_text("<svg/>", "utf-8")
    kept = [path.stat().st_mtime_ns for path in (figure, book, file, twin)]
    edit(docs / "index.md", "# Tiny", "# Tinier")
    assert made(engine("generate")) == {"index"}
    assert not orphan.exists()
    assert [p.stat().st_mtime_ns for p in (figure, book, file, twin)] == kept

    # `stored` is imported by the chapter, its data read; `index` uses neither.
    edit(root / "tiny" / "stored.py", "float(", "1.0 * float(")
    assert made(engine("generate")) == {"scale"}
    edit(root / "tiny" / "data" / "widths.json", "16.0", "25.0")
    done = engine("generate")
    assert made(done) == {"scale"}
    assert figure.stat().st_mtime_ns > kept[0]
    figure.unlink()
    assert made(engine("generate")) == {"scale"}
    assert figure.exists()

    # A page that fails is said, leaves what it made before, and is tried again.
    edit(root / "tiny" / "scale.py", "value / math.sqrt", "value * math.sqrt")
    for _ in range(2):
        failed = engine("generate", "docs/chapters/scale.md")
        assert failed.returncode == 1
        assert made(failed) == {"scale"}
        assert "docs/chapters/scale.md:41: the output is stale" in failed.stderr
        assert "-[0.7071067811865475, 1.414213562373095]" in failed.stderr
        assert figure.exists()


def test_a_run_that_dies_is_a_failure_of_its_page(
    project: Project, engine: Engine
) -> None:
    page = project.docs / "index.md"
    page.write_text("```python\nimport os\nos.abort()\n```\n", "utf-8")
    done = engine("generate", "docs/index.md")
    assert done.returncode == 1
    assert "docs/index.md:1: its process died" in done.stderr


def test_other_files_are_no_pages(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        engine("generate", "docs/includes/abbreviations.md")
    assert "docs/includes/abbreviations.md is no page" in capsys.readouterr().err


def test_downloads_are_written_without_running_a_page(
    project: Project, engine: Engine
) -> None:
    chapter = project.docs / "chapters" / "scale.md"
    edit(chapter, "stored_width())(", "1 / 0)(")
    orphan = project.docs / "downloads" / "gone.py"
    orphan.parent.mkdir()
    orphan.write_text("", "utf-8")
    done = engine("downloads")
    assert (done.returncode, done.stderr) == (0, "")
    files = sorted(path.name for path in orphan.parent.iterdir())
    assert files == ["scale.py", "scale_numpy.py"]
    length = (orphan.parent / "scale.py").read_text("utf-8").count("\n")
    assert f"docs/downloads/scale.py: {length} lines" in done.stdout
    edit(chapter, "question: How?", "question: How?\ncopy: [tiny/gone.py]")
    done = engine("downloads")
    assert done.returncode == 1
    assert "docs/chapters/scale.md:3: `copy:` names tiny/gone.py" in done.stderr
