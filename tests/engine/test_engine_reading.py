"""Pages are read as the site reads them, and every line knows where it is from."""

from pathlib import Path

import pygments.lexers.python
import pytest
from pygments.lexers.python import Python2Lexer, PythonLexer

from engine.pages.blocks import PYTHON, Origin, PageError, find_fences, number
from engine.pages.reading import Page
from engine.project import Project
from small_project import Write

TEXT = Path("text.md")


def test_lines_keep_their_origin_through_snippets(write: Write) -> None:
    page = write("""
        ---
        description: two lines above the first
        ---

        # Title

        === "Tab"

            ```python
            --8<-- "tiny/scale.py:Scaler.__call__"
            ```

        ;--8<-- "as it is written"

        Last.
    """)
    found = {line.strip(): line.origin for line in page.lines}
    scale = page.project.root / "tiny" / "scale.py"
    assert found["# Title"] == Origin(page.path, 5)
    assert found["if not values:"] == Origin(scale, 27)
    assert found['--8<-- "as it is written"'] == Origin(page.path, 13)
    assert found["Last."] == Origin(page.path, 15)
    indented = next(line for line in page.lines if "def __call__" in line)
    assert indented.startswith("    def")  # as deep as the tab, not as the class


def test_only_pages_of_the_site_have_snippets(project: Project) -> None:
    readme = project.root / "README.md"
    readme.write_text('--8<-- "tiny/scale.py"\n', "utf-8")
    assert Page(project, readme).lines[0] == '--8<-- "tiny/scale.py"'


def test_pages_are_those_of_the_site_and_two_more(project: Project) -> None:
    github = project.root / ".github"
    github.mkdir()
    others = [project.root / "README.md", github / "CONTRIBUTING.md"]
    for path in [*others, github / "OTHER.md", project.docs / "includes" / "part.md"]:
        path.write_text("# Words\n", "utf-8")
    chapter = project.docs / "chapters" / "scale.md"
    assert Project(project.root).pages == [chapter, project.docs / "index.md", *others]


@pytest.mark.parametrize(
    "opening",
    [
        "```python",
        "``` Python",
        "```{.python .annotate}",
        "``` { .py title='a.py' }",
        '```python title="a.py" hl_lines="1" linenums="1"',
        "~~~python",
        "`````python",
    ],
)
@pytest.mark.parametrize("prefix", ["", "    ", "> "])
def test_every_spelling_of_a_python_fence_is_found(opening: str, prefix: str) -> None:
    ticks = opening[: len(opening) - len(opening.lstrip("`~"))]
    lines = [opening, "if True:", "", "    x = 1", ticks, "after"]
    text = "\n".join(f"{prefix}{line}".rstrip(" ") for line in lines)
    (fence,) = find_fences(number(TEXT, text))
    assert fence.is_python
    assert fence.code == "if True:\n\n    x = 1"
    assert (fence.start, fence.end) == (0, 4)


def test_every_language_that_pygments_reads_as_python_is_run() -> None:
    lexers = (x for x in vars(pygments.lexers.python).values() if isinstance(x, type))
    python = [x for x in lexers if issubclass(x, (PythonLexer, Python2Lexer))]
    assert {alias for lexer in python for alias in lexer.aliases} <= PYTHON


@pytest.mark.parametrize(
    "info", ["{.text .python}", "{ .text .annotate .py }", "{.sh .numpy}"]
)
def test_a_fence_that_is_python_and_something_else_is_an_error(
    write: Write, info: str
) -> None:
    page = write(f"```{info}\nassert False\n```\n")
    with pytest.raises(PageError, match=r"page.md:1: a \w+ fence is called Python"):
        _ = page.blocks


def test_a_fence_inside_a_fence_is_text() -> None:
    text = "````markdown\n```python\nx = 1\n```\n````\n```console\n$ make\n```"
    markdown, console = find_fences(number(TEXT, text))
    assert markdown.language == "markdown"
    assert markdown.code == "```python\nx = 1\n```"
    assert console.language == "console"
    assert not console.is_python


def test_marks_and_outputs_belong_to_their_blocks(write: Write) -> None:
    page = write("""
        <!--pytest.mark.skip(reason="too slow, see above")-->

        ```python
        a = 1
        ```

        ```python
        print("b")
        ```

        1. An annotation between them.

        ```{.text .output}
        b
        ```
    """)
    skipped, run = page.blocks
    assert skipped.left_out == "too slow, see above"
    assert run.left_out is None
    assert run.output is not None
    assert run.output.code == "b"
    assert skipped.output is None
    assert [block.line for block in page.blocks] == [3, 7]


def test_title(write: Write) -> None:
    assert write("Text.\n# With `code` { #id .x }\n").title == "With `code`"
