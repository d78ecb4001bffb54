"""The browsers of this machine, driven by Playwright: Debian's Chromium and Firefox."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FIREFOX = ("firefox-esr", "firefox")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
BRIDGE = Path(__file__).with_name("firefox_bridge.py")


def found(names: tuple[str, ...]) -> str:
    """Return the first of these programs that is there, or leave the test out."""
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        message = f"no browser to look at pages with: none of {', '.join(names)}"
        if "CI" in os.environ:
            pytest.fail(message)
        pytest.skip(message)
    return program


@pytest.fixture(scope="session")
def playwright() -> "Iterator[Playwright]":
    """Playwright, started once: a process can have one only."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: "Playwright") -> "Iterator[Browser]":
    """A Chromium of this machine."""
    program = found(BROWSERS)
    chromium = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def firefox(
    playwright: "Playwright", tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Browser]":
    """A Firefox of this machine, in the same hands.

    Playwright knows two ways to Firefox: its own protocol, which only its own build of
    Firefox speaks, and WebDriver BiDi, the standard, under the name moz-firefox.
    """
    program = found(FIREFOX)
    starter = tmp_path_factory.mktemp("firefox") / "firefox"
    command = shlex.join([sys.executable, str(BRIDGE), program])
    starter.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    starter.chmod(0o755)
    opened = playwright.firefox.launch(channel="moz-firefox", executable_path=starter)
    yield opened
    opened.close()
