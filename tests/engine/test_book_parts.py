"""The parts of a chapter, as they are set in the book."""

import itertools

import pytest
from bs4 import BeautifulSoup, Tag

from engine.book import code, figures, folds, formulas, links
from engine.run.style import COLOURS

HERE = "https://book.example/chapters/masks/"


def body(html: str) -> Tag:
    return BeautifulSoup(f"<article>{html}</article>", "lxml").article or Tag(name="p")


def test_a_line_of_code_hangs_behind_its_own_start() -> None:
    """A docstring of several lines is one mark of Pygments."""
    page = body(
        '<pre><span></span><code><span class="k">def</span> f():\n'
        '    <span class="sd">"""One.\n\n    Two."""</span><span class="fold-rest">'
        "three</span>\n                             x\n</code></pre>"
    )
    code.wrap(page)
    lines = page.select("pre > code > .line")
    assert [x.get_text() for x in lines] == [
        "def f():\n",
        '    """One.\n',
        "\n",
        '    Two."""\n',
        "                             x\n",
    ]
    hung = [int(str(x["class"]).removeprefix("line in")) for x in lines]
    assert hung == [4, 8, 4, 8, code.DEEPEST + code.STEP]
    assert all(f".in{n}{{" in code.rules() for n in hung)
    assert [x.get_text() for x in page("b")] == ["def"]
    assert [x.get_text() for x in page("i")] == ['"""One.', '    Two."""']
    assert not page.select("pre > span")


def test_folds_become_sections_and_drawings_a_line() -> None:
    page = body(
        '<details class="depth" id="a"><summary>Result</summary><p>Why</p></details>'
        '<details class="depth drawing" id="b"><summary>The code of this figure'
        "</summary><pre>plot</pre></details>"
        '<details class="depth drawing"><summary>The code of this figure</summary>'
        "<p>Told</p><pre>told</pre></details>"
        '<div class="tabbed-set"><div class="tabbed-labels"><label>NumPy</label>'
        '<label>PyTorch</label></div><div><div class="tabbed-block"><p>n</p></div>'
        '<div class="tabbed-block"><p>t</p></div></div></div>'
    )
    folds.unfold(page, HERE)
    assert not page(["details", "summary", "label"])
    assert page.select_one("section.fold.depth#a > .fold-title + p") is not None
    assert "plot" not in page.get_text()
    assert "Toldtold" in page.get_text()
    assert page.select_one(f'p.online#b > a[href="{HERE}#b"]') is not None
    assert [x.get_text() for x in page.select(".tab")] == ["NumPyn", "PyTorcht"]


def test_a_prediction_keeps_its_choices_and_tells_the_answer_at_the_end() -> None:
    page = body(
        '<div class="admonition question predict"><p class="admonition-title">Predict'
        '</p><p>Which?</p><details class="answer"><summary>All</summary><p>No.</p>'
        '</details><details class="answer right"><summary>None</summary><p>Yes.</p>'
        '</details><details class="example run"><summary>Run it</summary><pre>1</pre>'
        "</details></div><p>Next</p>"
    )
    folds.unfold(page, HERE)
    asked, told = page.select_one("#asked-1"), page.select_one(".solutions #solved-1")
    assert asked is not None
    assert told is not None
    assert [x.get_text() for x in asked("li")] == ["All", "None"]
    assert "Yes" not in asked.get_text()
    assert told.get_text() == "PredictAllNo.NoneYes.1"
    assert asked.select_one('a[href="#solved-1"]') is not None
    assert told.select_one('a[href="#asked-1"]') is not None


@pytest.mark.parametrize(
    ("href", "leads"),
    [
        ("#known", "#known"),
        ("#of-the-site", f"{HERE}#of-the-site"),
        ("./", "masks.xhtml"),
        ("../heads/#x", "heads.xhtml#x"),
        ("../bert/#x", "https://book.example/chapters/bert/#x"),
        ("../../live/", "https://book.example/live/"),
        ("https://arxiv.org/abs/1706.03762", "https://arxiv.org/abs/1706.03762"),
    ],
)
def test_where_a_link_leads(href: str, leads: str) -> None:
    page = body(f'<h2 id="known"></h2><a href="{href}">x</a>')
    inside = {f"https://book.example/chapters/{x}/": x for x in ("masks", "heads")}
    links.lead(page, HERE, inside)
    assert page.a is not None
    assert page.a["href"] == leads


def test_a_figure_is_light_and_its_colours_differ_in_grey() -> None:
    blue, orange = COLOURS["blue"][0], COLOURS["orange"][0]
    svg = figures.plain(
        "<svg><style>.figure{color:#23272d}.dark{display:none}"
        "@media (prefers-color-scheme:dark){.figure{color:#fff;--c1:#6cb2f2}"
        ".light{display:none}}@font-face{src:x}</style>"
        f'<path style="stroke: var(--c1,{blue})"/><path fill="currentColor"/>'
        f'<text style="fill: {orange}">a</text><image class="dark" x="1"/></svg>'
    )
    for gone in ("dark", "var(", "currentColor", "@media", blue, orange):
        assert gone not in svg
    assert "@font-face{src:x}" in svg
    assert figures.GREYS["blue"] in svg
    greys = [grey(colour) for colour in figures.GREYS.values()]
    for one, other in itertools.combinations(greys, 2):
        assert abs(one - other) > 16  # of 255: e-ink has 16 greys
    lines = [grey(figures.GREYS[x]) for x in ("blue", "green", "orange")]
    assert min(b - a for a, b in itertools.pairwise(lines)) > 25


def grey(colour: str) -> float:
    """Return how light a colour is on grey paper, of 255."""
    red, green, blue = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_a_formula_is_drawn_in_em_and_what_mathjax_lacks_is_named() -> None:
    high = (r"\frac{a}{b}", False)
    drawn = formulas.draw([("x", False), high])
    assert 0.5 < drawn["x", False].width < 0.8
    assert drawn["x", False].depth < 0.1 < drawn[high].depth
    assert "<text" not in drawn[high].svg  # no font is needed
    assert "currentColor" not in drawn[high].svg
    with pytest.raises(ValueError, match=r"MathJax cannot draw \\nope"):
        formulas.draw([(r"\nope", False)])
