"""MkDocs hooks: make the generated files first, and tell the templates of chapters."""

import contextlib
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.append(str(Path(__file__).parents[2]))  # MkDocs loads this file by its path

from engine.copies.as_markdown import as_markdown
from engine.making import MADE
from engine.pages.blocks import PageError
from engine.pages.reading import CHAPTERS
from engine.pages.reading import Page as Source
from engine.project import Project
from engine.release import pinned, unpinned
from engine.site import project_of
from engine.site.lists import ORDER, chapters, order, plain

log = logging.getLogger("mkdocs.hooks.engine")

ONE_PAGE = "ENGINE_PAGE"  # in the environment: the only page to build
MARKDOWN = "index.md"  # a chapter as Markdown, beside its index.html
VALID = timedelta(days=300)  # security.txt must not say more than a year
# The branch that the workflow for GitHub Pages pushes the site's notebooks to.
NOTEBOOKS_BRANCH = "notebooks"
_COLAB = "https://colab.research.google.com/github"
_TO_COLAB = re.compile(r"\(colab:([\w-]+)\)")  # in a page: [Run it](colab:attention)
_COMMENT = re.compile(r"<!--[-\s]*pytest.*?-->\n?", re.DOTALL)
_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_TERM = re.compile(r"</?abbr\b[^>]*>")
_ABBREVIATION = re.compile(r"^\*\[(.+)\]: (.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read chapters and abbreviations; one page alone may link to what is not there."""
    project = project_of(config)
    config.extra.update(
        chapters=chapters(project),
        markdown=MARKDOWN,
        installing=pinned(project),
        expires=f"{datetime.now(UTC) + VALID:%Y-%m-%dT00:00:00Z}",
        release=os.environ.get("MIKE_DOCS_VERSION"),
    )
    abbreviations = Path(config.docs_dir, "includes", "abbreviations.md")
    if abbreviations.is_file():  # given once: docstrings are 2,000 texts of their own
        terms = dict(_ABBREVIATION.findall(abbreviations.read_text("utf-8")))
        config.mdx_configs["abbr"] = {"glossary": terms}
    if one_page(config):
        for options in (config.validation.nav, config.validation.links):
            options.update(dict.fromkeys(options, logging.DEBUG))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leave out all pages but the one that is asked for."""
    wanted = one_page(config)
    kept = (x for x in files if x.src_uri == wanted or not x.is_documentation_page())
    return Files(list(kept)) if wanted else files


def one_page(config: MkDocsConfig) -> str | None:
    """Return the file in docs/ of the only page to build; None for all of them."""
    page = os.environ.get(ONE_PAGE)
    return os.path.relpath(page, config.docs_dir) if page else None


def on_pre_build(config: MkDocsConfig) -> None:
    """Run the pages that changed.

    In a process of its own: under `mkdocs serve` this one would keep the package as it
    first was. What fails is a warning, so that `--strict` stops and the server goes on.
    """
    command = [sys.executable, str(Path(__file__).parents[1]), "generate"]
    command += [os.environ[ONE_PAGE]] if one_page(config) else []
    root = project_of(config).root
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        log.info("%s", line)
    if done.returncode:
        log.warning("%s", done.stderr.strip())


def on_env(env: Any, **_: Any) -> Any:
    """Let templates drop the marks of Markdown."""
    env.filters["plain"] = plain
    return env


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Tell the theme where a chapter leads."""
    for chapter in config.extra["chapters"]:
        if chapter.file == page.file.src_uri and chapter.is_chapter:
            page.meta.update(chapter_links(chapter), kind="chapter")
    return _TO_COLAB.sub(rf"({_colab(project_of(config))}/\1.ipynb)", markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Drop the comments that speak to pytest, and HTML where a drawing has text."""
    if page.file.src_uri.endswith(".ipynb"):
        return html
    return _DRAWING.sub(lambda x: _TERM.sub("", x[0]), _COMMENT.sub("", html))


def on_post_build(config: MkDocsConfig) -> None:
    """Write each chapter as Markdown; let notebooks install the package as it is."""
    project = project_of(config)
    before, after = unpinned(project), pinned(project)
    for path in Path(config.site_dir, "notebooks").glob("*.ipynb"):
        path.write_text(path.read_text("utf-8").replace(before, after), "utf-8")
    lists = {ORDER: order(project)}
    for chapter in config.extra["chapters"]:
        path = Path(config.site_dir, CHAPTERS, chapter.name, MARKDOWN)
        if path.parent.is_dir():  # not where one page alone is built
            with contextlib.suppress(PageError):
                path.write_text(as_markdown(chapter, lists), "utf-8")


def on_serve(
    server: LiveReloadServer, config: MkDocsConfig, **_: Any
) -> LiveReloadServer:
    """Watch what authors write, not what a build makes: that would start another."""
    server.unwatch(config.docs_dir)
    for part in Path(config.docs_dir).iterdir():
        if part.name not in MADE:
            server.watch(str(part))
    return server


def _colab(project: Project) -> str:
    repository = project.repo_url.removeprefix("https://github.com/")
    return f"{_COLAB}/{repository}/blob/{NOTEBOOKS_BRANCH}"


def chapter_links(chapter: Source) -> dict[str, Any]:
    """Return what the theme shows under the title of a chapter.

    Of files that a chapter may have, those that are not there are None.
    """
    project, name = chapter.project, chapter.name
    on_github = f"{project.repo_url}/blob/HEAD"
    files = {
        "notebook": f"notebooks/{name}.ipynb",
        "solutions": f"notebooks/{name}-solutions.ipynb",
        "standalone": f"downloads/{name}.py",
        "standalone_numpy": f"downloads/{name}_numpy.py",
    }
    there = {x: y if (project.docs / y).is_file() else None for x, y in files.items()}
    return {
        "source_url": f"{on_github}/{project.relative(chapter.path)}",
        "module_urls": [f"{on_github}/{x}" for x in chapter.meta.get("modules", [])],
        "colab_url": f"{_colab(project)}/{name}.ipynb" if there["notebook"] else None,
        **there,
    }
