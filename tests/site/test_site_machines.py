"""What the site tells machines."""

import json
import re
from pathlib import Path

import pytest

import address
from navigation import CHAPTERS, front_matter, url


def test_robots_and_the_overview_name_what_is_there(site: Path) -> None:
    home = address.read()[1]
    assert f"Sitemap: {home}/sitemap.xml" in (site / "robots.txt").read_text("utf-8")
    overview = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"\((\S+)\)", overview)
    wanted = [f"{home}/{url(file)}" for file in CHAPTERS]
    assert [link for link in links if link in wanted] == wanted
    for link in links:
        assert (site / link.removeprefix(f"{home}/") / "index.html").is_file()


@pytest.mark.parametrize("file", CHAPTERS)
def test_a_chapter_says_what_it_teaches(site: Path, file: str) -> None:
    page = (site / url(file) / "index.html").read_text("utf-8")
    (data,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page)
    said = json.loads(data)
    assert said["teaches"] == front_matter(file)["goals"]
    assert said["url"] in page.partition("<body")[0].partition('rel="canonical"')[2]
    assert said["position"] > CHAPTERS.index(file)
