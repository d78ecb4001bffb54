"""Each chapter of the core leads to the live model, and it opens as the link says."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page

from engine.node import node
from engine.project import Project
from engine.site.lists import chapters
from engine.site.live import thread
from live_driving import number, ready, table
from live_explorer import HEADS, MODEL, marks, row, settled
from live_serving import ROOT

LIVE = {x.name: x.meta["live"] for x in chapters(Project(ROOT)) if "live" in x.meta}
CORE = """attention masks heads positions feed-forward gpt encoder decoder transformer
decoding reading-attention"""
LED = """() => {
  const top = document.querySelector(".toured.breaks")?.getBoundingClientRect().top
  return top > 0 && top < 200
}"""
SLIDERS = {
    "positions": "Positional encoding",
    "temperature": "Temperature",
    "topK": "Top-k",
}


def link(name: str) -> str:
    line = thread(LIVE[name], up="../../")
    (found,) = re.findall(r'href="\.\./\.\./live/(#[^"]+)"', line)
    return unescape(found)


def opened(page: Page, name: str, more: str = "") -> Page:
    page.evaluate("hash => { location.hash = hash }", link(name) + more)
    page.locator(f".toured.{LIVE[name]['state']['see']}").wait_for()
    return settled(page)


def check_state(page: Page, name: str) -> None:
    """Read from the page all that the link names, and that nothing else is changed."""
    state = LIVE[name]["state"]
    assert {*parse_qs(link(name)[1:])} == {*state}
    if token := state.get("token"):
        side, at = token.split(":")
        said = page.locator(".path-view h2").inner_text()
        assert said.startswith("Follow one token: the one that") == (side == "target")
        assert said.endswith(f"at {int(at) + 1}")
    if stage := state.get("stage"):
        is_open = page.locator(".path-stage[aria-expanded=true]")
        assert is_open.get_attribute("data-stage") == stage
    if head := state.get("head"):
        spoken = {f"{of}:{n}": title for title, of, n in HEADS}
        assert page.locator(".head-view h2").inner_text() == spoken[head]
    off = page.locator(".maps-head.off").evaluate_all("x => x.map(y => y.dataset.head)")
    assert {*off} == {*state.get("off", [])}
    for key, label in SLIDERS.items():
        value = number(page.get_by_label(label, exact=True).input_value())
        assert value == state.get(key, key == "positions"), label


def test_the_explorer_reads_what_each_link_of_the_core_says() -> None:
    """All that a link names counts, and the rest is as usual."""
    assert {*CORE.split()} <= {*LIVE}
    addresses = ["", *map(link, LIVE)]
    script = Path(__file__).with_name("thread.js")
    usual, *states = json.loads(node(script, text=json.dumps(addresses)))
    for live, state in zip(LIVE.values(), states, strict=True):
        assert state == usual | live["state"]


@pytest.mark.nightly
def test_each_chapter_of_the_core_opens_the_state_that_it_says(live_page) -> None:
    """The year is wrong without positions; a decoder alone writes one and the same."""
    page = settled(ready(live_page(MODEL)))
    written = {}
    for name in LIVE:
        check_state(opened(page, name), name)
        written[name] = "".join(row(page, "written"))
        if name == "masks":
            rows = table(page, "Weights: a row for each query")[1:]
            weights = [[number(x) for x in cells[1:]] for cells in rows]
            assert len(weights) > 5
            assert not any(sum(cells[t + 1 :]) for t, cells in enumerate(weights))
    right = "".join(marks("1979-05-03"))
    changed = {name for name, text in written.items() if text != right}
    assert {"positions", "gpt"} <= changed <= {"positions", "gpt", "decoding"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d▮", written["gpt"])
    opened(page, "gpt", "&text=August+4%2C+2024")
    page.get_by_text("August 4, 2024", exact=True).and_(
        page.locator("[aria-pressed=true]")
    ).wait_for()
    assert "".join(row(settled(page), "written")) == written["gpt"]
    page.reload()  # as somebody comes who follows the link: led to the part
    page.wait_for_function(LED)
