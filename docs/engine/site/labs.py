"""The pages of labs, which mkdocs-jupyter makes of notebooks: mended, and lighter."""

import hashlib
import logging
import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from engine.copies.labs import lab_alone
from engine.run.cache import digest_of
from engine.site import project_of

log = logging.getLogger("mkdocs.hooks.labs")

SHARED_STYLE = "assets/css/jupyter.css"
_LINK = re.compile(
    r'href="(?P<path>(?![a-z][a-z0-9+.-]*:|[#/])[^"#]+\.(?:md|ipynb))(?P<anchor>#[^"]*)?"'
)
_STYLE = re.compile(r"<style[^>]*>(?P<css>.*?)</style>", re.DOTALL)
# For MathJax and Mermaid, which would be loaded from elsewhere; the site has KaTeX.
_SCRIPT = re.compile(
    r'<script (?:src=""|type="text/x-mathjax-config"|type="module").*?</script>',
    re.DOTALL,
)

_styles: dict[str, str] = {}  # of each lab
_labs: dict[Path, Path] = {}  # the notebook of each, and where readers get it


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the labs a cache per state of the package, which mkdocs-jupyter ignores."""
    _labs.clear()
    project, state = project_of(config), hashlib.sha256()
    for path in project.package_files():
        state.update(digest_of(path).encode())
    folder = project.root / ".cache" / "mkdocs-jupyter" / state.hexdigest()[:16]
    _options(config)["cache_dir"] = str(folder)
    return config


def _options(config: MkDocsConfig) -> Any:
    plugin: Any = config.plugins["mkdocs-jupyter"]
    return plugin.config


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Mend links, and take the style out that all labs share."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def find(path: str) -> str | None:
        file = files.get_file_from_path(path)
        return file.url_relative_to(page.file) if file else None

    html, lost = mend_links(html, page.file.src_uri, find)
    for link in lost:
        log.warning("%s links to %s, which is not there", page.file.src_uri, link)
    html, _styles[page.file.src_uri] = take_styles(html)
    source = Path(str(page.file.abs_src_path))
    _labs[source] = Path(page.file.abs_dest_path).parent / source.name
    up = "../" * page.file.url.count("/")
    return f'<link rel="stylesheet" href="{up}{SHARED_STYLE}">\n{html}'


def on_post_build(config: MkDocsConfig) -> None:
    """Write the style, and the labs to take away; forget those of an older package."""
    if _styles:
        path = Path(config.site_dir, SHARED_STYLE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(max(_styles.values(), key=len), "utf-8")
    for source, target in _labs.items():
        target.write_text(lab_alone(project_of(config), source), "utf-8")
    current = Path(_options(config)["cache_dir"])
    for folder in current.parent.glob("*/"):
        if folder != current:
            shutil.rmtree(folder)


def take_styles(html: str) -> tuple[str, str]:
    """Return a page without its styles (590 KB, the same in every lab), and these."""
    css = "\n".join(style["css"] for style in _STYLE.finditer(html))
    return _SCRIPT.sub("", _STYLE.sub("", html)), css


def mend_links(
    html: str, source: str, find: Callable[[str], str | None]
) -> tuple[str, list[str]]:
    """Turn links to sources into links to pages, as MkDocs does in Markdown.

    Args:
        html: the page.
        source: its file in docs/, from which its links start.
        find: gives the link to a file in docs/ from this page, if there is one.

    Returns:
        The page, and the links that lead nowhere.
    """
    lost = []

    def link(match: re.Match[str]) -> str:
        file = posixpath.join(posixpath.dirname(source), match["path"])
        url = find(posixpath.normpath(file))
        if url is None:
            lost.append(match["path"])
            return match[0]
        return f'href="{url}{match["anchor"] or ""}"'

    return _LINK.sub(link, html), lost
