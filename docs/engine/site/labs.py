"""The pages of labs, which mkdocs-jupyter makes of notebooks: mended, and lighter.

The notebook that readers take away installs the package first.
"""

import hashlib
import logging
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from engine.copies.as_markdown import link_from
from engine.copies.notebooks import installing_cell, v4
from engine.project import Project
from engine.release import pinned
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
_IN_MARKDOWN = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=[)\s])")

_styles: set[str] = set()  # 590 KB, the same in every lab
_labs: dict[Path, Path] = {}  # the notebook of each, and where readers get it


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the labs a cache per state of the package, which mkdocs-jupyter ignores."""
    _labs.clear()
    project = project_of(config)
    files = "".join(map(digest_of, project.package_files()))
    state = hashlib.sha256(files.encode()).hexdigest()[:16]
    folder = project.root / ".cache" / "mkdocs-jupyter" / state
    _options(config)["cache_dir"] = str(folder)
    return config


def _options(config: MkDocsConfig) -> Any:
    plugin: Any = config.plugins["mkdocs-jupyter"]
    return plugin.config


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Link pages, not sources, as in Markdown; take out the style that labs share."""
    name = page.file.src_uri
    if not name.endswith(".ipynb"):
        return html

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(
            posixpath.join(posixpath.dirname(name), match["path"])
        )
        file = files.get_file_from_path(path)
        if file is None:
            log.warning("%s links to %s, which is not there", name, match["path"])
            return match[0]
        return f'href="{file.url_relative_to(page.file)}{match["anchor"] or ""}"'

    html = _LINK.sub(link, html)
    _styles.add("\n".join(style["css"] for style in _STYLE.finditer(html)))
    source = Path(str(page.file.abs_src_path))
    _labs[source] = Path(page.file.abs_dest_path).parent / source.name
    up = "../" * page.file.url.count("/")
    html = _SCRIPT.sub("", _STYLE.sub("", html))
    return f'<link rel="stylesheet" href="{up}{SHARED_STYLE}">\n{html}'


def on_post_build(config: MkDocsConfig) -> None:
    """Write the style, and the labs to take away; forget those of an older package."""
    if _styles:
        path = Path(config.site_dir, SHARED_STYLE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(max(_styles, key=len), "utf-8")
    for source, target in _labs.items():
        target.write_text(_alone(project_of(config), source), "utf-8")
    current = Path(_options(config)["cache_dir"])
    for folder in current.parent.glob("*/"):
        if folder != current:
            shutil.rmtree(folder)


def _alone(project: Project, path: Path) -> str:
    """Return a lab that installs the package first, and has absolute links."""
    book = v4.reads(path.read_text("utf-8"))
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = _IN_MARKDOWN.sub(
                lambda link: link_from(project, path, link["target"]), cell.source
            )
    if any(project.package in text for text in code):
        installing = installing_cell(pinned(project))
        installing["id"] = "get-the-package"
        place = [cell.cell_type for cell in book.cells].index("code")
        book.cells.insert(place, installing)
    text: str = v4.writes(book, ensure_ascii=False)
    return text + "\n"
