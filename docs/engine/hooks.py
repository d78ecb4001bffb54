"""MkDocs hooks: make the generated files first, link them, and mend the labs' pages."""

import hashlib
import logging
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.append(str(Path(__file__).parents[1]))  # MkDocs loads this file by its path

from engine.generate import MADE
from engine.lab_pages import mend_links, take_styles
from engine.links import chapter_links
from engine.project import Project

log = logging.getLogger("mkdocs.hooks.engine")

SHARED_STYLE = "assets/css/jupyter.css"
_styles: dict[str, str] = {}  # of each lab
_COMMENT = re.compile(r"<!--[-\s]*pytest.*?-->\n?", re.DOTALL)


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).resolve().parent


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the labs a cache per state of the package, which mkdocs-jupyter ignores."""
    project = Project(_root(config))
    if "mkdocs-jupyter" in config.plugins:
        state = hashlib.sha256()
        for path in project.package_files():
            state.update(path.read_bytes())
        folder = project.root / ".cache" / "mkdocs-jupyter" / state.hexdigest()[:16]
        labs: Any = config.plugins["mkdocs-jupyter"]
        labs.config["cache_dir"] = str(folder)
    return config


def on_pre_build(config: MkDocsConfig) -> None:
    """Run the pages that changed.

    In a process of its own: under `mkdocs serve` this one would keep the package as it
    first was. What fails is a warning, so that `--strict` stops and the server goes on.
    """
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent), "generate"],
        cwd=_root(config),
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        log.info("%s", line)
    if done.returncode:
        log.warning("%s", done.stderr.strip())


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Tell the theme where a chapter leads."""
    if page.meta.get("kind") == "chapter" or page.meta.get("notebook"):
        project = Project(_root(config))
        page.meta.update(chapter_links(project, page.file.src_uri, page.meta))
    return markdown


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Drop the comments that speak to pytest; mend the pages of labs."""
    if not page.file.src_uri.endswith(".ipynb"):
        return _COMMENT.sub("", html)

    def find(path: str) -> str | None:
        file = files.get_file_from_path(path)
        return file.url_relative_to(page.file) if file else None

    html, lost = mend_links(html, page.file.src_uri, find)
    for link in lost:
        log.warning("%s links to %s, which is not there", page.file.src_uri, link)
    html, _styles[page.file.src_uri] = take_styles(html)
    up = "../" * page.file.url.count("/")
    return f'<link rel="stylesheet" href="{up}{SHARED_STYLE}">\n{html}'


def on_post_build(config: MkDocsConfig) -> None:
    """Write the style that all labs share; forget labs of an older package."""
    if _styles:
        path = Path(config.site_dir, SHARED_STYLE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(max(_styles.values(), key=len), "utf-8")
    if "mkdocs-jupyter" in config.plugins:
        labs: Any = config.plugins["mkdocs-jupyter"]
        current = Path(labs.config["cache_dir"])
        for folder in current.parent.glob("*/"):
            if folder != current:
                shutil.rmtree(folder)


def on_serve(
    server: LiveReloadServer, config: MkDocsConfig, **_: Any
) -> LiveReloadServer:
    """Watch what authors write, not what a build makes: that would start another."""
    server.unwatch(config.docs_dir)
    for part in Path(config.docs_dir).iterdir():
        if part.name not in MADE:
            server.watch(str(part))
    return server
