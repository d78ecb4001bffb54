"""What a page loads before the first search, and what may run in it."""

import re
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import markdown
import pytest
from playwright.sync_api import Browser, Route

from engine.site.bundles import WITH_FORMULAS, without_styles
from engine.site.code import joined
from engine.site.formulas import formulas_in, set_formulas, with_formulas, with_marks
from navigation import CHAPTERS, FILES, url
from serving import compressed
from test_site_browser import PHONE, blank, opened

HOME, ATTENTION, TRANSFORMER = "", "chapters/attention/", "chapters/transformer/"
LAB = next(url(file) for file in FILES if file.endswith(".ipynb"))
KINDS = [HOME, ATTENTION, "api/tformer/nn/attention/", "results/", LAB]
KILOBYTES, REQUESTS, NODES = 250, 22, 9_500


@pytest.mark.by_day(2)
@pytest.mark.parametrize("page", [HOME, ATTENTION, TRANSFORMER, "results/"])
def test_a_page_is_light(browser: Browser, home: str, www: Path, page: str) -> None:
    """Compressed kilobytes and requests on a phone, before a scroll or a search."""
    with blank(browser, PHONE) as tab:
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(home + page)
        before = 0
        while before < len(asked):  # a busy machine asks late
            before = len(asked)
            tab.evaluate(IDLE)
        paths = [urlsplit(x).path.lstrip("/") for x in asked if x.startswith("http")]
        files = [www / path for path in dict.fromkeys(paths)]
        files = [x / "index.html" if x.is_dir() else x for x in files]
        sizes = {x.name: len(compressed(x)) / 1000 for x in files}
        assert not {"sections.json", "sitemap.xml"} & set(sizes)
        assert not [name for name in sizes if "-more" in name]  # fonts of few letters
        told = sorted(sizes.items(), key=lambda x: -x[1])
        assert sum(sizes.values()) <= KILOBYTES, told
        assert len(files) <= REQUESTS, told
        assert tab.evaluate("document.querySelectorAll('*').length") <= NODES
        assert tab.evaluate(SHIFT) <= 0.01


IDLE = """() => new Promise((done) =>
  requestIdleCallback(() => setTimeout(done, 500)))"""
SHIFT = """() => new Promise((done) => {
  let sum = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value
  }).observe({type: "layout-shift", buffered: true})
  setTimeout(() => done(sum), 300)
})"""


@pytest.mark.nightly
@pytest.mark.parametrize("page", [HOME, ATTENTION, TRANSFORMER])
def test_fonts_that_come_late_move_little(
    browser: Browser, home: str, page: str
) -> None:
    """What is read until then is in the machine's own font, scaled: fonts.css."""

    def late(route: Route) -> None:
        time.sleep(0.3)
        route.continue_()

    with blank(browser, PHONE) as tab:
        tab.route("**/*.woff2", late)
        tab.goto(home + page)
        tab.evaluate("document.fonts.ready.then(() => null)")
        assert tab.evaluate(SHIFT) <= 0.03


@pytest.mark.parametrize("page", [HOME, *map(url, CHAPTERS)])
def test_one_stylesheet_and_no_script_stop_the_first_paint(
    site: Path, page: str
) -> None:
    html = (site / page / "index.html").read_text("utf-8")
    (sheet,) = re.findall('<link rel="stylesheet" href="([^"?]*)', html)
    assert (site / page / sheet).is_file()
    scripts = re.findall(r"<script[^>]*\ssrc=[^>]*>", html)
    assert not [script for script in scripts if "defer" not in script]
    assert ("formulas.css" in sheet) == ('class="katex' in html)


