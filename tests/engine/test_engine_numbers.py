"""Each number in the prose of a chapter is held by a block, a source, or a reason."""

from pathlib import Path

import pytest

from engine.pages.numbers import (
    FOLDER,
    NOTHING,
    chapters_of,
    find_quantities,
    held_numbers,
    list_of,
)
from engine.pages.reading import Page
from engine.project import Project

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "docs/chapters").glob("*.md"))

PAGE = """# Costs

It costs {number}, as [the block](#x) prints.

```python
x = 37_000
print(f"{{0.12345:.4f}}", 2500.0)
```

```{{.text .output}}
0.1235 2500.0
```
"""


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_number_is_held(path: Path) -> None:
    page = Page(Project.find(ROOT), path)
    file = ROOT / FOLDER / f"{path.stem}.txt"
    former = file.read_text("utf-8") if file.exists() else ""
    new = list_of(page, former)
    lost = [
        f"{each.sentence.origin}: {quantity.text!r} in {each.sentence.text!r}"
        for each in held_numbers(page)
        for quantity, holder in zip(each.sentence.quantities, each.holders, strict=True)
        if holder == NOTHING and f"{quantity.text} <- by hand" not in new
    ]
    assert not lost, "no block and no source holds these:\n" + "\n".join(lost)
    assert new == former, f"{FOLDER}/{file.name} is stale: run `make lists`"


def test_lists_are_those_of_the_chapters() -> None:
    lists = {path.stem for path in (ROOT / FOLDER).glob("*.txt")}
    assert lists == {page.path.stem for page in chapters_of(Project.find(ROOT))}


@pytest.mark.parametrize(
    ("number", "holder"),
    [
        ("0.12", "printed by: x = 37_000"),
        ("12 %", "printed by: x = 37_000"),
        ("12.3 %", "printed by: x = 37_000"),
        ("0.125", NOTHING),
        ("13 %", NOTHING),
        ("2,500 MB", "printed by: x = 37_000"),
        ("2.5 MB", NOTHING),
        ("37,000", "set in: x = 37_000"),
        ("37,001", NOTHING),
        ("44, says [it](https://x.y)", "its source"),
    ],
)
def test_what_holds_a_number(number: str, holder: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.md"
    path.write_text(PAGE.format(number=number), "utf-8")
    (held,) = held_numbers(Page(Project.find(ROOT), path))
    assert held.holders == (holder,)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is 1.35 times as long, and 70 % of it", [1.35, 70.0]),
        ("two of 3 heads", []),
        ("takes 3 seconds", [3.0]),
        ("Python 3.11 of 2022, GPT-2, section 3.2.1, arXiv:1706.03762", []),
        ("equal to 10⁻⁶", [1e-6]),
        ("`0.5` of $0.7$ in [x](y-0.3.md) {: width=40 } ![it is 0.9](a.svg)", []),
        ("1,024 of 65,536", [1024.0, 65536.0]),
    ],
)
def test_quantities_of_a_sentence(text: str, numbers: list[float]) -> None:
    found = [each.value for each in find_quantities(text)]
    assert found == pytest.approx(numbers)


def test_a_reason_by_hand_stays_with_its_sentence(tmp_path: Path) -> None:
    path = tmp_path / "costs.md"
    path.write_text(PAGE.format(number="0.9"), "utf-8")
    page = Page(Project.find(ROOT), path)
    bare = list_of(page)
    assert f"0.9 <- {NOTHING}" in bare
    given = bare.replace(NOTHING, "by hand: a guess")
    assert list_of(page, given) == given
    path.write_text(PAGE.format(number="0.8"), "utf-8")
    assert f"0.8 <- {NOTHING}" in list_of(Page(Project.find(ROOT), path), given)
