"""Python in the page: a reader's code runs, is judged, and can be stopped."""

import json
import os
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from browsers import violations
from engine.site.python import WITHOUT, place
from live_driving import IN_BOTH, SCHEME, WIDER, still
from live_python import (
    FORGED,
    PAIRS,
    RIGHT,
    SOON,
    asked,
    begun,
    exercise,
    needs_python,
    printed,
    verdict,
)
from live_serving import python

MEGABYTES = 9.2  # that a reader loads, once


@pytest.mark.skipif("TFORMER_RUN" not in os.environ, reason="CI alone must have it")
def test_ci_drives_python():
    """So that no test of this file is left out there without a word."""
    assert python() is not None


@needs_python
@IN_BOTH
def test_from_a_click_to_right(live_page, live_site):
    page = live_page(exercise(), fresh=True)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(urlsplit(request.url).path))
    page.reload()
    page.get_by_role("button", name="Write it here").wait_for()
    scripts = [path for path in loaded if path.startswith("/live/")]
    assert scripts == ["/live/python/load.js", "/live/ui/progress.js"]
    assert not [path for path in loaded if path.startswith("/assets/python/")]

    begun(page)
    assert (
        not page.locator(".python-output, .python-verdict")
        .or_(page.get_by_role("button", name="Go to line"))
        .filter(visible=True)
        .count()
    )
    told = verdict(page, PAIRS)
    assert told.startswith("✗ Not right yet. In the case “")
    assert "a pair is i and i + Dh/2" in told
    links = page.locator(".python-mistake a").evaluate_all("all => all.map(String)")
    assert links == [
        f"{live_site.address}/chapters/rotary/#the-layouts-are-mixed",
        f"{live_site.address}/mistakes/rotary/pairs/",
    ]
    assert verdict(page, FORGED).startswith("✗ Not right yet.")
    assert "✓ Right." in page.locator(".python-output").inner_text()
    assert verdict(page, RIGHT).startswith("✓ Right.")
    kept = page.evaluate("localStorage.getItem('tformer progress')")
    assert json.loads(kept) == {"rotary": "right"}

    page.reload()
    expect(page.locator(".python-done")).to_have_text("✓ You have this right.")
    assert page.locator(".python-field").count() == 0
    assert begun(page).locator(".python-field").input_value() == RIGHT


@pytest.mark.nightly
@needs_python
@IN_BOTH
def test_stop_ends_an_endless_loop_and_loads_nothing_again(live_page, live_site):
    page = begun(live_page(exercise(), fresh=True))
    page.evaluate("localStorage.clear()")
    assert printed(page, "print(6 * 7)", "42") == "42\n"
    again: list[str] = []
    page.on("request", lambda request: again.append(urlsplit(request.url).path))
    for code in ("while True: pass", "while True: print('x' * 99)"):
        asked(page, code, "Run")
        expect(page.locator(".python-state")).to_have_text(
            "Your code runs.", timeout=SOON
        )
        if "print" in code:
            cut = page.get_by_text("cut after 20,000 characters")
            expect(cut).to_be_attached(timeout=SOON)
            length = len(page.locator(".python-output").inner_text())
            assert length < 20_100
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".python-verdict")).to_have_text(
            "Stopped. A new Python starts."
        )
    assert verdict(page, RIGHT).startswith("✓ Right.")
    assert not [path for path in again if path.endswith((".zip", ".bin"))]


