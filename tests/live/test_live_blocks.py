"""One block of a chapter is run and edited in its page."""

from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browsers import violations
from engine.copies.needed import EDITABLE, editable_block
from engine.pages.reading import Page as Source
from engine.project import Project
from engine.run.outputs import same_output
from engine.site.python import with_place
from live_driving import SCHEME, WIDER, still
from live_python import SOON, needs_python
from live_serving import ROOT, python

CHAPTERS = [
    *("adapting", "attention", "block-today", "dates", "decoder", "encoder", "experts"),
    *("gptq", "heads", "kv-cache", "linear-attention", "longer-texts", "loss"),
    *("making-it-fast", "masks", "muon", "mup", "optimizer", "patching", "positions"),
    *("qk-norm", "rank-collapse", "reading-attention", "recurrent", "relative-biases"),
    *("rotary", "scaling-out", "shared-keys", "small-caches", "sparse-attention"),
    *("swiglu", "tiles", "what-a-head-computes"),
]
MOST = 1_000  # characters that a page gets for it
PRINTING = '<div class="{}highlight"><pre><code>{}\n</code></pre></div>\n'
READY = "Python is ready."
REMOVED = """() => {
  document.documentElement.className = "js";
  const place = document.querySelector(".python-block"), empty = place.cloneNode();
  place.after(empty);
  const less = place.offsetHeight - empty.offsetHeight;
  empty.remove();
  return less;
}"""
# With the loader, the worker, and what the editor hands them, but not 24 editors.
RUN_ALL = """async () => {
  const { Session } = await import("/live/python/session.js");
  const places = [...document.querySelectorAll(".python-block")];
  const { folder, package: zip, bytes } = places[0].dataset;
  const [root, archive] = [folder, zip].map((x) => new URL(x, location.href).href);
  const python = new Session({ folder: root, package: archive, bytes: Number(bytes) });
  const printed = [];
  for (const { dataset: { before }, previousElementSibling: output } of places) {
    const source = output.previousElementSibling.textContent;
    printed.push("");
    const show = (text) => { printed[printed.length - 1] += text };
    await python.ask({ action: "run", source, before }, show);
  }
  return printed;
}"""


def source(chapter: str) -> Source:
    return Source(Project(ROOT), ROOT / f"docs/chapters/{chapter}.md")


def as_shown(page: Source) -> str:
    """The block and its output as the site shows them, and the place of the button."""
    block = editable_block(page)
    code, printed = escape(block.fence.code), escape(block.output.code)
    html = PRINTING.format(f"printing language-python {EDITABLE} ", code)
    html += PRINTING.format("language-text output ", printed)
    return with_place(html, page, python(), "../")


def opened(page: Page) -> Page:
    page.get_by_role("button", name="Run and edit").click()
    page.locator(".python-field").wait_for()
    return page


def run(page: Page, code: str = "") -> str:
    """Run what stands in the field, or other code, and return what it prints."""
    if code:
        page.locator(".python-field").fill(code)
    state = page.locator(".python-state")
    button = page.get_by_role("button", name="Run", exact=True)
    expect(button).to_be_enabled(timeout=SOON)
    button.click()
    expect(page.locator(".python-output")).not_to_be_empty(timeout=SOON)
    expect(state).to_have_text(READY, timeout=SOON)
    return page.locator(".python-output").inner_text()


def test_which_chapters_have_one():
    mark = f"```{{.python .{EDITABLE}}}"
    counts = {
        path.stem: path.read_text("utf-8").count(mark)
        for path in sorted(Path(ROOT, "docs/chapters").glob("*.md"))
    }
    assert {name: n for name, n in counts.items() if n} == dict.fromkeys(CHAPTERS, 1)


@needs_python
def test_each_block_prints_in_the_page_what_the_page_shows(live_page):
    sources = [*map(source, CHAPTERS)]
    shown = [editable_block(each).output.code for each in sources]
    bodies = [*map(as_shown, sources)]
    for body in bodies:
        assert len(body[body.index('<div class="python-block"') :]) < MOST
    page = live_page("".join(bodies), fresh=True)
    expect(page.get_by_role("button", name="Run and edit")).to_have_count(len(bodies))
    printed = page.evaluate(RUN_ALL)
    pairs = zip(CHAPTERS, shown, printed, strict=True)
    assert [(x, new) for x, old, new in pairs if not same_output(old, new)] == []


@pytest.mark.nightly
@needs_python
def test_a_block_is_edited_in_its_place(live_page):
    body = as_shown(source("reading-attention"))
    page = live_page(body, fresh=True)
    block, mine = page.locator(f".{EDITABLE}"), "print(w.max())"
    was = block.inner_text().strip()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(300)
    assert asked == []  # all comes with the click

    opened(page)
    field = page.locator(".python-field")
    assert field.input_value() == was
    expect(block).to_be_hidden()
    expect(field).to_be_focused()
    page.get_by_text("What it needs from above: 12 lines").click()
    needed = page.get_by_role("region", name="Needed code")
    expect(needed).to_contain_text("from tformer.reference import attention_weights")
    assert "without mai" in run(page)

    said = run(page, "x = w\nw / value[7]")
    assert said.strip().endswith(
        "IndexError: index 7 is out of bounds for axis 0 with size 3"
    )
    page.get_by_role("button", name="Go to line 2").click()
    assert page.evaluate("getSelection().toString()") == "w / value[7]"
    field.fill(mine)
    field.press("Control+Enter")
    expect(page.locator(".python-output")).to_have_text("0.6\n", timeout=SOON)

    page.route("**/worker.js", lambda _: None)  # what follows needs no Python
    page.reload()
    assert opened(page).locator(".python-field").input_value() == mine
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Reset").click()
    assert field.input_value() == was


@pytest.mark.nightly
@needs_python
def test_nobody_is_shut_out_of_a_block(live_page):
    body = as_shown(source("optimizer"))
    for phone in (False, True):
        page = live_page(body, phone=phone, fresh=True)
        page.route("**/worker.js", lambda _: None)  # never answered: it only loads
        assert page.evaluate(REMOVED) == 0  # its room is there before the button
        opened(page)
        page.get_by_text("What it needs from above: 4 lines").click()
        assert page.evaluate(WIDER) <= 0
        page.evaluate(SCHEME, "default" if phone else "slate")
        assert violations(still(page), ".python-editor") == []
        page.emulate_media(media="print")
        expect(page.locator(f".{EDITABLE}")).to_be_visible()
        expect(page.locator(".python-editor")).to_be_hidden()
