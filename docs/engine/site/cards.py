"""What a page is called where somebody shares it, and the picture that stands there.

A hook of MkDocs. Titles of chapters are short, as they stand in a list: what people
look for is in `concept`, and goes into the title of the browser's tab, of search
engines and of a shared link. Home, the live model and chapters have a card each, of
1200 by 630.
"""

import textwrap
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from PIL import Image, ImageDraw

from engine.run.fonts import font
from engine.site.lists import plain

SIZE, MARGIN = (1200, 630), 80
PAPER, INK, SOFT, BLUE = "#fffefb", "#23272d", "#59616b", "#0b5c8a"
FOLDER = "assets/cards"
_LIVE = ("live.md", "jeudi 3 mai 1979  →  1979-05-03")

_cards: dict[str, tuple[str, str, str]] = {}  # file: title, text, line below


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: tell the template title and card; note what to draw."""
    file, meta = page.file.src_uri, page.meta
    chapter = next((x for x in config.extra["chapters"] if x.file == file), None)
    if chapter:
        meta["telling"] = telling(plain(chapter.title), meta.get("concept", ""))
    elif page.is_homepage or file == _LIVE[0]:
        meta["telling"] = meta.get("title") or markdown.split("# ", 1)[1].split("\n")[0]
    else:
        return markdown
    meta["card"] = f"{FOLDER}/{Path(file).stem}.png"
    below = _LIVE[1] if file == _LIVE[0] else (config.site_url or "//").split("//")[1]
    _cards[meta["card"]] = (meta["telling"], meta.get("description", ""), below)
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """MkDocs: draw the cards."""
    for file, said in _cards.items():
        path = Path(config.site_dir, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Few colours: a card has some 20 KB.
        card(*said).quantize(32).save(path, optimize=True)


def telling(title: str, concept: str) -> str:
    """Return a title with what its concept adds: "Small caches: latent attention"."""
    known = title.casefold()
    more = [x for x in concept.split(", ") if x.casefold() not in known]
    return f"{title}: {', '.join(more)}" if more and ":" not in title else title


def card(title: str, text: str, below: str) -> Image.Image:
    """Draw a title, a description and a line below."""
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 16, SIZE[1]), BLUE)
    draw.text((MARGIN, 64), "tformer", BLUE, font(600, 34))
    y = 140
    for said, weight, size, ink, most in (
        (title, 600, 68, INK, 3),
        (text, 400, 34, SOFT, 4),
    ):
        for line in textwrap.wrap(said, int(2.05 * (SIZE[0] - 2 * MARGIN) / size))[
            :most
        ]:
            draw.text((MARGIN, y), line, ink, font(weight, size))
            y += int(1.22 * size)
        y += 24
    draw.text((MARGIN, SIZE[1] - 88), below, BLUE, font(600, 34))
    return image
