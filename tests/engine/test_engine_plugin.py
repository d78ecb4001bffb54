"""pytest runs the pages: block by block, over workers, alone, and with coverage."""

import json
import os
import re
import subprocess
import sys

import pytest

from engine.project import ENGINE, Project
from small_project import Write
from test_engine_mistakes import MISTAKES

OPTIONS = ["-p", "engine.plugin", "--codeblocks"]
OPTIONS += ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # quicker


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


def test_workers_share_pages_and_the_count_is_of_all(
    project: Project, write: Write
) -> None:
    write("""
        Words.

        ```python
        import os
        ```

        ```python
        print(os.sep)
        ```

        ```{.text .output}
        /
        ```
    """)
    code, said = call(project, "-n", "2", "-v", "docs")
    assert code == 0, said
    assert (
        "pages: 3, Python blocks: 13 found = 12 run + 1 left out with a reason" in said
    )
    workers = re.findall(r"\[(gw\d)\].*PASSED docs/chapters/scale.md", said)
    assert len(workers) > 10
    assert len(set(workers)) == 1


def test_one_block_can_be_run_alone(project: Project) -> None:
    code, said = call(project, "docs/chapters/scale.md::line 133", "-v")
    assert code == 0, said
    assert "1 passed" in said


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
    write("```python\nprint(2)\n```\n\n```{.text .output}\n1\n```\n", "stale.md")
    write("```python\n", "broken.md")
    (project.docs / "includes" / "no-page.md").write_text("```python\n1 / 0\n```\n")
    code, said = call(project, "docs", "-n", "0")
    assert code == 1
    assert "tiny/checks.py:7: ValueError: value (0) must be above 0" in said
    assert 'File "docs/failing.md", line 4, in <module>' in said
    assert "not run, since the block at docs/failing.md:1 failed" in said
    assert "2 Python blocks found, but 1 run + 0 left out" in said
    assert "docs/stale.md:5: the output is stale" in said
    assert "docs/broken.md:1: no line closes the fence" in said
    assert "no-page" not in said
    assert "engine/" not in said  # no traceback of ours
    assert "pages: 4, Python blocks: 14 found != 12 run + 1 left out" in said


def test_a_contributors_mistakes_fail_in_the_test_of_the_page(
    project: Project,
) -> None:
    chapter = project.docs / "chapters" / "scale.md"
    text = chapter.read_text("utf-8")
    chapter.unlink()
    for number, (old, new, _) in enumerate(MISTAKES.values()):
        assert text.count(old) == 1
        page = text.replace(old, new).replace("scale-line", f"scale{number}-line")
        name = f"scale{number}.md"
        chapter.with_name(name).write_text(page, "utf-8")
    chapter.with_name("right.md").write_text(text.replace("scale-l", "right-l"))
    code, said = call(project, "docs/chapters", "-n", "2")
    assert code == 1
    failed = set(re.findall(r"^(?:FAILED|ERROR) docs/chapters/(\w+).md", said, re.M))
    assert failed == {f"scale{number}" for number in range(len(MISTAKES))}, said
    report, _, _ = said.partition("short test summary info")  # with CI set it is whole
    assert report.count("differs between runs: seed it, as in") == 1


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_page_that_ends_the_process_fails(
    project: Project, write: Write, workers: str
) -> None:
    ends = ["os._exit(0)", "sys.exit(0)", 'os.execv("/bin/true", ["true"])']
    for number, end in enumerate(ends):
        code = f"```python\nimport os, sys\n{end}\n```\n\n```python\n1 / 0\n```\n"
        write(code, f"page{number}.md")
    pages = [f"docs/page{number}.md" for number in range(len(ends))]
    code, said = call(project, *pages, "-n", workers)
    assert code == 1, said
    for page, how in zip(pages, ["os._exit(0)", "0", "os.execv('/bin/t"], strict=True):
        assert re.search(rf"{page}:3: [\w.]+: {re.escape(how)}", said), said
    assert "pages: 3, Python blocks: 6 found != 3 run + 0 left out" in said


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


@pytest.mark.parametrize("option", ["", "--codeblocks"])
def test_without_the_option_markdown_is_left_alone(
    pytester: pytest.Pytester, project: Project, option: str
) -> None:
    result = pytester.runpytest_inprocess(
        "-p",
        "engine.plugin",
        f"--rootdir={project.root}",
        "--collect-only",
        "-q",
        str(project.docs / "index.md"),
        *([option] if option else []),
    )
    names = [line for line in result.outlines if "::" in line]
    assert bool(names) is bool(option)
