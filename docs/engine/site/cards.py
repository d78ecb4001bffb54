"""Social cards: what a link to a page looks like where somebody shares it.

A chapter has a picture of its own, 1200 × 630 pixels: its title, the question it
answers, and its opening figure, as it is on a light page. All other pages share one.
They are drawn from SVG by resvg when the site is built, and only when they changed.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from engine.project import Project
from engine.site.drawing import HEIGHT, WIDTH, Card, drawn
from engine.site.hooks import one_page
from engine.site.lists import Chapter, chapters

FOLDER = "assets/cards"  # on the site
SHARED = "book"  # the card of all pages that are no chapter
FIGURE = "chapters/attention.md"  # whose figure it shows

_PLACE = re.compile(r"!\[[^\]]*\]\(\S*/figures/(?P<name>[\w.-]+\.svg)")
_MARKUP = re.compile(r"[`*]|\\[()]")

_building: dict[str, Any] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read the chapters once a build."""
    project = Project(Path(config.config_file_path).resolve().parent)
    _building.update(project=project, chapters=chapters(project))
    return config


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Say in the head of a page what its link looks like."""
    files = {chapter.file: chapter for chapter in _building["chapters"]}
    chapter = files.get(page.file.src_uri)
    name = Path(page.file.src_uri).stem if chapter else SHARED
    title = plain(chapter.title) if chapter else str(page.title or config.site_name)
    lines = tags(
        title=title if chapter or page.is_homepage else f"{title} – {config.site_name}",
        text=str(page.meta.get("description") or config.site_description or ""),
        url=str(page.canonical_url),
        image=f"{_building['project'].site_url}{FOLDER}/{name}.png",
        kind="article" if chapter else "website",
        site=config.site_name,
    )
    return output.replace("</head>", "".join(f"{x}\n  " for x in lines) + "</head>", 1)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the cards."""
    project: Project = _building["project"]
    wanted = one_page(config)
    made = {
        name: drawn(card, project.root / ".cache" / "cards")
        for name, card in cards(project, _building["chapters"], config)
        if wanted is None or name == Path(wanted).stem
    }
    for name, picture in made.items():
        path = Path(config.site_dir, FOLDER, f"{name}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)


def tags(**said: str) -> list[str]:
    """Return the elements of a head by which others show a link to the page."""
    properties = {
        "og:type": said["kind"],
        "og:site_name": said["site"],
        "og:title": said["title"],
        "og:description": said["text"],
        "og:url": said["url"],
        "og:image": said["image"],
        "og:image:type": "image/png",
        "og:image:width": str(WIDTH),
        "og:image:height": str(HEIGHT),
        "og:image:alt": f"{said['title']}: {said['text']}",
    }
    names = {
        "twitter:card": "summary_large_image",
        "twitter:title": said["title"],
        "twitter:description": said["text"],
        "twitter:image": said["image"],
    }
    return [
        f'<meta {kind}="{key}" content="{html.escape(value)}">'
        for kind, pairs in (("property", properties), ("name", names))
        for key, value in pairs.items()
    ]


def cards(
    project: Project, listed: list[Chapter], config: MkDocsConfig
) -> Iterator[tuple[str, Card]]:
    """Yield the card of each chapter by its name, and the one for all other pages."""
    for number, chapter in enumerate(listed, 1):
        foot = f"Chapter {number} of {len(listed)}"
        question = plain(str(chapter.meta.get("question") or ""))
        figure = opening_figure(project, chapter.text)
        yield (
            Path(chapter.file).stem,
            Card(plain(chapter.title), question, foot, figure),
        )
    first = next((x for x in listed if x.file == FIGURE), None)
    figure = opening_figure(project, first.text) if first else ""
    title, _, text = str(config.site_description or config.site_name).partition(": ")
    text = f"{text[:1].upper()}{text[1:]}"
    yield SHARED, Card(title, text, f"{len(listed)} chapters", figure)


def opening_figure(project: Project, text: str) -> str:
    """Return the first figure of a page, as the engine drew it, or nothing."""
    place = _PLACE.search(text)
    path = project.docs / "figures" / place["name"] if place else None
    return path.read_text("utf-8") if path and path.is_file() else ""


def plain(text: str) -> str:
    """Drop the marks of Markdown."""
    return _MARKUP.sub("", text)
