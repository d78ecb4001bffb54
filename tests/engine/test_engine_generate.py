"""Only pages that changed are run again, each in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.project import ENGINE, Project
from engine.run.cache import STATES, Cache
from engine.run.working import preloaded, work
from small_project import Write

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
    assert made(engine("generate")) == {"scale"}  # from what its blocks left behind
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


@pytest.fixture
def counting(project: Project) -> Callable[[], int]:
    """Let the home page count its runs; return how many there were."""
    (project.docs / "index.md").write_text(
        textwrap.dedent("""
            ---
            notebook: true
            ---
            # Words

            ```python
            from pathlib import Path

            import tiny.checks

            count = Path(tiny.checks.__file__).parents[1] / "count.txt"
            print(count.open("a").write("x"))
            ```

            ```{.text .output}
            1
            ```
        """).lstrip(),
        "utf-8",
    )
    return lambda: len((project.root / "count.txt").read_text())


def test_blocks_do_not_run_again_for_new_prose(
    project: Project, engine: Engine, counting: Callable[[], int]
) -> None:
    page = project.docs / "index.md"
    book = project.docs / "notebooks" / "index.ipynb"
    for old, new, runs in [
        ("Words", "Other words", 1),  # in the title
        ("text .output}\n1", "text .output}\n2", 1),  # in the output, which is wrong
        ("output}\n2", "output}\n1", 2),  # and is looked at twice
        ('write("x")', 'write("y")', 2),
        ("", "", 3),
    ]:
        done = engine("generate", "docs/index.md")
        assert done.returncode == ("output}\n2" in page.read_text("utf-8")), done.stderr
        assert counting() == runs
        if old:
            edit(page, old, new)
    assert "Other words" in book.read_text("utf-8")


def test_a_comment_runs_no_page_again(
    project: Project, engine: Engine, counting: Callable[[], int]
) -> None:
    page, checks = project.docs / "index.md", project.root / "tiny" / "checks.py"
    for path, old, new, runs, made_again in [
        (checks, "def check", "# Why.\n\n\ndef check", 1, True),
        (checks, "<= 0", "<= (0)", 1, True),
        (page, "import tiny", "# Ours.\nimport tiny", 1, True),
        (checks, "Checks that", "What", 1, True),  # its docstring may be printed
        (checks, "What", "Checks that", 2, True),
        (checks, "<= (0)", "< 0", 2, True),  # as it was: nothing is run
        (checks, "< 0", "<= 0", 3, True),
        (checks, "", "", 3, True),
        (checks, "", "", 3, False),
    ]:
        done = engine("generate", "docs/index.md")
        assert done.returncode == 0, done.stderr
        assert counting() == runs
        assert bool(made(done)) is made_again
        if old:
            edit(path, old, new)
    book = (project.docs / "notebooks" / "index.ipynb").read_text("utf-8")
    assert "# Ours." in book


@pytest.mark.parametrize(
    ("reads", "package", "own"),
    [
        ("inspect.signature(print)", False, False),
        ("inspect.getsource(own)", False, True),
        ("inspect.getsource(tiny.checks)", True, True),
        ("inspect.getsourcelines(own), inspect.getsourcefile(own)", True, True),
        ("inspect.stack()", True, True),
        ("inspect.currentframe()", True, True),
        ("__import__('traceback')", True, True),
    ],
)
def test_a_page_that_reads_source_runs_again_for_a_comment(
    write: Write, reads: str, package: bool, own: bool
) -> None:
    text = "```python\nimport inspect\nimport tiny.checks\n\n\ndef own():\n"
    text += f"    return 1\n\n\n{reads}\n```\n"
    page = write(text)
    cache, checks = Cache(page.project), page.project.root / "tiny" / "checks.py"
    cache.store_results(page, ["tiny/checks.py"], {"runs": 1})
    assert cache.results(page) == {"runs": 1}
    edit(checks, "def check", "# Why.\ndef check")
    assert (cache.results(page) is None) is package
    edit(checks, "# Why.\ndef check", "def check")
    page = write(text.replace("return 1", "return 1  # one"))
    assert (cache.results(page) is None) is own


def test_the_last_states_of_a_page_are_kept(
    project: Project, engine: Engine, counting: Callable[[], int]
) -> None:
    page = project.docs / "index.md"
    text = page.read_text("utf-8")
    for number in range(STATES + 1):
        page.write_text(text.replace('"x"', repr(str(number))), "utf-8")
        engine("generate", "docs/index.md")
    assert counting() == STATES + 1
    for number in range(STATES, 0, -1):
        page.write_text(text.replace('"x"', repr(str(number))), "utf-8")
        engine("generate", "docs/index.md")
    assert counting() == STATES + 1
    page.write_text(text.replace('"x"', "'0'"), "utf-8")
    engine("generate", "docs/index.md")
    assert counting() == STATES + 2


def test_what_pages_share_is_there(write: Write) -> None:
    page = write("# A page about tiny")
    (page.project.root / "tiny" / "more.py").write_text("import torch", "utf-8")
    names = preloaded(Project(page.project.root), [page])
    assert names[0] == work.__module__  # where a new process begins
    assert names[1:] == ["matplotlib.pyplot", "torch"]
    assert all(importlib.util.find_spec(name) for name in names)


def test_a_run_that_dies_is_a_failure_of_its_page(
    project: Project, engine: Engine
) -> None:
    page = project.docs / "index.md"
    page.write_text("```python\nimport os\nos.abort()\n```\n", "utf-8")
    done = engine("check", "docs/index.md")
    assert done.returncode == 1
    assert "docs/index.md:1: its process died with exit code -6" in done.stderr


def test_check_runs_all_counts_and_writes_nothing(
    project: Project, engine: Engine
) -> None:
    done = engine("check")
    assert (done.returncode, done.stdout) == (
        0,
        "pages: 2, Python blocks: 11 found = 10 run + 1 left out with a reason\n",
    )
    assert not (project.docs / "figures").exists()
    assert not (project.root / ".cache").exists()


def test_what_was_made_is_run_alone(project: Project, engine: Engine) -> None:
    done = engine("alone", "docs/chapters/scale.md")
    assert (done.returncode, done.stderr) == (0, "")
    running = [x for x in done.stdout.splitlines() if x.startswith("running ")]
    assert running == [
        "running docs/downloads/scale.py",
        "running docs/downloads/scale_numpy.py",
        "running docs/notebooks/scale.ipynb",
    ]
    page = project.docs / "chapters" / "scale.md"
    edit(page, 'print("in tabs")', 'print(__file__.endswith("scale.md"))')
    edit(page, "in tabs\n```", "True\n```")
    done = engine("alone", "docs/chapters/scale.md")
    assert done.returncode == 1
    assert "NameError: name '__file__' is not defined" in done.stderr


def test_other_files_are_no_pages(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        engine("check", "docs/includes/abbreviations.md")
    assert "docs/includes/abbreviations.md is no page" in capsys.readouterr().err


def test_project_rules_fail_the_command(project: Project, engine: Engine) -> None:
    edit(
        project.root / "tiny" / "checks.py", '"""Return', '# --8<-- [start:x]\n    """'
    )
    done = engine("generate", "docs/index.md")
    assert done.returncode == 1
    assert "tiny/checks.py:5: the package holds no snippet markers" in done.stderr


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
