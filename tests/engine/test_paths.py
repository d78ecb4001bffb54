"""The paths through the book: in the order of what builds on what, and their slides."""

import re
from pathlib import Path

import pytest

from engine.pages.depth import depth_at, minutes_of
from engine.pages.reading import Page
from engine.project import Project
from engine.site.paths import Paths, parts_of
from engine.site.slides import slides_of
from small_project import Write

ROOT = Path(__file__).parents[2]
BEFORE = {"notation", "pytorch"}  # what every chapter may need

PAGE = """---
question: What does it cost?
goals: [count the costs]
builds_on: []
---
# Costs

## The question

Some words, which are on no slide.

![a curve](../figures/costs-curve.svg "As [below](#sum), and in [heads](heads.md).")

```python
x = 2
```

## The formula

$$
a = b
$$

Then:

$$
c = d
$$

| symbol | what it is |
|---|---|
| $a$ | a number |

## See it

<figure class="live" data-live="costs" markdown>
![a bar](../figures/costs-bar.svg "A bar.")
</figure>

!!! question predict "Predict, then run"

    What does it print?

    ```python
    print(x)
    ```

    ??? answer "1"

        Too little.

    ??? answer right "2"

        Yes.

        It is x.

/// details | More
    type: depth
    attrs: {id: more}

![folded](../figures/costs-folded.svg "No.")

///

## Mistakes people make

| mistake | what it looks like |
|---|---|
| none | nothing |
"""


@pytest.fixture(scope="module")
def paths() -> Paths:
    return Paths(Project(ROOT))


def test_two_hours_are_no_more_and_need_nothing_else(paths: Paths) -> None:
    """A core that grew, or a chapter that needs one outside of the path, fails here."""
    minutes = [minutes_of(page)[0] for page in paths.two_hours]
    assert 90 < sum(minutes) <= 120
    seen = {*BEFORE}
    for page in paths.two_hours:
        assert page.depths or page.name in BEFORE
        assert needed(page) <= seen, page.name
        seen.add(page.name)
    rows = re.findall(r"\| \*{0,2}(\d+)\*{0,2} \|$", paths.cores(), re.MULTILINE)
    assert [int(x) for x in rows] == [*map(round, minutes), round(sum(minutes))]


def test_no_week_needs_a_later_one(paths: Paths) -> None:
    assert len(paths.weeks) == 10
    seen = {*BEFORE}
    for number, names in enumerate(paths.weeks, 1):
        pages = paths.of_week(number)
        for page in pages:
            assert needed(page) <= seen, page.name
            seen.add(page.name)
        for lab in {*names} - {x.name for x in pages}:
            assert (ROOT / "docs" / lab).is_file()
    written = [x for n in paths.numbers() for x in parts_of(paths.of_week(n))]
    assert len(written) == len({*written}) >= 12
    assert "[`causal_mask`](check.md#causal_mask)" in paths.week(2)
    assert "[`masks` 1, 2, 3, 4, 5](chapters/masks.md#exercises)" in paths.week(2)


def needed(page: Page) -> set[str]:
    return {name.removesuffix(".md") for name in page.meta.get("builds_on") or []}


def test_slides_are_cut_from_the_core(write: Write) -> None:
    found = slides_of(write(PAGE, "chapters/costs.md"))
    assert [x.title for x in found] == [
        "[Costs](../chapters/costs.md)",
        "The question",
        "The formula",
        "Letters and shapes",
        "See it",
        "Predict",
        "Mistakes people make",
    ]
    question, figure, formula, letters, live, predict, mistakes = found
    assert question.body.startswith("**What does it cost?**")
    assert question.body.endswith("- count the costs")
    moved = "(../chapters/costs.md#sum), and in [heads](../chapters/heads.md)."
    assert figure.body.endswith(f'/figures/costs-curve.svg "As [below]{moved}")')
    assert formula.body == "$$\na = b\n$$\n\n$$\nc = d\n$$"
    assert letters.body.count("\n") == mistakes.body.count("\n") == 2
    assert live.body == '![a bar](../figures/costs-bar.svg "A bar.")'
    asked = "What does it print?\n\n```python\nprint(x)\n```\n\n- 1\n- 2\n\n"
    told = '??? note "Answer"\n\n    *2.* Yes.\n\n    It is x.'
    assert predict.body == asked + told


def test_each_week_has_the_figures_of_its_cores(paths: Paths) -> None:
    for number, (file, text) in enumerate(paths.decks(), 1):
        assert file == f"slides/week-{number}.md"
        pages = paths.of_week(number)
        for page in pages:
            for index, line in page.prose:
                if shown := re.match(r"!\[.*?\]\((\S+)", line):
                    inside = depth_at(page, index) is not None
                    assert (shown[1] in text) != inside, shown[1]
        assert text.count('<section class="slide"') >= 3 * len(pages)
        assert text.count('??? note "Answer"\n\n    *') == text.count("\n## Predict")
