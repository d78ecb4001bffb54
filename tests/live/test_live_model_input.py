"""Bad input is told, and a model that cannot be had leaves the page whole."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from live_driving import ready
from live_explorer import (
    CROSS,
    MODEL,
    case_of,
    computed,
    loaded,
    marks,
    row,
    settled,
    type_text,
)
from live_serving import ROOT, LiveSite
from test_live_model import (
    TEXT,
    check_picture,
    opened,
)

Open = Callable[..., Page]
WEIGHTS = "/live/models/dates/model.safetensors"

BAD = {
    "empty": ("", "The field is empty"),
    "long": ("3 mai 1979 " * 1000, "10,745 at the end are left out"),
    "emoji": ("3 🎂 1979", "Unknown to the model: "),
    "right to left": ("3 مايو 1979", "Unknown to the model: "),
    "html": ("<b onclick=alert(1)>3 mai</b><img src=x>", "Unknown to the model: "),
    "script": ("<script>document.body.remove()</script>", "Unknown to the model: "),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_read_as_text_and_told(live_page: Open, kind: str) -> None:
    text, told = BAD[kind]
    page = opened(live_page, phone=True)
    type_text(page, text)
    assert told in page.locator(".entry-note").inner_text()
    read = text[:255]
    assert row(page, "source") == marks(read)
    written = row(page, "written")
    assert page.locator("live-model :is(img, script, b[onclick])").count() == 0
    known = set(loaded()[1].characters)
    unknown = page.locator(".stage-source .unknown bdi").all_inner_texts()
    assert unknown == [c for c in read if c not in known]
    weights = computed(case_of(read, written))[f"{CROSS}:weights"][2]
    words = page.locator(".head-words").inner_text()
    assert re.search(
        rf"{round(100 * weights[min(6, len(written) - 1)].max().item())} % to", words
    )
    for s, c in enumerate(read):
        if c not in known:
            assert weights[:, s].abs().max() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def broken_weights(kind: str) -> bytes | None:
    weights = (ROOT / "tformer/pretrained/dates/model.safetensors").read_bytes()
    return {
        "missing": None,
        "truncated": weights[:1000],
        "changed": weights[:-4] + b"none",
    }[kind]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("missing", "is missing"),
        ("truncated", "came only in part: 1000 of"),
        ("changed", "are not those that its config describes"),
        ("model_type", "this page can only run “transformer”"),
    ],
)
def test_a_model_that_cannot_be_had_is_told_and_tried_again(
    live_page: Open, live_site: LiveSite, kind: str, told: str
) -> None:
    config = (ROOT / "tformer/pretrained/dates/config.json").read_text("utf-8")
    if kind == "model_type":
        other = config.replace('"transformer"', '"gpt2"')
        live_site.changed["/live/models/dates/config.json"] = other
    else:
        live_site.changed[WEIGHTS] = broken_weights(kind)
    page = ready(live_page(MODEL, expected=("404",) if kind == "missing" else ()))
    message = page.locator(".model-message")
    message.wait_for()
    assert told in message.inner_text()
    assert page.get_by_text("The picture.").is_visible()  # the static one stays
    old = message.locator("p").element_handle()
    page.get_by_role("button", name="Try again").click()
    old.wait_for_element_state("hidden")  # a new message is written
    assert told in message.inner_text()
    live_site.changed.clear()
    page.get_by_role("button", name="Try again").click()
    settled(page)
    check_picture(page, TEXT)
    assert message.is_hidden()
    assert page.get_by_text("The picture.").is_hidden()


def test_a_second_model_that_cannot_be_had_leaves_the_first(
    live_page: Open, live_site: LiveSite
) -> None:
    live_site.changed["/live/models/dates-without-mask/model.safetensors"] = None
    page = opened(live_page, expected=("404",))
    page.get_by_role("radio", name="trained without the mask").check()
    page.locator(".model-message").wait_for()
    page.get_by_role("button", name="Go on with the first model").click()
    settled(page)
    assert page.locator(".model-message").is_hidden()
    check_picture(page, TEXT)
