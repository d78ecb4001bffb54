"""A chapter as plain Markdown: all of its code, nothing of the site's own marks."""

from engine.copies.as_markdown import as_markdown
from engine.pages.blocks import squeeze
from engine.pages.reading import Page, render
from engine.project import Project
from engine.site.lists import ORDER
from small_project import Write

LISTS = {ORDER: ["1. [Scale](scale.md): How?"]}


def test_it_has_what_the_page_shows(project: Project) -> None:
    page = Page(project, project.docs / "chapters" / "scale.md")
    text = as_markdown(page, LISTS)
    lines = text.split("\n")
    assert lines[0] == "# Scale"
    assert "*This is <https://example.org/tiny/chapters/scale/> as Markdown.*" in lines
    assert "- scale numbers" in lines
    shown = render(page).code
    assert len(shown) > 8
    for code in shown:
        assert f"\n{squeeze(code.text)}\n" in text, code.text
    for line in (
        '```python title="tiny/scale.py"',
        "```text",
        "**Python**",
        "**A box**",
        r"Why divide? SVG is a format<sup>1</sup>, and $\sqrt{d}$ a number.",
        "See [the home page](https://example.org/tiny/#tiny).",
    ):
        assert line in lines, line
    assert "](https://example.org/tiny/figures/scale-line.svg" in text
    for mark in ("--8<--", "pytest", "*[SVG]", "!!!", "===", "](../", "{ #", "\n\n\n#"):
        assert mark not in text, mark


def test_blank_lines_of_code_stay_and_lists_are_there(write: Write) -> None:
    page = write(f"""
        # Page

        {ORDER}

        ```python
        a = 1


        b = 2
        ```
    """)
    text = as_markdown(page, LISTS)
    assert "1. [Scale](https://example.org/tiny/scale/): How?" in text
    assert "```python\na = 1\n\n\nb = 2\n```" in text
