"""What fits its column: tables of results on a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browsers import violations
from engine.site.stacked import boxed, stacked
from test_site_browser import SHOWN, opened


@pytest.mark.by_day(1)
@pytest.mark.parametrize("page", ["results/", "speed/"])
def test_results_are_read_on_a_phone_without_scrolling_aside(
    browser: Browser, home: str, page: str
) -> None:
    with opened(browser, home, page) as (tab, _):
        tab.set_viewport_size({"width": 390, "height": 664})
        assert not tab.locator("article details[open]").count()
        tab.evaluate(SHOWN)
        cells = tab.locator("article table tbody td")
        assert cells.count() > 100
        beyond = (
            "all => all.filter((x) => x.getBoundingClientRect().right > 391).length"
        )
        assert cells.evaluate_all(beyond) == 0
        # Each has the heading that stands above it at a desk.
        named = """all => all.filter((x) => x.dataset.name !== x.closest("table")
          .tHead.rows[0].cells[x.cellIndex].textContent.trim()).length"""
        assert cells.evaluate_all(named) == 0
        before = "x => getComputedStyle(x, '::before').content.includes(x.dataset.name)"
        assert cells.nth(1).evaluate(before)
        assert not violations(tab, "article table")
        tab.set_viewport_size({"width": 1366, "height": 650})
        assert cells.nth(1).evaluate("x => getComputedStyle(x).display") == "table-cell"


def test_cells_get_the_names_of_their_columns() -> None:
    table = (
        "<table>\n<thead>\n<tr>\n<th>put in</th>\n<td></td>\n"
        '<th style="x">a <b>b</b></th>\n</tr>\n'
        "</thead>\n<tbody>\n<tr>\n<td>c</td>\n<td>x</td>\n<td>1</td>\n</tr>\n</tbody>\n</table>"
    )
    html = stacked(f"<p>text</p>{table}")
    assert '<th role="columnheader" style="x">' in html
    assert '<td role="cell" data-name="put in">c</td>' in html
    assert '<td role="cell" data-name="">x</td>' in html
    assert '<td role="cell" data-name="a b">1</td>' in html
    assert '<p>text</p><table data-stacked role="table">' in html
    assert html.count('role="row"') == 2
    assert html.count('role="rowgroup"') == 2


def test_a_table_comes_in_the_box_in_which_it_scrolls(site: Path) -> None:
    """Material's script would put it there once the page was laid out."""
    box = '<div class="md-typeset__scrollwrap"><div class="md-typeset__table">'
    table, other = '<table role="x">\n</table>', '<table class="y"></table>'
    assert boxed(f"a{table}{other}") == f"a{box}{table}</div></div>{other}"
    page = (site / "results/index.html").read_text("utf-8")
    assert page.count("<table") == page.count(f"{box}<table") > 20
    (script,) = (site / "assets/javascripts").glob("bundle.*.min.js")
    assert '":not(.md-typeset__table)>table:not([class])"' in script.read_text("utf-8")
