"""Core and depth: found, counted, folded on the site, left whole in the copies."""

import re

import pytest

from engine.copies.as_markdown import as_markdown
from engine.pages.checking import page_problems
from engine.pages.depth import (
    MOST_LINES,
    MOST_WORDS,
    core_problems,
    minutes_of,
    size_of,
    size_of_core,
)
from engine.pages.numbers import number_problems
from engine.pages.reading import Page, render
from engine.run.working import core_alone
from engine.site.depth import with_minutes
from small_project import Write

PAGE = """# Costs

Four words of prose.

```python
x = 2
print(x)
```

```{.text .output}
2
```

/// details | A title of five words
    type: depth
    attrs: {id: deeper}

## What it *costs* { #costs }

Of [three](costs.md) words.

![not counted](figures/costs-x.svg "A caption.")

??? note "Folded twice"

    ```python
    y = 1
    ```

```python
def double(x):
    \"\"\"Return 2 x.

    More of it.
    \"\"\"
    return 2 * x
```
///

The end.
"""


@pytest.fixture
def page(write: Write) -> Page:
    return write(PAGE, "costs.md")


def test_a_fold_is_found_and_counted(page: Page) -> None:
    (depth,) = page.depths
    assert (depth.title, depth.id) == ("A title of five words", "deeper")
    core, inside = size_of_core(page), size_of(page, depth)
    assert core == (1 + 4 + 2, 2, 2)  # words, lines, seen
    assert inside == (5 + 3 + 3 + 2 + 2, 1 + 5, 3)  # of a docstring the first line
    told = minutes_of(page)
    assert told == pytest.approx((7 / 120 + 14 / 60, 22 / 120 + 35 / 60))


def test_what_stands_in_a_fold_is_as_outside(page: Page) -> None:
    """Its headings, figures and code are on the site and in the copies."""
    assert len(page.blocks) == 3
    assert page_problems(page) == []
    assert sum("y = 1" in text for _, text in render(page).code) == 1
    text = as_markdown(page, {})
    for line in (
        "**A title of five words**",
        "## What it *costs*",
        "y = 1",
        "The end.",
    ):
        assert f"\n{line}\n" in text, line
    assert "///" not in text
    assert "type: depth" not in text


def test_a_title_is_prose_whose_numbers_are_held(write: Write) -> None:
    wrong = write(PAGE.replace("five words", "70 words"), "costs.md")
    (problem,) = number_problems(wrong)
    assert "costs.md:14" in problem
    assert "'70'" in problem


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("The end.", "word " * MOST_WORDS, "1,305 words of prose, and 1,300 are the"),
        ("x = 2\n", "x = 2\n" * MOST_LINES, "81 lines of Python, and 80 are the most"),
        ("id: deeper", "id: costs", "costs.md:14: the id costs stands in two places"),
    ],
)
def test_a_long_core_and_a_second_id_fail(
    old: str, new: str, says: str, write: Write
) -> None:
    assert core_problems(write(PAGE, "costs.md")) == []
    (problem,) = core_problems(write(PAGE.replace(old, new), "costs.md"))
    assert says in problem


def test_a_core_must_run_and_print_alone(write: Write) -> None:
    assert core_alone(write(PAGE, "costs.md")) == []
    shown = "```python\nprint(x)\n```\n\n```{.text .output}\n3\n```\n"
    inside = "///\n\n" + shown  # which needs what the fold does
    changed = PAGE.replace("```\n///\n", "```\n\n```python\nx = 3\n```\n" + inside)
    (problem,) = core_alone(write(changed, "costs.md"))
    assert "the core without its depth: " in problem
    assert re.search("page shows.*-3.*\\+2", problem, re.DOTALL)


def test_summaries_say_minutes_and_pictures_none(page: Page) -> None:
    fold = '<details class="depth" id="{}"><summary>A title</summary>'
    told = '<summary>A title <span class="depth-minutes">1 min</span></summary>'
    assert told in with_minutes(fold.format("deeper"), page)
    assert with_minutes(fold.format("other"), page) == fold.format("other")
