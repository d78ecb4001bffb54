"""What the site tells machines."""

import html
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image

import address
from engine.pages.blocks import squeeze
from engine.release import pinned
from engine.site.code import QUOTES
from navigation import CHAPTERS, MARKDOWN, PAGES, PROJECT, front_matter, url

LISTED = [file for file in MARKDOWN if file.startswith("chapters/")]


def test_robots_and_the_overview_name_what_is_there(site: Path) -> None:
    home = address.read()[1]
    assert f"Sitemap: {home}/sitemap.xml" in (site / "robots.txt").read_text("utf-8")
    overview = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"\((\S+)\)", overview)
    wanted = [f"{home}/{url(file)}index.md" for file in CHAPTERS]
    assert [link for link in links if link in wanted] == wanted
    for link in links:
        assert (site / link.removeprefix(f"{home}/")).is_file()


def test_security_txt_can_be_answered(site: Path) -> None:
    """Its fields are those of RFC 9116; it is valid for less than a year."""
    lines = (site / "security.txt").read_text("utf-8").splitlines()
    said = dict(line.split(": ", 1) for line in lines if not line.startswith("#"))
    repository, home = address.read()
    assert said["Contact"] == f"{repository}/security/advisories/new"
    assert said["Canonical"] == f"{home}/security.txt"
    left = datetime.fromisoformat(said["Expires"]) - datetime.now(UTC)
    assert timedelta(days=200) < left < timedelta(days=365)
    policy = said["Policy"].removeprefix(f"{repository}/blob/HEAD/")
    assert (address.ROOT / policy).is_file()


def test_the_skill_is_served_and_named(site: Path) -> None:
    home = address.read()[1]
    assert f"({home}/SKILL.md)" in (site / "llms.txt").read_text("utf-8")
    skill = (site / "SKILL.md").read_text("utf-8")
    assert skill.startswith("---\nname: tformer-tutor\n")
    assert f'pip install "{pinned(PROJECT)}"' in skill
    assert "{{" not in skill
    assert f"{home}/SKILL.md" in (site / "teaching/index.html").read_text("utf-8")


@pytest.mark.parametrize("file", CHAPTERS)
def test_a_chapter_says_what_it_teaches(site: Path, file: str) -> None:
    page = (site / url(file) / "index.html").read_text("utf-8")
    (data,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page)
    said = json.loads(data)
    assert said["teaches"] == front_matter(file)["goals"]
    assert said["url"] in page.partition("<body")[0].partition('rel="canonical"')[2]
    assert said["position"] > CHAPTERS.index(file)


@pytest.mark.parametrize("file", LISTED)
def test_a_chapter_is_markdown_too(site: Path, file: str) -> None:
    """With every block of code that the page shows, in the order of the page."""
    page = (site / url(file) / "index.html").read_text("utf-8")
    assert '<link rel="alternate" type="text/markdown" href="index.md">' in page
    text = (site / url(file) / "index.md").read_text("utf-8")
    article = page.partition("<article")[2].partition("</article>")[0]
    # What an editor begins with is a field to write in, no block of the page.
    article = re.sub(r'<div class="python" .*?</pre>', "", article, flags=re.DOTALL)
    found = re.findall(r"<pre>.*?<code>(.*?)</code></pre>", article, re.DOTALL)
    shown = [html.unescape(re.sub(r"<[^>]*>", "", code)) for code in found]
    # What closes a folded docstring stands twice in the page.
    within, *plain = [squeeze(x.replace(f"{QUOTES}\n", "\n")) for x in [text, *shown]]
    missing = [code for code in plain if code not in within]
    assert not missing, missing[0]
    assert len(shown) > 5
    prose = re.sub(r"^(```+|~~~+).*?^\1$", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)", re.sub(r"`[^`]*`", "", prose)):
        assert re.match(r"https?://|mailto:", target), target


def meta(page: str) -> dict[str, str]:
    pairs = re.findall(r'<meta (?:property|name)="([^"]*)" content="([^"]*)">', page)
    return {name: html.unescape(text) for name, text in pairs}


@pytest.mark.by_day(60)
@pytest.mark.parametrize("page", PAGES)
def test_a_link_to_a_page_has_a_card(site: Path, page: str) -> None:
    home = address.read()[1]
    said = meta((site / page / "index.html").read_text("utf-8"))
    assert said["og:url"] == f"{home}/{page}"
    assert said["twitter:card"] == "summary_large_image"
    assert said["og:title"]
    assert 30 <= len(said["og:description"]) <= 300
    assert said["og:description"] == said["description"]
    card = site / said["og:image"].removeprefix(f"{home}/")
    with Image.open(card) as image:
        assert image.format == "PNG"
        assert image.size == (1200, 630)
    assert card.stat().st_size < 300_000
