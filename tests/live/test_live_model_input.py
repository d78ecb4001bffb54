"""Bad input is told, and a model that cannot be had leaves the page whole."""

import unicodedata

import pytest

from live_driving import ready
from live_explorer import (
    CROSS,
    MODEL,
    TEXT,
    WITHOUT_MASK,
    case_of,
    check_picture,
    computed,
    loaded,
    marks,
    row,
    settled,
    type_text,
)

BAD = {
    "empty": ("", "The field is empty"),
    "long": ("3 mai 1979 " * 1000, "10,745 at the end are left out"),
    "emoji": ("3 🎂 1979", "Unknown to the model: "),
    "html": ("<b onclick=alert(1)>3 مايو</b><img src=x>", "Unknown to the model: "),
    "script": ("<script>document.body.remove()</script>", "Unknown to the model: "),
    "not plain": ("3\u202fmai\u00a01979, fe\u0301vr.", ""),
}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_read_as_text_and_told(live_page, kind):
    text, told = BAD[kind]
    page = settled(ready(live_page(MODEL, phone=True)))
    type_text(page, text)
    assert told in page.locator(".entry-note").inner_text()
    read = unicodedata.normalize("NFKC", text[:255])  # no other has such characters
    assert row(page, "source") == marks(read)
    written = row(page, "written")
    assert page.locator("live-model :is(img, script, b[onclick])").count() == 0
    known = set(loaded()[1].characters)
    unknown = page.locator(".stage-source .unknown bdi").all_inner_texts()
    assert unknown == [c for c in read if c not in known]
    weights = computed(case_of(read, written))[f"{CROSS}:weights"][2]
    most = weights[min(6, len(written) - 1)].max().item()
    assert f"{round(100 * most)} % to" in page.locator(".head-words").inner_text()
    for s, c in enumerate(read):
        if c not in known:
            assert weights[:, s].abs().max() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.nightly
def test_a_model_that_cannot_be_had_is_told_and_tried_again(live_page, live_site):
    live_site.changed["/live/models/dates-as-typed/model.safetensors"] = None
    page = ready(live_page(MODEL, expected=("404",)))
    message = page.locator(".model-message")
    message.wait_for()
    assert "is missing" in message.inner_text()
    assert page.get_by_text("The picture.").is_visible()  # the static one stays
    old = message.locator("p").element_handle()
    page.get_by_role("button", name="Try again").click()
    old.wait_for_element_state("hidden")  # a new message is written
    assert "is missing" in message.inner_text()
    live_site.changed.clear()
    page.get_by_role("button", name="Try again").click()
    settled(page)
    check_picture(page, TEXT)
    assert message.is_hidden()
    assert page.get_by_text("The picture.").is_hidden()


def test_a_second_model_that_cannot_be_had_leaves_the_first(live_page, live_site):
    live_site.changed[f"/live/models/{WITHOUT_MASK}/model.safetensors"] = None
    page = settled(ready(live_page(MODEL, expected=("404",))))
    page.get_by_role("radio", name="trained without the mask").check()
    page.locator(".model-message").wait_for()
    page.get_by_role("button", name="Go on with the first model").click()
    settled(page)
    assert page.locator(".model-message").is_hidden()
    check_picture(page, TEXT)
