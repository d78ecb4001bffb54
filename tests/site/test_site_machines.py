"""What the site tells machines."""

import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

import address
from engine.pages.blocks import squeeze
from engine.site.code import QUOTES
from navigation import CHAPTERS, MARKDOWN, PAGES, front_matter, url

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
    named = {url(file): Path(file).stem for file in LISTED}
    assert card.stem == named.get(page, "book")
    with Image.open(card) as image:
        assert image.format == "PNG"
        assert image.size == (1200, 630)
    assert card.stat().st_size < 300_000


def test_every_chapter_has_a_card_of_its_own_with_its_figure(site: Path) -> None:
    cards = {Path(file).stem: None for file in LISTED}
    for name in cards:
        with Image.open(site / f"assets/cards/{name}.png") as image:
            picture = image.convert("RGB")
            cards[name] = picture.tobytes()
            colours = picture.crop((60, 200, 1140, 530)).getcolors(1 << 20)
        assert len(colours) > 50, name  # a figure, and not a text alone
    assert len(set(cards.values())) == len(LISTED)


def test_the_feed_is_atom(site: Path) -> None:
    """What RFC 4287 asks for, and every chapter once."""
    home = address.read()[1]
    said = ElementTree.fromstring((site / "feed.xml").read_bytes())
    atom = "{http://www.w3.org/2005/Atom}"
    assert said.tag == f"{atom}feed"
    entries = said.findall(f"{atom}entry")
    for part in (said, *entries):
        for name in ("id", "title", "updated"):
            assert len(part.findall(f"{atom}{name}")) == 1
            assert part.findtext(f"{atom}{name}")
        for name in ("updated", "published"):
            for date in part.findall(f"{atom}{name}"):
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date.text)
    assert said.findtext(f"{atom}author/{atom}name")
    links = {x.get("rel"): x.get("href") for x in said.findall(f"{atom}link")}
    assert links == {None: f"{home}/", "self": f"{home}/feed.xml"}
    ids = [entry.findtext(f"{atom}id") for entry in entries]
    assert sorted(ids) == sorted(f"{home}/{url(file)}" for file in LISTED)
    dates = [entry.findtext(f"{atom}published") for entry in entries]
    assert dates == sorted(dates, reverse=True)
    last = max(entry.findtext(f"{atom}updated") for entry in entries)
    assert said.findtext(f"{atom}updated") == last
    for entry in entries:
        for link in entry.findall(f"{atom}link"):
            path = site / link.get("href").removeprefix(f"{home}/")
            assert path.exists(), path
        assert entry.findtext(f"{atom}summary")
    head = (site / "index.html").read_text("utf-8").partition("<body")[0]
    feed = re.search(r'<link rel="alternate" type="application/atom\+xml"[^>]*>', head)
    assert feed
    assert 'href="feed.xml"' in feed[0]
