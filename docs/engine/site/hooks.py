"""MkDocs hooks: make the generated files first, and link them."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.append(str(Path(__file__).parents[2]))  # MkDocs loads this file by its path

from engine.looking import ONE_PAGE
from engine.making import MADE
from engine.pages.blocks import PageError
from engine.pages.minutes import minutes
from engine.pages.reading import CHAPTERS, kind_of
from engine.pages.reading import Page as Source
from engine.project import Project

log = logging.getLogger("mkdocs.hooks.engine")

_COMMENT = re.compile(r"<!--[-\s]*pytest.*?-->\n?", re.DOTALL)


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).resolve().parent


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let links lead nowhere where one page alone is built."""
    wanted = one_page(config)
    if wanted is not None:
        for options in (config.validation.nav, config.validation.links):
            options.update(dict.fromkeys(options, logging.DEBUG))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leave out all pages but the one that is asked for."""
    wanted = one_page(config)
    if wanted is None:
        return files
    return Files(
        [x for x in files if x.src_uri == wanted or not x.is_documentation_page()]
    )


def one_page(config: MkDocsConfig) -> str | None:
    """Return the file in docs/ of the only page to build; None for all of them."""
    path = os.environ.get(ONE_PAGE)
    return Path(path).relative_to(config.docs_dir).as_posix() if path else None


def on_pre_build(config: MkDocsConfig) -> None:
    """Run the pages that changed.

    In a process of its own: under `mkdocs serve` this one would keep the package as it
    first was. What fails is a warning, so that `--strict` stops and the server goes on.
    """
    done = subprocess.run(
        [
            *(sys.executable, str(Path(__file__).parents[1]), "generate"),
            *([os.environ[ONE_PAGE]] if one_page(config) else []),
        ],
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
    repository = Project(_root(config)).repo_url
    markdown = _TO_COLAB.sub(rf"({_colab(repository)}/\1.ipynb)", markdown)
    in_chapters = Path(page.file.src_uri).parent == Path(CHAPTERS)
    if kind_of(page.meta, in_chapters) == "chapter" or page.meta.get("notebook"):
        project = Project(_root(config))
        page.meta["kind"] = kind_of(page.meta, in_chapters)
        page.meta.update(chapter_links(project, page.file.src_uri, page.meta))
        if page.meta["kind"] == "chapter":
            path = Path(config.docs_dir, page.file.src_uri)
            page.meta["minutes"] = minutes_of(project, path)
    return markdown


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Drop the comments that speak to pytest."""
    return html if page.file.src_uri.endswith(".ipynb") else _COMMENT.sub("", html)


def on_serve(
    server: LiveReloadServer, config: MkDocsConfig, **_: Any
) -> LiveReloadServer:
    """Watch what authors write, not what a build makes: that would start another."""
    server.unwatch(config.docs_dir)
    for part in Path(config.docs_dir).iterdir():
        if part.name not in MADE:
            server.watch(str(part))
    return server


def minutes_of(project: Project, path: Path) -> int | None:
    """Return the time to read a page; None for a wrong one: the engine says so."""
    try:
        return minutes(Source(project, path))
    except PageError:
        return None


# The branch that the workflow for GitHub Pages pushes docs/notebooks/ to.
NOTEBOOKS_BRANCH = "notebooks"
_COLAB = "https://colab.research.google.com/github"
_TO_COLAB = re.compile(r"\(colab:([\w-]+)\)")  # in a page: [Run it](colab:attention)


def _colab(repo_url: str) -> str:
    repository = repo_url.removeprefix("https://github.com/")
    return f"{_COLAB}/{repository}/blob/{NOTEBOOKS_BRANCH}"


def chapter_links(
    project: Project, source: str, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the theme shows under the title of a chapter.

    Args:
        project: which knows the addresses.
        source: the file of the page in docs/.
        meta: its front matter.

    Returns:
        `source_url`, `module_urls` in the order of `modules`, `colab_url`, and, from
        the root of the site, `notebook`, `standalone` and `standalone_numpy`; None
        for a file that is not there.
    """
    on_github = f"{project.repo_url}/blob/HEAD"
    docs = project.relative(project.docs)
    links: dict[str, Any] = {"source_url": f"{on_github}/{docs}/{source}"}
    links["module_urls"] = [f"{on_github}/{name}" for name in meta.get("modules", [])]
    name = PurePosixPath(source).stem
    files = {
        "notebook": f"notebooks/{name}.ipynb",
        "standalone": f"downloads/{name}.py",
        "standalone_numpy": f"downloads/{name}_numpy.py",
    }
    for key, file in files.items():
        links[key] = file if (project.docs / file).is_file() else None
    notebook = f"{_colab(project.repo_url)}/{name}.ipynb"
    links["colab_url"] = notebook if links["notebook"] else None
    return links
