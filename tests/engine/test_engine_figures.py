"""Figures are the same at every run, and can be read on light and on dark."""

import re

import markdown
import pytest

from engine.run.figures import place_figures, repeated_names, shortened, themed
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
    ((first,), (second,)) = run(page)[0].figures, run(page)[0].figures
    assert first == second
    assert "<text" in first  # text stays text
    assert "#000000" not in first
    assert "currentColor" in first
    assert "<metadata" not in first
    assert not re.search(r"<g id=\"patch_1\">\s*<path[^>]*fill: #ffffff", first)


def test_a_drawing_is_written_in_few_signs() -> None:
    long = """<g id="patch_3">
    <path d="M 1.234567 -8.999999
L 162.523711 0.5
z
" style="opacity: 0.123456"/>
   </g>
   <g id="text_1">
    <text style="font: 9px" transform="translate(1.987654 2) rotate(9)">1.23456</text>
   </g>"""
    assert shortened(long) == (
        '<path d="M 1.23 -8.99 L 162.52 0.5 z " style="opacity: 0.123456"/>\n'
        '<text style="font: 9px" transform="translate(1.98 2) rotate(9)">1.23456</text>'
    )


def test_the_ink_follows_the_scheme_and_the_figure_has_a_name() -> None:
    svg = themed('<svg class="figure" width="1pt">\n<g/></svg>', r"A line <1> & \(x\)")
    assert svg.startswith(
        '<svg class="figure" width="1pt"><title>A line &lt;1&gt; &amp; '
    )
    assert r"\(x\)</title><style>" in svg
    assert "@media (prefers-color-scheme:dark)" in svg
    assert svg.endswith("\n<g/></svg>")


def test_a_heat_map_is_small_and_sharp(write: Write) -> None:
    page = write("""
        ```python
        import matplotlib.pyplot as plt

        plt.imshow([[0.1, 0.9], [0.5, 0.3]])
        ```
    """)
    (svg,) = run(page)[0].figures
    assert "image-rendering:pixelated" in svg
    assert len(svg) < 20_000


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


def test_settings_of_one_page_do_not_reach_the_next(write: Write) -> None:
    changes = write("""
        ```python
        import matplotlib.pyplot as plt

        plt.rcParams["figure.figsize"] = (1, 1)
        ```
        ```python
        print(plt.rcParams["figure.figsize"], plt.get_backend())
        plt.figure()
        ```
        ![A square](figures/square.svg)
    """)
    assert run(changes)[1].stdout == "[1.0, 1.0] agg\n"
    other = write(
        """
        ```python
        import matplotlib.pyplot as plt

        print(plt.rcParams["figure.figsize"], plt.get_fignums())
        ```
        """,
        "other.md",
    )
    assert run(other)[0].stdout == "[4.8, 2.9] []\n"


def test_two_places_may_not_share_a_name(write: Write) -> None:
    first = write("![One](figures/same.svg)", "first.md")
    second = write("![Two](../figures/same.svg)", "chapters/second.md")
    (problem,) = repeated_names([first, second])
    assert re.search(r"second.md:1: same.svg is also used at .*first.md:1$", problem)
    assert repeated_names([first]) == []


def shown(text: str) -> str:
    extensions = ["attr_list", "md_in_html", "pymdownx.arithmatex", "pymdownx.details"]
    extensions.append("engine.site.captions")
    options = {"pymdownx.arithmatex": {"generic": True}}
    return markdown.markdown(text, extensions=extensions, extension_configs=options)


def test_a_caption_is_markdown() -> None:
    html = shown(
        'Before.\n\n![A line](x.svg "How `f` *rises* with \\(d_k\\), \\"so\\".")'
        "{ width=300 }\n\nAfter."
    )
    assert html.count("<figure") == 1
    assert 'alt="A line"' in html
    assert 'width="300"' in html
    caption = re.search(r"<figcaption>(.*)</figcaption>", html)[1]
    formula = '<span class="arithmatex">\\(d_k\\)</span>'
    assert caption == f'How <code>f</code> <em>rises</em> with {formula}, "so".'
    assert "title=" not in html
    assert html.endswith("<p>After.</p>")


def test_an_image_in_a_text_stays_there() -> None:
    html = shown('An ![icon](x.svg "its *name*") in a text, and ![one](y.png) more.')
    assert "<figure" not in html
    assert 'title="its *name*"' in html


@pytest.mark.parametrize(
    ("start", "end"), [("", ""), ('<figure class="live" markdown>\n', "\n</figure>")]
)
def test_a_figure_stands_before_the_code_that_draws_it(start: str, end: str) -> None:
    figure = f'{start}![A line](x.svg "How it rises.")\n{end}\n\n'
    code = '??? note "The code of this picture, and its numbers"\n\n    Plot it.\n\n'
    html = shown(f"Before.\n\n{code}{figure}After.")
    order = ["Before", "<figure", "A line", "<details", "After"]
    assert sorted(order, key=html.index) == order


def test_other_folded_code_stays_where_it_is() -> None:
    figure = '![A line](x.svg "How it rises.")\n\n'
    html = shown(f'??? note "The code of this check"\n\n    So.\n\n{figure}After.')
    assert html.index("<details") < html.index("<figure")
