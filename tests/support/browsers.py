"""The browsers of this machine, driven by Playwright: Debian's Chromium and Firefox."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.browser import CHROMIUM, FLAGS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request

FIREFOX = ("firefox-esr", "firefox")
AXE = Path(sys.prefix) / "npm" / "node_modules" / "axe-core" / "axe.min.js"
# A scrolled list hides a part of a link under its title: it is audited unscrolled.
AUDIT = """async ([part, options]) => {
  for (const list of document.querySelectorAll(".md-sidebar__scrollwrap"))
    list.scrollTop = 0
  const rules = {"target-size": {enabled: true}}
  const all = {resultTypes: ["violations"], preload: false, rules, ...options}
  const found = await axe.run(part ?? document, all)
  return found.violations // of any impact
    .flatMap((rule) => rule.nodes.map((node) =>
      `${rule.id}: ${node.target} ${node.any[0]?.message ?? node.failureSummary}`))
}"""
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
    program = found(CHROMIUM)
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


def watch(page: "Page", home: str, wrong: list[str]) -> None:
    """Write down what a page complains of, and what it asks for elsewhere."""

    def on_console(message: "ConsoleMessage") -> None:
        if message.type == "error":
            wrong.append(message.text)

    def on_request(asked: "Request") -> None:
        if not asked.url.startswith((home, "data:", "blob:")):
            wrong.append(f"elsewhere: {asked.url}")

    page.on("console", on_console)
    page.on("request", on_request)
    page.on("pageerror", lambda error: wrong.append(str(error)))


def violations(page: "Page", part: Any = None, **options: Any) -> list[str]:
    """Return what axe finds that keeps somebody from reading the page, or a part."""
    page.evaluate(AXE.read_text("utf-8"))
    return list(page.evaluate(AUDIT, [part, options]))
