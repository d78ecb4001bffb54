"""Three questions from earlier chapters open each chapter: which, and how."""

from collections import Counter
from pathlib import Path

import pytest

from engine.pages.reading import Page
from engine.project import Project
from engine.site.lists import chapters
from engine.site.recall import COUNT, Question, all_recalled, questions_of, with_opening
from small_project import Write

Asked = dict[str, list[Question]]

PAGE = """# Costs

## The question

Words.

## Interview questions

??? question "What does `x` cost?"

    Two, as [above](#the-question); see [heads](heads.md).

    - a list

??? question "And with code?"

    ```python
    print(2)
    ```

??? note "No question"

    Text.

## Checklist
"""


@pytest.fixture(scope="module")
def book() -> list[Page]:
    return chapters(Project(Path(__file__).parents[2]))


@pytest.fixture(scope="module")
def recalled(book: list[Page]) -> Asked:
    return all_recalled(book)


def test_every_chapter_asks_of_those_before_it(
    book: list[Page], recalled: Asked
) -> None:
    assert [*recalled] == [page.name for page in book if page.is_chapter]
    before: list[str] = []
    for page in book:
        asked = recalled.get(page.name, [])
        assert len({*asked}) == len(asked) == (COUNT if page.is_chapter else 0)
        assert {x.page.path.name for x in asked} <= {*before}
        needed = {*(page.meta.get("builds_on") or [])} - {"notation.md"}
        if asked and needed:
            assert asked[0].page.path.name in needed
        before.append(page.path.name)


def test_few_questions_come_often(recalled: Asked) -> None:
    every = [x for asked in recalled.values() for x in asked]
    times = Counter((x.page.name, x.asked) for x in every)
    assert max(times.values()) <= 3
    assert sum(n == 1 for n in times.values()) >= len(times) / 2


def test_they_are_read_from_their_page_and_put_above_the_first_section(
    write: Write,
) -> None:
    page = write(PAGE, "chapters/costs.md")
    (question,) = questions_of(page)
    assert question.asked == "What does `x` cost?"
    answer = "Two, as [above](#the-question); see [heads](heads.md).\n\n- a list"
    assert question.answer == answer
    shown = with_opening("# Other\n\nText.\n\n## One\n\n## Two\n", [question])
    above, _, below = shown.partition("</div>\n\n")
    assert below == "## One\n\n## Two\n"
    assert above.startswith('# Other\n\nText.\n\n<div class="recall"')
    assert '\n    ??? question "What does `x` cost?"\n\n        Two, as' in above
    assert "[above](costs.md#the-question); see [heads](heads.md)." in above
    assert "\n        *From* [Costs](costs.md#interview-questions)\n" in above
