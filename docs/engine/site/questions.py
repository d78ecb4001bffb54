"""MkDocs hooks: the interview questions of each chapter, for the cards of a day.

`live/questions/NAME.json` has those of one chapter as its page shows them,
`live/questions/index.json` the chapters that have some, in their order. The piece
docs/live/pieces/cards.js asks for those that a reader has opened.
"""

import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

FOLDER = "live/questions"
_SECTION = re.compile(r'<h2 id="interview-questions">.*?(?=<h2 |\Z)', re.DOTALL)
_QUESTION = re.compile(
    r'<details class="question">\s*<summary>(?P<question>.*?)</summary>'
    r"(?P<answer>.*?)</details>",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]+>")

_found: dict[str, list[dict[str, str]]] = {}  # of this build, by the chapter's name


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Begin anew at each build of a server."""
    _found.clear()
    return config


@event_priority(-110)  # after bundles.py: no inline styles are left
def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Note the questions of a chapter."""
    if page.meta.get("kind") == "chapter":
        _found[page.file.name] = questions(page.file.name, output)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write them, and the list of chapters that have some."""
    folder = Path(config.site_dir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for chapter in config.extra["chapters"]:
        if cards := _found.get(chapter.name):
            listed.append({"name": chapter.name, "title": chapter.title})
            _write(folder / f"{chapter.name}.json", cards)
    _write(folder / "index.json", listed)


def questions(chapter: str, html: str) -> list[dict[str, str]]:
    """Return the interview questions of a chapter's page.

    Args:
        chapter: its name in addresses.
        html: the page; a question is a fold of the section "Interview questions".

    Returns:
        `id`, made of the chapter and the words of the question, so that it stays when
        questions change places; `question` and `answer`, as HTML.
    """
    section = _SECTION.search(html)
    cards = []
    for found in _QUESTION.finditer(section[0] if section else ""):
        words = " ".join(unescape(_TAG.sub("", found["question"])).split())
        name = hashlib.sha256(words.encode()).hexdigest()[:8]
        cards.append(
            {
                "id": f"{chapter}:{name}",
                "question": found["question"].strip(),
                "answer": found["answer"].strip(),
            }
        )
    return cards


def _write(path: Path, value: list[dict[str, str]]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", "utf-8")
