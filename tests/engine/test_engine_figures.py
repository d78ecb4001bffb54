"""Figures are the same at every run, stand at their places, and have captions."""

import re

import markdown
import pytest

from engine.run.figures import bare, place_figures
from small_project import Write, run

DRAW = """
    ```python
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.plot([1, 2], label="<a> & b")
    ax.fill_between([0, 1], [1, 2], color="black", alpha=0.2)
    ax.legend()
    plt.show()
    ```
"""


def test_a_drawing_gives_the_same_bytes_and_no_black(write: Write) -> None:
    page = write(DRAW)
    ((first, _),), ((second, _),) = run(page)[0].figures, run(page)[0].figures
    assert first == second
    assert "<text" in first  # text stays text
    assert "#000000" not in first
    assert "currentColor" in first
    assert "<metadata" not in first
    assert not re.search(r"<g id=\"patch_1\">\s*<path[^>]*fill: #ffffff", first)


def test_a_drawing_is_written_in_few_signs() -> None:
    long = """<svg ><g id="patch_3">
    <path d="M 1.234567 -8.999999
L 162.523711 0.5
z
" style="opacity: 0.123456"/>
   </g>
   <g id="text_1">
    <text style="font: 9px" transform="translate(1.987654 2) rotate(9)">1.23456</text>
   </g>"""
    assert bare(long).partition(">")[2] == (
        '<path d="M 1.23 -8.99 L 162.52 0.5 z " style="opacity: 0.123456"/>\n'
        '<text style="font: 9px" transform="translate(1.98 2) rotate(9)">1.23456</text>'
    )


def test_figures_go_to_the_places_below_their_blocks_in_order(write: Write) -> None:
    page = write(
        """
        ```python
        import matplotlib.pyplot as plt

        for height in (1, 2):
            plt.figure(figsize=(3, height))
        ```

        ![The low one](../figures/page-low.svg){ width=300 }

        Words, and ![the high one](../figures/page-high.svg "title").

        ![Not from here](../assets/logo.svg)

        ```text
        ![not a place](../figures/in-a-fence.svg)
        ```

        ```python
        plt.figure(figsize=(3, 3))
        ```

        === "A tab"

            ![The square one](../figures/page-square.svg#only-light)
        """,
        "chapters/page.md",
    )
    placed = place_figures(page, run(page))
    heights = [re.search(r'viewBox="0 0 \S+ (\S+)"', x.svg)[1] for x in placed]
    assert sorted(heights, key=float) == heights
    assert [(x.place.name, x.place.alt, x.place.caption, x.block) for x in placed] == [
        ("page-low.svg", "The low one", "", 0),
        ("page-high.svg", "the high one", "title", 0),
        ("page-square.svg", "The square one", "", 1),
    ]


def shown(text: str) -> str:
    extensions = ["attr_list", "md_in_html", "pymdownx.arithmatex", "pymdownx.details"]
    extensions.append("engine.site.captions")
    options = {"pymdownx.arithmatex": {"generic": True}}
    return markdown.markdown(text, extensions=extensions, extension_configs=options)


def test_a_caption_is_markdown() -> None:
    html = shown(
        'Before.\n\n![A line](x.svg "How `f` *rises* with \\(d_k\\), \\"so\\".")'
        '{ width=300 }\n\nAn ![icon](x.svg "its *name*") in a text.'
    )
    assert html.count("<figure") == 1
    assert 'alt="A line"' in html
    assert 'width="300"' in html
    caption = re.search(r"<figcaption>(.*)</figcaption>", html)[1]
    formula = '<span class="arithmatex">\\(d_k\\)</span>'
    assert caption == f'How <code>f</code> <em>rises</em> with {formula}, "so".'
    assert html.count('title="its *name*"') == html.count("title=") == 1


@pytest.mark.parametrize(
    ("start", "end"), [("", ""), ('<figure class="live" markdown>\n', "\n</figure>")]
)
def test_a_figure_stands_before_the_code_that_draws_it(start: str, end: str) -> None:
    figure = f'{start}![A line](x.svg "How it rises.")\n{end}\n\n'
    for title, first in (
        ("The code of this picture, and its numbers", "<figure"),
        ("The code of this check", "<details"),
    ):
        html = shown(f'Before.\n\n??? note "{title}"\n\n    So.\n\n{figure}After.')
        order = ["Before", first, *({"<figure", "<details"} - {first}), "After"]
        assert sorted(order, key=html.index) == order
