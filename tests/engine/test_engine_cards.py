"""Social cards: their words are set, the figure has its colours, and none is cut."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.run import fonts
from engine.run.style import COLOURS, schemed
from engine.site import cards
from engine.site.cards import (
    HEIGHT,
    WIDTH,
    Card,
    as_svg,
    drawn,
    lines_of,
    opening_figure,
)
from engine.site.lists import plain
from small_project import Write, run

pytestmark = pytest.mark.skipif(
    not fonts.installed(), reason="`make` installs the site's fonts"
)
FIGURE = """
    ```python
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=({size}))
    ax.plot([0, 1], lw=9, color="C1")
    ax.imshow([[1.0, 0.0]], cmap="Blues", aspect="auto")
    ax.set_ylabel("height")
    ```
"""


def figure(write: Write, size: str) -> str:
    return schemed(run(write(FIGURE.format(size=size)))[0].figures[0])


def pixels(card: Card, cache: Path) -> np.ndarray:
    image = Image.open(io.BytesIO(drawn(card, cache)))
    assert image.size == (WIDTH, HEIGHT)
    return np.asarray(image.convert("RGB")).astype(int)


def ink(part: np.ndarray) -> int:
    """How many pixels are dark."""
    return int((part.sum(2) < 300).sum())


def test_words_are_set(tmp_path: Path) -> None:
    empty = ink(pixels(Card("", "", ""), tmp_path))
    title = ink(pixels(Card("Title", "", ""), tmp_path))
    assert title > empty + 1000
    foot = ink(pixels(Card("Title → √2", "", "Chapter 1"), tmp_path))
    assert foot > title + 100


@pytest.mark.parametrize(("size", "side"), [("7, 2", "below"), ("4, 4", "beside")])
def test_a_figure_is_light_and_where_it_is_larger(
    write: Write, tmp_path: Path, size: str, side: str
) -> None:
    card = Card("Title", "A question?", "", figure(write, size))
    svg = as_svg(card)
    assert "var(" not in svg
    assert "prefers-color-scheme" not in svg
    assert svg.count("<image") == 1
    image = pixels(card, tmp_path)
    orange = np.array([int(COLOURS["orange"][0][n : n + 2], 16) for n in (1, 3, 5)])
    rows, columns = np.nonzero((abs(image - orange) < 9).all(2))
    assert len(rows) > 500
    assert rows.max() < HEIGHT - 90
    assert columns.max() < WIDTH - 60
    assert (columns.min() > WIDTH / 2) == (side == "beside")
    assert rows.min() > (180 if side == "below" else 60)


def test_a_card_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = drawn(Card("Title", "", ""), tmp_path)
    monkeypatch.setattr("resvg_py.svg_to_bytes", lambda **_: b"again")
    assert drawn(Card("Title", "", ""), tmp_path) == first
    assert drawn(Card("Other", "", ""), tmp_path) == b"again"


def test_lines_are_no_wider_than_their_column() -> None:
    words = "how does a model that sees a set learn the order of all its words"
    lines = lines_of(words, cards._SANS, 31, 300)
    assert " ".join(lines) == words
    assert len(lines) > 2
    assert all(cards._font(cards._SANS, 31).getlength(x) <= 300 for x in lines)


def test_the_first_figure_of_a_page_is_its_opening(write: Write) -> None:
    page = write("""
        # A `b` *c*

        ![x](../figures/b-1.svg "c")
        ![y](../figures/a.svg)
    """)
    assert opening_figure(page.project, page.text) == ""
    (page.project.docs / "figures").mkdir()
    (page.project.docs / "figures/b-1.svg").write_text("<svg/>", "utf-8")
    assert opening_figure(page.project, page.text) == "<svg/>"
    assert plain(page.title) == "A b c"
