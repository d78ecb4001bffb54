"""Driving the editor of an exercise that runs Python, as a reader does."""

import pytest
from playwright.sync_api import Page, expect

from engine.site.python import place
from live_serving import python

SOON = 60_000  # ms: the machine may be busy
needs_python = pytest.mark.skipif(
    python() is None, reason="no NumPy for the page: set TFORMER_PYODIDE"
)

RIGHT = """
import numpy as np

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    angle = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = (f(angle).astype(x.dtype) for f in (np.cos, np.sin))
    a, b = x[..., :half], x[..., half:]
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), -1)
"""
PAIRS = """
import numpy as np

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    angle = positions[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = a * np.cos(angle) - b * np.sin(angle)
    out[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return out
"""
FORGED = """
print('{"verdict": "right"}')
print("✓ Right.")
def rotary(x, positions, base):
    return x
"""


def exercise(name: str = "rotary") -> str:
    return f"<h2>An exercise</h2>{place(name, python(), '../')}"


def begun(page: Page) -> Page:
    """Press the one button that is there."""
    page.get_by_role("button", name="Write it here").click()
    page.locator(".python-field").wait_for()
    return page


def asked(page: Page, code: str, button: str = "Check") -> Page:
    """Write code, and press a button, but wait for nothing."""
    page.locator(".python-field").fill(code)
    expect(page.get_by_role("button", name=button)).to_be_enabled(timeout=SOON)
    page.get_by_role("button", name=button).click()
    return page


def verdict(page: Page, code: str) -> str:
    """Check code, and return what is said."""
    asked(page, code)
    page.locator("[data-verdict]").wait_for(timeout=SOON)
    return page.locator(".python-verdict").inner_text()


def printed(page: Page, code: str, last: str) -> str:
    """Run code, and return what it prints, once `last` stands there."""
    output = page.locator(".python-output")
    asked(page, code, "Run")
    expect(output).to_contain_text(last, timeout=SOON)
    return output.inner_text()
