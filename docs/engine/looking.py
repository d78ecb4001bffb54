"""Look at one page: who shows a piece of code, the page alone, and pictures of it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.copies.standalone import standalone_files
from engine.definitions import NoDefinition, find_spans, names_at
from engine.pages.blocks import PageError
from engine.pages.reading import Page
from engine.project import Project

if TYPE_CHECKING:
    from playwright.sync_api import Route

ONE_PAGE = "ENGINE_PAGE"  # in the environment: the only page that MkDocs builds
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"wide": 1280, "phone": 390}
SCHEMES = ("light", "dark")
SLICE = 8_000  # pixels of a page in one picture: Chromium refuses far taller ones
_ALL = "* { content-visibility: visible !important }"
_LOAD = """() => Promise.all([...document.images].map(image => {
    image.loading = "eager";
    return image.decode().catch(() => {});
}))"""


def uses(project: Project, pages: list[Page], asked: str) -> list[str]:
    """Return where pages show code of `FILE` or `FILE:NAME`, and which copies hold it.

    Raises:
        ValueError: there is no such file, or no such definition in it.
    """
    file, _, name = asked.partition(":")
    path = (project.root / file).resolve()
    if not path.is_file():
        raise ValueError(f"{file} is not there")
    source = path.read_text("utf-8")
    try:
        spans = find_spans(source, name) if name else [(1, source.count("\n") + 1)]
    except NoDefinition as error:
        raise ValueError(f"{file}: {error}") from None
    code = "\n".join(source.split("\n")[spans[0][0] - 1 : spans[-1][1]])
    found = []
    for page in pages:
        for block in page.blocks:
            lines = {x.origin.line for x in block.lines if x.origin.file == path}
            if any(first <= line <= last for line in lines for first, last in spans):
                what = ", ".join(names_at(source, lines))
                found.append(f"{project.relative(page.path)}:{block.line}: {what}")
        try:
            copies = standalone_files(page) if page.is_chapter else []
        except PageError:
            continue  # which the tests of the page tell
        for copy in copies:
            if path in copy.sources and (not name or _head(code) in copy.text):
                found.append(f"docs/downloads/{copy.name}")
    return found


def _head(code: str) -> str:
    """Return the line that begins a definition."""
    head = re.search(r"^(?:def|class|async def) .*|^\w+.* = .*", code, re.MULTILINE)
    return head[0] if head else code


def serve(project: Project, page: Path) -> list[str]:
    """Serve one page, and build it again at each edit; a page takes seconds."""
    below = project.page_url(page).partition("://")[2].partition("/")[2]
    print(f"http://127.0.0.1:8000/{below}", flush=True)
    code = _mkdocs(project, page, "serve", "--livereload")
    return [f"{project.relative(page)}: MkDocs ended with {code}"] if code else []


def look(project: Project, page: Path) -> list[str]:
    """Take four pictures of a page: wide and on a phone, light and dark.

    They are written to .cache/look; a tall page in slices, numbered from the top.
    Returns what went wrong.
    """
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    folder = project.root / ".cache" / "look"
    if _mkdocs(project, page, "build", "--quiet", "--site-dir", str(folder / "site")):
        return [f"{project.relative(page)}: MkDocs could not build it"]
    address = f"http://site/{project.page_url(page).removeprefix(project.site_url)}"

    def answer(route: "Route") -> None:
        path = folder / "site" / urlsplit(route.request.url).path.lstrip("/")
        path = path / "index.html" if path.is_dir() else path
        route.fulfill(path=path) if path.is_file() else route.abort()

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
        )
        for (name, width), scheme in product(WIDTHS.items(), SCHEMES):
            tab = chromium.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                bypass_csp=True,  # for the style below
            )
            tab.route("http://site/**", answer)
            tab.goto(address, wait_until="networkidle")
            # What is out of sight is not drawn before a reader comes near it.
            tab.add_style_tag(content=_ALL)
            tab.evaluate(_LOAD)
            tab.wait_for_load_state("networkidle")
            height = tab.evaluate("document.documentElement.scrollHeight")
            for top, bottom, part in slices(height):
                picture = folder / f"{page.stem}-{name}-{scheme}{part}.png"
                tab.screenshot(
                    path=picture,
                    full_page=True,
                    clip={"x": 0, "y": top, "width": width, "height": bottom - top},
                )
                print(project.relative(picture), flush=True)
            tab.close()
        chromium.close()
    return []


def slices(height: int) -> Iterator[tuple[int, int, str]]:
    """Yield where each picture of a page begins and ends, and the end of its name."""
    for number, top in enumerate(range(0, height, SLICE), start=1):
        part = f"-{number}" if height > SLICE else ""
        yield top, min(height, top + SLICE), part


def _mkdocs(project: Project, page: Path, *arguments: str) -> int:
    """Run MkDocs on one page alone; return its exit code."""
    docs = str(Path(__file__).parents[1])  # where mkdocs.yml finds the engine
    paths = [docs, *filter(None, [os.environ.get("PYTHONPATH")])]
    path = os.pathsep.join(paths)
    own = {ONE_PAGE: str(page), "PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", *arguments]
    environment = {**os.environ, **own}
    done = subprocess.run(command, cwd=project.root, env=environment, check=False)
    return done.returncode