@pytest.mark.nightly
@needs_python
def test_what_code_may_do_and_the_page_lives(live_page):
    page = begun(live_page(exercise(), fresh=True))
    for code, told in (
        ("input('Name?')", "nobody can answer input() here"),
        ("def f():\n    return 1 / 0\nf()", "line 2, in f"),
        ("x = 1 +", "SyntaxError"),
        ("import torch", "Only NumPy runs in the page"),
        ("import numpy as np\nnp.ones((10**4, 10**4))", "512 MB"),
        ("a = []\nwhile True: a.append(bytearray(10**7))", "512 MB"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os\nos.fork()", "OSError"),
        ("import numpy as np\nnp.linspace(0, 1, 3)", "array([0. , 0.5, 1. ])"),
    ):
        printed(page, code, told)
        if "line 2" in told:
            page.get_by_role("button", name="Go to line 2").click()
            selected = page.evaluate("getSelection().toString()")
            assert selected == "    return 1 / 0"
    ended = "Your code ended Python itself. A new one starts."
    assert verdict(page, "import os\nos._exit(0)") == ended
    for code, told in (
        ("rotary = 3", "In your code rotary is no function."),
        ("", "Your code defines no function rotary."),
        ("def rotary(x): return x", "Not right yet."),
        (f"import numpy as np\nnp.allclose = None\n{FORGED}", "Not right yet."),
        (f"import math\nmath.cos = math.sin\n{RIGHT}", "✓ Right."),
        (f"{RIGHT}\nraise SystemExit", "Your code raises an exception"),
        ("def rotary(x, *_):\n    raise SystemExit", "SystemExit"),
    ):
        assert told in verdict(page, code), code


@pytest.mark.nightly
@needs_python
def test_every_exercise_is_judged_here_as_elsewhere(live_page):
    """With the page's NumPy, and without torch."""
    code = """
from tformer.check import SPECS, judge, judge_numbers
import tformer.reference
for name, spec in SPECS.items():
    rights = {case.name: spec.outcome(spec.oracle, case) for case in spec.cases}
    right = judge_numbers(spec, rights).right
    stub = judge(spec, lambda *args, **options: None, "numpy").right
    first = next(x for x in spec.mistakes if x.shows == "value")
    wrong = {case.name: spec.outcome(first.function, case) for case in spec.cases}
    known = first.id in [x.id for x in judge_numbers(spec, wrong).mistakes]
    print(name, right, not stub, known)
print("the end")
"""
    page = begun(live_page(exercise(), fresh=True))
    lines = printed(page, code, "the end").split("\n")
    assert len(lines) > 20
    assert [line for line in lines[:-2] if not line.endswith(" True True True")] == []


@pytest.mark.nightly
@needs_python
def test_what_takes_too_long_ends_by_itself(live_page):
    page = live_page(exercise(), fresh=True)
    page.clock.install()
    page.route("**/numpy.zip", lambda _: None)  # never answered
    begun(page)
    asked(page, "print(1)", "Run")
    told = page.locator(".python-verdict")
    expect(page.locator(".python-state")).to_contain_text(
        "Then your code runs.", timeout=SOON
    )
    expect(told).to_be_empty()
    page.wait_for_timeout(3000)  # all else has come
    page.clock.fast_forward(61_000)
    expect(told).to_contain_text("Python did not start within a minute.")
    page.unroute("**/numpy.zip")
    printed(page, "print(2)", "2")
    asked(page, "while True: pass", "Run")
    expect(page.locator(".python-state")).to_have_text("Your code runs.", timeout=SOON)
    page.clock.fast_forward(61_000)
    expect(told).to_contain_text("Stopped after 60 seconds.")
    assert verdict(page, RIGHT).startswith("✓ Right.")


@pytest.mark.nightly
@needs_python
@IN_BOTH
def test_the_field_is_for_python(live_page):
    page = begun(live_page(exercise(), fresh=True))
    field, keys = page.locator(".python-field"), page.keyboard
    field.fill("")
    keys.type("def f(x):\nif x:\nreturn 1\n")
    keys.press("Backspace")
    keys.type("return 2")
    written = "def f(x):\n    if x:\n        return 1\n    return 2"
    assert field.input_value() == written
    keys.press("Shift+Tab")
    assert field.input_value().endswith("\nreturn 2")
    keys.press("Tab")
    keys.press("Control+a")
    keys.press("Tab")
    assert field.input_value().startswith("    def f(x):\n        if x:")
    keys.press("Control+z")
    assert field.input_value().startswith("def f(x):")
    keys.press("Escape")
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Check"


@pytest.mark.nightly
@needs_python
def test_nobody_is_shut_out(live_page):
    for phone in (False, True):
        page = begun(live_page(exercise(), phone=phone, fresh=True))
        verdict(page, f"{PAIRS}\nprint(1)")
        page.locator(".python-verdict summary").click()
        assert violations(page, ".python-editor") == []
        assert page.evaluate(WIDER) <= 0
        page.evaluate(SCHEME, "slate")
        assert violations(still(page), ".python-editor") == []


@pytest.mark.nightly
@needs_python
def test_without_a_network(live_page):
    page = begun(live_page(exercise(), fresh=True))
    asked(page, "1 + 1", "Run")
    expect(page.locator(".python-output")).to_have_text("2\n", timeout=SOON)
    page.context.set_offline(True)
    assert verdict(page, RIGHT).startswith("✓ Right.")
    asked(page, "while True: pass", "Run")
    page.get_by_role("button", name="Stop").click()
    told = page.locator(".python-verdict")
    expect(told).to_contain_text("the network does not answer", timeout=SOON)
    page.context.set_offline(False)
    assert verdict(page, RIGHT).startswith("✓ Right.")


def test_a_site_without_python_says_so(live_page):
    page = live_page(place("rotary", None, "../"))
    assert page.locator(".python-missing").inner_text() == WITHOUT
    assert "tformer check rotary" in page.locator(".python").inner_text()
    assert page.get_by_role("button").count() == 0


@needs_python
def test_what_a_reader_loads_is_bounded():
    assert python().size <= MEGABYTES * 1e6