def test_formulas_are_read_without_javascript(browser: Browser, home: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(home + ATTENTION)
    formula = tab.locator("div.arithmatex .katex-html").first
    box = formula.bounding_box()
    assert box
    assert box["height"] > 30  # a fraction, as KaTeX sets it
    assert tab.locator("annotation").first.text_content()
    assert not tab.locator(".katex-mathml").first.evaluate("x => x.clientWidth > 1")
    context.close()


def test_the_first_paint_has_its_colours_without_material(
    browser: Browser, home: str
) -> None:
    """On a first visit, in the dark; a switch is stored for the script that comes."""
    context = browser.new_context(color_scheme="dark")
    tab = context.new_page()
    tab.route("**/bundle.*", lambda route: route.abort())
    tab.goto(home)
    body = tab.locator("body")
    assert body.get_attribute("data-md-color-scheme") == "slate"
    label = tab.locator("form[data-md-component=palette] label:not([hidden])")
    label.click()
    assert label.get_attribute("title") == "Light; switch to dark"
    assert body.get_attribute("data-md-color-scheme") == "default"
    tab.reload()
    assert label.get_attribute("title") == "Light; switch to dark"
    context.close()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("page", KINDS)
def test_a_page_runs_nothing_but_its_own(
    browser: Browser, home: str, page: str
) -> None:
    """The policy is there, and the page lives with it: scheme, search, copying."""
    with opened(browser, home, page) as (tab, wrong):
        meta = tab.locator("meta[http-equiv=Content-Security-Policy]")
        policy = meta.get_attribute("content") or ""
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        tab.locator("form[data-md-component=palette] label:not([hidden])").click()
        tab.locator("form[data-md-component=palette] label:not([hidden])").click()
        tab.get_by_role("textbox", name="Search").click()
        tab.keyboard.type("softmax")
        tab.locator(".md-search-result__link").first.wait_for()
        assert not wrong, "\n".join(wrong)


def test_a_link_inside_a_page_leads_to_its_heading(browser: Browser, home: str) -> None:
    """Though what lies between is laid out on the way only."""
    with opened(browser, home, ATTENTION) as (tab, _):
        tab.locator(".md-sidebar--secondary a[href='#check-it']").click()
        tab.wait_for_timeout(500)
        top = tab.evaluate(
            "document.getElementById('check-it').getBoundingClientRect().top"
        )
        assert 0 <= top <= 200


def test_glossary_terms_are_reached_by_keyboard(browser: Browser, home: str) -> None:
    with opened(browser, home, ATTENTION) as (tab, _):
        term = tab.locator("article abbr").first
        term.focus()
        assert tab.evaluate("document.activeElement.tagName") == "ABBR"
        tab.locator(".md-tooltip2--active, .md-tooltip--active").first.wait_for()


def test_the_closed_search_is_no_stop(browser: Browser, home: str) -> None:
    with opened(browser, home) as (tab, _):
        assert tab.locator(".md-search__output").get_attribute("inert") is not None
        tab.get_by_role("textbox", name="Search").click()
        tab.locator(".md-search__output:not([inert])").wait_for()


def test_formulas_are_set_and_a_bad_one_is_told() -> None:
    html = r'<p><span class="arithmatex">\(a &lt; b\)</span></p>'
    html += '<div class="arithmatex">\n\\[\n\\frac{1}{2}\n\\]</div>'
    html += r'<span class="arithmatex">\(\frac{1\)</span>'
    formulas = formulas_in(html)
    assert formulas[:2] == [("a < b", False), (r"\frac{1}{2}", True)]
    page, wrong = with_formulas(html, set_formulas(formulas))
    assert '<div class="arithmatex"><span class="katex-display">' in page
    assert r"\(" not in page
    assert '<annotation encoding="application/x-tex">a &lt; b</annotation>' in page
    assert wrong == [r"\frac{1"]


def test_dollars_of_a_notebook_are_marked() -> None:
    html = '<div class="x jp-RenderedMarkdown"><p>$a$, <code>$b$</code></p></div><p>$c$'
    marked = with_marks(html)
    assert r'<span class="arithmatex">\(a\)</span>' in marked
    assert "<code>$b$</code></p></div><p>$c$" in marked


def test_styles_become_classes() -> None:
    rules: dict[str, str] = {}
    html = '<td style="width: 1em;"><b class="x" style="width: 1em">style="no"</b><br/>'
    page = without_styles(html, rules)
    ((name, declarations),) = rules.items()
    assert declarations == "width: 1em!important"
    assert page == f'<td class="{name}"><b class="{name} x">style="no"</b><br/>'


def test_pictures_and_tables_of_a_page() -> None:
    """Pictures but the first come late; the corner is no heading; code gets room."""
    extensions = ["tables", "pymdownx.arithmatex", "engine.site.captions"]
    options = {"pymdownx.arithmatex": {"generic": True}}
    text = "![a](a.svg) ![b](b.svg)\n\n| | a |\n|--|:--|\n| b | `c` |\n| $d$ | e |\n"
    html = markdown.markdown(text, extensions=extensions, extension_configs=options)
    first, second = re.findall("<img[^>]*>", html)
    assert "loading" not in first
    assert 'decoding="async" loading="lazy"' in second
    cells = [
        (tag, "with-code" in given)
        for tag, given in re.findall("<(t[hd])((?: [^>]*)?)>", html)
    ]
    plain, code = ("td", False), ("td", True)
    assert cells == [plain, ("th", False), plain, code, code, plain]


def test_a_block_is_marked_if_its_output_follows_it_directly() -> None:
    block = '<div class="language-python highlight"><pre>a</pre></div>'
    output = '<div class="language-text output highlight"><pre>b</pre></div>'
    marked = block.replace("language-python", "printing language-python")
    assert joined(f"{block}\n{block}\n{output}") == f"{block}\n{marked}\n{output}"
    notes = f"{block}<ol><li>a note</li></ol>{output}"
    assert joined(notes) == notes
    assert joined(f"{output}{output}{block}").count("printing") == 1


def test_a_page_loads_one_module_for_each_kind_of_what_it_has(site: Path) -> None:
    """Live pieces, functions to write, short answers: most pages have none."""
    of_kinds = [f"/live/{folder}load.js" for folder in ("", "python/", "exercises/")]
    for page, wanted in (
        (HOME, of_kinds[:1]),
        ("live/", of_kinds[:1]),
        ("chapters/masks/", of_kinds),
        ("check/", of_kinds[1:2]),
        ("results/", []),
    ):
        html = (site / page / "index.html").read_text("utf-8")
        found = re.findall('<script defer type="module" src="([^"]*)"></script>', html)
        assert [urljoin(f"/{page}", x) for x in found] == wanted, page


def test_a_start_does_not_style_the_whole_page_again(site: Path) -> None:
    """Material's script changes the root and the body: nothing may depend on it."""
    styles = (site / WITH_FORMULAS).read_text("utf-8")
    assert "data-md-color-switching" not in styles
    assert not re.findall(r"(?:html|body|\.md-(?:main|content)[\w-]*):has\(", styles)
    head = (site / "index.html").read_text("utf-8").split("</head>")[0]
    assert 'root.classList.replace("no-js", "js")' in head
    assert 'class="no-js has-home-top"' in head
