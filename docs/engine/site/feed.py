"""An Atom feed of the chapters, with the dates that git has of them."""

import datetime
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mkdocs.config.defaults import MkDocsConfig

from engine.project import Project
from engine.site.cards import FOLDER, plain
from engine.site.lists import Chapter, chapters

FILE = "feed.xml"
ATOM = "http://www.w3.org/2005/Atom"


@dataclass(frozen=True)
class Dates:
    """When a file came into the repository, and when it last changed there."""

    published: str
    updated: str


def on_post_build(config: MkDocsConfig) -> None:
    """Write the feed."""
    project = Project(Path(config.config_file_path).resolve().parent)
    listed = chapters(project)
    dates = dates_of(project, [chapter.file for chapter in listed])
    title = str(config.site_description or config.site_name).partition(":")[0]
    text = feed(listed, dates, project.site_url, title, config.site_name)
    Path(config.site_dir, FILE).write_bytes(text)


def feed(
    listed: list[Chapter], dates: Mapping[str, Dates], home: str, title: str, name: str
) -> bytes:
    """Return the feed: the newest chapter first, then in the order of the book.

    Args:
        listed: the chapters.
        dates: of each, by its file in docs/.
        home: the address of the site.
        title: of the feed.
        name: of the project, whose authors wrote it.
    """
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed", {"xml:lang": "en"})
    newest = max((x.updated for x in dates.values()), default=_now())
    _add(root, "title", title)
    _add(root, "id", home)
    _add(root, "link", href=home)
    _add(root, "link", rel="self", type="application/atom+xml", href=home + FILE)
    _add(root, "updated", newest)
    _add(_add(root, "author"), "name", f"The {name} authors")
    _add(root, "icon", f"{home}assets/favicon.svg")
    for chapter in sorted(listed, key=lambda x: dates[x.file].published, reverse=True):
        url = home + chapter.file.removesuffix(".md") + "/"
        card = f"{home}{FOLDER}/{Path(chapter.file).stem}.png"
        entry = _add(root, "entry")
        _add(entry, "title", plain(chapter.title))
        _add(entry, "id", url)
        _add(entry, "link", href=url)
        _add(entry, "link", rel="enclosure", type="image/png", href=card)
        _add(entry, "published", dates[chapter.file].published)
        _add(entry, "updated", dates[chapter.file].updated)
        said = (chapter.meta.get("question"), chapter.meta.get("description"))
        _add(entry, "summary", " ".join(plain(str(x)).strip() for x in said if x))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, "utf-8", xml_declaration=True)) + b"\n"


def _add(
    parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}", attributes)
    element.text = text
    return element


def dates_of(project: Project, files: Iterable[str]) -> dict[str, Dates]:
    """Return the dates of files in docs/; of what git does not know, those of today."""
    docs = project.relative(project.docs)
    command = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", "log"]
    command += ["--format=%x00%cI", "--name-only", "--relative", "--", docs]
    options: dict[str, Any] = {"cwd": project.root, "capture_output": True}
    try:
        done = subprocess.run(command, **options, text=True, check=False)
        said = done.stdout
    except OSError:  # there is no git
        said = ""
    known: dict[str, Dates] = {}
    for commit in said.split("\0")[1:]:  # from the last to the first
        date, *names = [line for line in commit.split("\n") if line]
        date = _utc(date)
        for name in names:
            known[name] = Dates(date, known[name].updated if name in known else date)
    today = _now()
    return {file: known.get(f"{docs}/{file}", Dates(today, today)) for file in files}


def _utc(date: str) -> str:
    """Return a date of git in one time zone: so they can be compared as text."""
    moment = datetime.datetime.fromisoformat(date).astimezone(datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _now() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT00:00:00Z}"
