"""A chapter as plain Markdown: all of its code, nothing of the site's own marks."""

from engine.copies.as_markdown import as_markdown
from engine.pages.blocks import squeeze
from engine.pages.reading import Page, render
from engine.project import Project
from engine.site.lists import ORDER

LISTS = {ORDER: ["1. [Scale](scale.md): How?"]}


def test_it_has_what_the_page_shows(project: Project) -> None:
    chapter = project.docs / "chapters" / "scale.md"
    chapter.write_text(f"{chapter.read_text('utf-8')}\n{ORDER}\n", "utf-8")
    page = Page(project, chapter)
    text = as_markdown(page, LISTS)
    lines = text.split("\n")
    assert lines[0] == "# Scale"
    assert "*This is <https://example.org/tiny/chapters/scale/> as Markdown.*" in lines
    assert "- scale numbers" in lines
    shown = render(page).code
    assert len(shown) > 8
    for _, code in shown:
        assert f"\n{squeeze(code)}\n" in text, code
    for line in (
        '```python title="tiny/scale.py"',
        "```text",
        "**Python**",
        "**A box**",
        r"Why divide? SVG is a format<sup>1</sup>, and $\sqrt{d}$ a number.",
        "See [the home page](https://example.org/tiny/#tiny).",
    ):
        assert line in lines, line
    assert text.endswith("1. [Scale](https://example.org/tiny/chapters/scale/): How?\n")
    assert "](https://example.org/tiny/figures/scale-line.svg" in text
    for mark in ("--8<--", "pytest", "*[SVG]", "!!!", "===", "](../", "{ #", "\n\n\n#"):
        assert mark not in text, mark
