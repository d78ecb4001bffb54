"""What machines read: robots.txt, llms.txt, and each chapter as Markdown.

A chapter also says what it teaches, in its head. The chapters, their order and their
questions are those of `lists`.
"""

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from engine.copies.as_markdown import as_markdown
from engine.pages.blocks import PageError
from engine.pages.reading import Page as Source
from engine.project import Project
from engine.site.lists import ORDER, Chapter, chapters, order

MARKDOWN = "index.md"  # beside the index.html of a chapter
# Material's script takes each alternate form of a page for another language, and looks
# for a sitemap beside it.
ALTERNATES, LANGUAGES = "link[rel=alternate]", "link[rel=alternate][hreflang]"

log = logging.getLogger("mkdocs.hooks.machines")

_building: dict[str, Any] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read the chapters once a build."""
    project = Project(Path(config.config_file_path).resolve().parent)
    _building.update(project=project, chapters=chapters(project))
    return config


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Write into a chapter what it is, as schema.org says it, and its other form."""
    project: Project = _building["project"]
    listed: list[Chapter] = _building["chapters"]
    for number, chapter in enumerate(listed, 1):
        if chapter.file == page.file.src_uri:
            said = about(chapter, number, project.site_url, config.site_name)
            data = json.dumps(said, ensure_ascii=False).replace("</", "<\\/")
            script = f'<script type="application/ld+json">{data}</script>'
            other = f'<link rel="alternate" type="text/markdown" href="{MARKDOWN}">'
            return output.replace("</head>", f"{other}\n  {script}\n  </head>", 1)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write the files."""
    project: Project = _building["project"]
    site = Path(config.site_dir)
    robots = f"User-agent: *\nAllow: /\nSitemap: {project.site_url}sitemap.xml\n"
    (site / "robots.txt").write_text(robots, "utf-8")
    lines = overview(
        _building["chapters"],
        project.site_url,
        config.site_name,
        config.site_description or "",
    )
    (site / "llms.txt").write_text("\n".join(lines), "utf-8")
    for script in (site / "assets" / "javascripts").glob("bundle.*.min.js"):
        code = script.read_text("utf-8")
        if ALTERNATES not in code:
            log.warning("%s does not look for %s any more", script.name, ALTERNATES)
        script.write_text(code.replace(ALTERNATES, LANGUAGES), "utf-8")
    lists = {ORDER: order(project)}
    for chapter in _building["chapters"]:
        path = site / chapter.file.removesuffix(".md") / MARKDOWN
        if path.parent.is_dir():  # not where one page alone is built
            with contextlib.suppress(PageError):  # which the engine tells
                page = Source(project, project.docs / chapter.file)
                path.write_text(as_markdown(page, lists), "utf-8")


def about(chapter: Chapter, number: int, home: str, book: str) -> dict[str, Any]:
    """Return what a chapter is in the words of schema.org.

    Args:
        chapter: which.
        number: its place in the book, from 1.
        home: the address of the site.
        book: its name.
    """
    said = {
        "@context": "https://schema.org",
        "@type": ["TechArticle", "LearningResource", "Chapter"],
        "headline": chapter.title,
        "name": chapter.title,
        "position": number,
        "description": chapter.meta.get("description"),
        "abstract": chapter.meta.get("question"),
        "keywords": chapter.meta.get("keywords"),
        "teaches": chapter.meta.get("goals"),
        "url": home + chapter.file.removesuffix(".md") + "/",
        "inLanguage": "en",
        "isAccessibleForFree": True,
        "license": "https://opensource.org/license/mit",
        "isPartOf": {"@type": "Book", "name": book, "url": home},
    }
    return {key: value for key, value in said.items() if value is not None}


def overview(listed: list[Chapter], home: str, name: str, summary: str) -> list[str]:
    """Return the lines of llms.txt: the chapters in order, each with its question."""
    lines = [f"# {name}", "", f"> {summary}", ""]
    lines += [f"These links lead to Markdown; without `{MARKDOWN}`, to the page.", ""]
    lines += ["## Chapters", ""]
    for chapter in listed:
        url = f"{home}{chapter.file.removesuffix('.md')}/{MARKDOWN}"
        lines.append(f"- [{chapter.title}]({url}): {chapter.meta.get('question')}")
    return [*lines, ""]
