"""What a page of the book does: folds, tabs, ticks, buttons, tables, paper."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from address import ROOT
from navigation import CHAPTERS, url

CHAPTER = url("chapters/attention.md")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
COVERED = """() => [...document.querySelectorAll(".highlight pre > code")]
  .filter((code) => code.checkVisibility())
  .flatMap((code) => {
    const nav = code.parentElement.querySelector(".md-code__nav")
    const shown = nav?.checkVisibility() && nav.getClientRects().length
    const name = code.textContent.trim().slice(0, 40)
    if (code.closest(".output")) return shown ? [`a button on output: ${name}`] : []
    if (!shown) return [`no button: ${name}`]
    const a = nav.getBoundingClientRect(), text = document.createRange()
    text.selectNodeContents(code)
    const over = [...text.getClientRects()].some((b) =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
    return over ? [`a button covers: ${name}`] : []
  })"""

# Listings get their buttons when they come near the screen, and are laid out there.
SCROLLED = """async () => {
  const style = document.createElement("style")
  style.textContent = "* { content-visibility: visible !important }"
  document.head.append(style)
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight / 2) {
    scrollTo(0, y)
    await new Promise((done) => setTimeout(done, 60))
  }
  scrollTo(0, 0)
}"""


@pytest.fixture
def tab(browser: Browser, home: str):
    context = browser.new_context(
        bypass_csp=True,  # tests add styles
        viewport=WIDE,
        color_scheme="light",
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.goto(home + CHAPTER, wait_until="networkidle")
    yield page
    context.close()


def first_folded(tab: Page):
    tab.get_by_label("everything").check()
    return tab.locator(".highlight:has(.fold) >> visible=true").first


@pytest.mark.nightly
def test_a_docstring_opens_by_keyboard_and_is_copied_whole(tab: Page) -> None:
    block = first_folded(tab)
    box = block.locator(".fold-box").first
    assert "Args:" not in block.inner_text()
    assert "more lines" in box.get_attribute("aria-label")
    block.scroll_into_view_if_needed()
    block.locator("[data-md-type=copy]").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    file = urlsplit(block.locator(".filename a").first.get_attribute("href"))
    first, last = map(int, re.findall(r"\d+", file.fragment))
    source = (ROOT / file.path.partition("/HEAD/")[2]).read_text("utf-8")
    assert copied == "\n".join(source.split("\n")[first - 1 : last])
    assert "Args:" not in block.inner_text()
    box.focus()
    tab.keyboard.press("Space")
    assert "Args:" in block.inner_text()
    assert not block.locator(".fold-end").first.is_visible()


def test_without_javascript_a_docstring_opens(browser: Browser, home: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=WIDE)
    page = context.new_page()
    page.goto(home + CHAPTER)
    rest = page.locator(".fold-rest")
    shown = [n for n in range(rest.count()) if rest.nth(n).is_visible()]
    assert not shown
    page.locator("#in-the-package > summary").click()  # it stands below the core
    box = page.locator(".fold-box >> visible=true").first
    box.check()
    assert sum(rest.nth(n).is_visible() for n in range(rest.count())) == 1
    ticks = page.locator(".task-list-item input")
    assert ticks.count() >= 3
    assert ticks.first.is_enabled()
    context.close()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("file", [CHAPTERS[1], CHAPTERS[5]])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "wide"])
def test_a_button_covers_no_code(
    tab: Page, home: str, file: str, size: dict[str, int]
) -> None:
    tab.set_viewport_size(size)
    tab.goto(home + url(file), wait_until="networkidle")
    tab.evaluate(SCROLLED)
    assert tab.evaluate(COVERED) == []
    assert tab.locator(".md-code__nav[role=none]").count() > 5
    assert tab.locator(".md-code__nav:not([role=none])").count() == 0
    tab.add_style_tag(
        content=".md-code__nav { position: absolute !important; left: 1rem !important; "
        "top: 0.6rem !important }"
    )
    assert tab.evaluate(COVERED)


def test_ticks_are_remembered_on_their_page(tab: Page, home: str) -> None:
    tab.locator(".task-list-item input").nth(1).press("Space")
    tab.reload(wait_until="networkidle")
    ticked = [x.is_checked() for x in tab.locator(".task-list-item input").all()]
    assert ticked[:3] == [False, True, False]
    assert tab.locator(".task-list-item input").nth(1).get_attribute("aria-label")
    tab.goto(home + url(CHAPTERS[2]), wait_until="networkidle")
    assert not any(x.is_checked() for x in tab.locator(".task-list-item input").all())
    tab.goto(home + CHAPTER, wait_until="networkidle")
    tab.locator(".task-list-item input").nth(1).press("Space")
    assert (
        tab.evaluate("Object.keys(localStorage).filter(x => x.startsWith('tick'))")
        == []
    )


def wait_for_tabs(tab: Page, name: str) -> None:
    tab.wait_for_function(
        """(name) => {
          const sets = [...document.querySelectorAll(".tabbed-set")]
            .filter((set) => set.checkVisibility() && set.textContent.includes("NumPy"))
          const shown = (set) => set.querySelector(":checked").labels[0].textContent
          return sets.length && sets.every((set) => shown(set) === name)
        }""",
        arg=name,
    )


def click_tab(tab: Page, name: str) -> None:
    label = tab.locator(".tabbed-labels label", has_text=name).first
    # What is out of sight is laid out as it comes near, and would move under the click.
    label.scroll_into_view_if_needed()
    tab.evaluate("() => new Promise(requestIdleCallback)")
    label.click()


def test_pytorch_is_shown_first_and_numpy_is_remembered(tab: Page, home: str) -> None:
    tab.goto(home + url("chapters/transformer.md"), wait_until="networkidle")
    tab.get_by_label("everything").check()  # which is remembered, too
    wait_for_tabs(tab, "PyTorch")
    assert tab.locator(".tabbed-set:visible").count() >= 2
    click_tab(tab, "NumPy")
    wait_for_tabs(tab, "NumPy")
    tab.goto(home + url("chapters/block-today.md"), wait_until="networkidle")
    wait_for_tabs(tab, "NumPy")
    click_tab(tab, "PyTorch")
    wait_for_tabs(tab, "PyTorch")


@pytest.mark.nightly
def test_no_formula_of_a_table_is_broken_on_a_phone(tab: Page, home: str) -> None:
    tab.set_viewport_size(PHONE)
    broken = """() => [...document.querySelectorAll("td .katex-html")]
      .filter((x) => new Set([...x.querySelectorAll(".base")]
        .map((base) => Math.round(base.getBoundingClientRect().bottom / 12))).size > 1)
      .map((x) => x.textContent)"""
    for file in CHAPTERS:
        tab.goto(home + url(file), wait_until="networkidle")
        assert tab.evaluate(broken) == []


@pytest.mark.nightly
def test_figures_can_be_read_on_a_phone(tab: Page, home: str, site: Path) -> None:
    tab.set_viewport_size(PHONE)
    seen = 0
    for file in CHAPTERS:
        tab.goto(home + url(file), wait_until="networkidle")
        for image in tab.locator(".figure-box img >> visible=true").all():
            name = urlsplit(image.get_attribute("src")).path.rpartition("/")[2]
            svg = (site / "figures" / name).read_text("utf-8")
            drawn = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
            styles = re.findall(r'<t(?:ext|span)[^>]*style="([^"]*)"[^>]*>[^<]*\S', svg)
            sizes = [re.search(r"font-size: ?([\d.]+)px", x) for x in styles]
            smallest = min(float(x[1]) for x in sizes if x)
            assert smallest * image.bounding_box()["width"] / drawn >= 11.95, name
            seen += 1
    assert seen > 20


@pytest.mark.nightly
def test_paper_is_white_and_whole(tab: Page) -> None:
    tab.emulate_media(color_scheme="dark")
    tab.locator("body[data-md-color-scheme=slate]").wait_for()
    far = "article img[loading=lazy]"
    assert tab.locator(far).count() >= 2
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator(far).count() == 0
    figures = tab.locator("article img[src^='data:image/svg+xml']")
    assert figures.count() >= 1  # those that had not been loaded
    for figure in figures.all():
        figure.evaluate("x => x.decode()")
        assert "@font-face" not in figure.get_attribute("src")
    tab.emulate_media(media="print", color_scheme="dark")
    facts = tab.evaluate(
        """() => {
          const style = (selector) => getComputedStyle(document.querySelector(selector))
          const gone = [".md-header", ".md-sidebar", ".md-footer", ".md-code__nav"]
          return {
            paper: style("body").backgroundColor,
            ink: style("article p").color,
            code: style("pre > code").backgroundColor,
            gone: gone.filter((x) => document.querySelector(x)?.checkVisibility()),
            shut: [...document.querySelectorAll("details > :not(summary)")]
              .filter((x) => x.closest("article"))
              .filter((x) => !x.closest(".chapter-links, .recall, .python-block"))
              .filter((x) => !x.checkVisibility()).length,
            folded: [...document.querySelectorAll(".fold-rest")]
              .filter((x) => getComputedStyle(x).display === "none").length,
          }
        }"""
    )
    assert facts == {
        "paper": "rgb(255, 255, 255)",
        "ink": "rgb(0, 0, 0)",
        "code": "rgb(244, 244, 242)",
        "gone": [],
        "shut": 0,
        "folded": 0,
    }
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("article details[open]").count() == 0


def test_a_table_is_sorted_by_its_heads(tab: Page, home: str) -> None:
    """Numbers by their value, up and then down; names of models stay folded."""
    tab.goto(home + url("families.md"))
    table = tab.locator(".sortable table").first
    head = table.locator("th", has_text="parameters")

    def numbers() -> list[int]:
        cells = table.locator("tbody td:nth-child(3)").all_inner_texts()
        return [int(cell.replace(",", "")) for cell in cells]

    before = numbers()
    head.get_by_role("button").focus()
    for order, wanted in (("ascending", sorted(before)), ("descending", None)):
        tab.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        assert numbers() == (wanted or sorted(before, reverse=True))
    assert table.locator("th[aria-sort]").count() == 1
    assert tab.locator(".sortable th:has-text('which') button").count() == 0
