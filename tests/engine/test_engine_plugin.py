"""pytest runs the pages: block by block, over workers, alone, and with coverage."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engine.making import generate
from engine.pages.reading import Page
from engine.project import ENGINE, Project
from engine.run.cache import Cache
from small_project import Write
from test_engine_mistakes import MISTAKES

OPTIONS = ["-p", "engine.plugin", "--codeblocks"]
OPTIONS += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # quicker
WORKERS = ("-n", "2", "--dist", "loadfile")
# Pages that are meant to fail: each says at its end how.
FAILING = sorted((Path(__file__).parent / "pages").glob("*.md"))
ENDS = {  # what ends a process, and how that is told
    "os._exit(0)": r"os\._exit\(0\)",
    "sys.exit(0)": "0",
    'os.execv("/bin/true", ["true"])': r"os\.execv\('/bin/t",
}


def call(project: Project, *arguments: str) -> tuple[int, str]:
    """Run pytest on the small project; return the exit code and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *arguments],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(ENGINE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.nightly
def test_what_is_wrong_fails_in_the_test_of_its_page(project: Project) -> None:
    """Mistakes of contributors, and pages that fail."""
    chapter, wanted = project.docs / "chapters" / "scale.md", {}
    text = chapter.read_text("utf-8")
    chapter.unlink()
    for number, (old, new, says) in enumerate(MISTAKES.values()):
        assert text.count(old) == 1, old
        page = text.replace(old, new).replace("scale-line", f"scale{number}-line")
        chapter.with_name(f"scale{number}.md").write_text(page, "utf-8")
        for name in ("scale-line", "scale.md"):
            says = says.replace(name, name.replace("scale", f"scale{number}"))
        wanted[f"docs.chapters.scale{number}.md"] = re.escape(says)
    chapter.with_name("right.md").write_text(text.replace("scale-l", "right-l"))
    for source in FAILING:
        page = source.read_text("utf-8")
        folder = "docs/chapters" if "kind: chapter" in page else "docs"
        (project.root / folder / source.name).write_text(page, "utf-8")
        case = f"{folder.replace('/', '.')}.{source.name}"
        wanted[case] = re.search(r"<!-- fails: (.*) -->\s*\Z", page)[1]
    report = project.root / "report.xml"
    code, said = call(project, *WORKERS, "docs", "-v", f"--junitxml={report}")
    assert code == 1
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        told = "".join(str(x.text) for x in case.iter("failure"))
        page = case.get("classname", "")
        found[page] = found.get(page, "") + told
    assert {page for page, told in found.items() if told} == wanted.keys(), said
    for page, told in wanted.items():
        assert re.search(told, found[page], re.DOTALL), f"{page}: {found[page]}"
    workers = re.findall(r"\[(gw\d)\].*PASSED docs/chapters/right.md", said)
    assert len(workers) > 10
    assert len(set(workers)) == 1


@pytest.mark.nightly
def test_the_site_takes_what_is_in_order_and_measures_no_time(
    project: Project, write: Write
) -> None:
    scale = project.docs / "chapters" / "scale.md"
    clock = write("```python\nfrom time import perf_counter\n```\n", "clock.md").path

    def kept() -> list[Path]:
        cache, pages = Cache(project), (scale, clock)
        return [path for path in pages if cache.is_fresh(Page(project, path))]

    code, said = call(project, f"{scale}::line 133", "-n", "0")
    assert code == 0, said
    assert "1 passed" in said
    assert kept() == []
    code, said = call(project, "docs", "-n", "0")
    assert code == 0, said
    assert "Python blocks: 12 found = 11 run + 1 left out with a reason" in said
    assert kept() == [scale]
    made = {path: path.read_bytes() for path in project.docs.rglob("scale*.*")}
    assert {path.suffix for path in made} == {".md", ".svg", ".ipynb", ".py"}
    shutil.rmtree(project.root / ".cache")
    assert generate(project, [scale]) == []
    assert made == {path: path.read_bytes() for path in made}


def test_failures_are_told_and_counted(project: Project, write: Write) -> None:
    write(
        """
        ```python
        --8<-- "tiny/checks.py"

        check_positive(0)
        ```
        ```python
        print("never")
        ```
        """,
        "failing.md",
    )
    stale = "```python\nprint(2)\n```\n\n```{.text .output}\n1\n```\n"
    page = write(stale, "stale.md")
    write("```python\n", "broken.md")
    for number, end in enumerate(ENDS):
        write(f"```python\nimport os, sys\n{end}\n```\n", f"end{number}.md")
    (project.docs / "includes" / "no-page.md").write_text("```python\n1 / 0\n```\n")
    code, said = call(project, "docs", "-n", "0")
    assert code == 1
    assert "tiny/checks.py:7: ValueError: value (0) must be above 0" in said
    assert 'File "docs/failing.md", line 4, in <module>' in said
    assert "not run, since the block at docs/failing.md:1 failed" in said
    assert "2 Python blocks found, but 1 run + 0 left out" in said
    assert "docs/stale.md:5: the output is stale" in said
    assert not Cache(project).is_fresh(page)
    assert "docs/broken.md:1: no line closes the fence" in said
    for number, told in enumerate(ENDS.values()):
        assert re.search(rf"docs/end{number}.md:3: [\w.]+: {told}", said), said
    assert "no-page" not in said
    assert "engine/plugin.py" not in said  # no traceback of ours
    assert "pages: 7, Python blocks: 17 found != 15 run + 1 left out" in said


def test_coverage_sees_embedded_source(project: Project, write: Write) -> None:
    page = write("""
        ```python
        import math

        check_positive = abs
        --8<-- "tiny/scale.py:scale"

        scale([1.0], 4.0)
        ```
    """)
    report = project.root / "coverage.json"
    code, said = call(
        project, str(page.path), "--cov=tiny", f"--cov-report=json:{report}", "-n", "0"
    )
    assert code == 0, said
    assert "never imported" not in said
    files = json.loads(report.read_text())["files"]
    source = (project.root / "tiny" / "scale.py").read_text().splitlines()
    lines = {source[n - 1].strip() for n in files["tiny/scale.py"]["executed_lines"]}
    assert (
        "return [value / math.sqrt(check_positive(width)) for value in values]" in lines
    )
    assert "return value ** (1 / ROOT)" not in lines
    assert files["tiny/checks.py"]["executed_lines"] == []
