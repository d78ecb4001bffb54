"""API pages: made of the package, with what the plugin cannot know."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.project import ENGINE, Project
from engine.site.api import Package

CONFIG = f"""
nav:
  - index.md
  - Book:
      - chapters/scale.md
  - API: [api/index.md]
plugins:
  - search
  - mkdocstrings:
      handlers:
        python:
          paths: [.]
          options: {{show_root_toc_entry: true, summary: true}}
  - api-autonav:
      modules: [tiny]
      exclude: ["re:^tiny$"]
      nav_section_title: API
      api_root_uri: api
      nav_item_prefix: ""
hooks: [{ENGINE}/site/hooks.py, {ENGINE}/site/lists.py, {ENGINE}/site/api.py]
"""
INIT = '''"""A package."""

__all__ = ["Loose", "Scaler", "scale"]
_NAMES_OF = {"scale": ["scale", "Scaler"], "data": ["Loose"]}
'''
DATA = '''"""What is
read: a | b.

More."""

from tiny.scale import scale

__all__ = ["Loose", "scale"]


class Loose:
    """In a folder's own file."""
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project's site, with pages of its API."""
    root = tmp_path_factory.mktemp("api") / "small"
    shutil.copytree(Path(__file__).parent / "project", root)
    with (root / "mkdocs.yml").open("a") as file:
        file.write(CONFIG)
    (root / "tiny/__init__.py").write_text(INIT, "utf-8")
    for folder, text in (("data", DATA), ("nn", '"""Parts."""\n')):
        (root / "tiny" / folder).mkdir(exist_ok=True)
        (root / "tiny" / folder / "__init__.py").write_text(text, "utf-8")
    (root / "tiny/nn/_own.py").write_text('"""Nobody sees this."""\n', "utf-8")
    (root / "tiny/nn/either.py").write_text('"""This | that."""\n', "utf-8")
    (root / "tiny/__main__.py").write_text('"""Nor this."""\n', "utf-8")
    (root / "docs/api").mkdir()
    (root / "docs/api/index.md").write_text("# API\n\n<!-- names -->\n", "utf-8")
    page = root / "docs/chapters/scale.md"
    lead = "concept: <scales>\nquestion: Why scale?\ndescription"
    page.write_text(page.read_text("utf-8").replace("description", lead, 1), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=root,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONPATH": str(ENGINE.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return root / "site"


def links(site: Path, page: str, part: str) -> list[str]:
    """Return the links in an element of a page, by a word in its start tag."""
    html = (site / page / "index.html").read_text("utf-8")
    return re.findall(r'href="([^"]+)"', html.split(part, 1)[1])


def test_folders_stand_in_their_order_and_then_what_lies_in_none(site: Path) -> None:
    wanted = ["nn/", "data/", "reference/", "checks/", "scale/", "stored/"]
    shown = links(site, "api", 'class="md-nav md-nav--primary"')
    tops = [link for link in shown if re.fullmatch(r"tiny/\w+/", link)]
    assert list(dict.fromkeys(tops)) == [f"tiny/{name}" for name in wanted]


def test_every_public_module_has_a_page(site: Path) -> None:
    pages = {path.parent for path in (site / "api").rglob("index.html")}
    modules = {"checks", "data", "nn", "reference", "reference/scale", "scale"}
    modules |= {"stored", "nn/either"}
    assert pages == {site / "api", *(site / "api/tiny" / name for name in modules)}


def test_the_table_of_names(site: Path) -> None:
    html = (site / "api/index.html").read_text("utf-8")
    table = html.split("<article", 1)[1]
    for module, name in (("scale", "scale"), ("scale", "Scaler"), ("data", "Loose")):
        assert f"tiny/{module}/#tiny.{module}.{name}" in table
    assert "what is read: a | b." in table
    assert "<td>This | that.</td>" in table
    assert "More." not in table
    assert "<code>tiny.data</code></a>" in re.sub(r"<span.*?>|</span>", "", table)


def test_a_page_has_its_full_name_and_its_chapter(site: Path) -> None:
    html = (site / "api/tiny/scale/index.html").read_text("utf-8")
    assert "<title>tiny.scale - tiny</title>" in html
    assert 'content="API of tiny.scale. Scale numbers."' in html
    _, _, below = html.partition("</h1>")
    assert below.startswith(
        '\n<p>Chapter: <a href="../../../chapters/scale/">Scale</a></p>'
    )
    other = (site / "api/tiny/stored/index.html").read_text("utf-8")
    assert "<p>Chapter" not in other


def test_a_folder_shows_what_it_defines_and_not_what_it_hands_on(site: Path) -> None:
    html = (site / "api/tiny/data/index.html").read_text("utf-8")
    assert 'id="tiny.data.Loose"' in html
    assert 'id="tiny.data.scale"' not in html


def test_the_search_puts_chapters_first(site: Path) -> None:
    text = (site / "search/search_index.json").read_text("utf-8")
    assert '"location":"api/tiny/scale/","title":"tiny.scale"' in text
    assert '"location":"api/tiny/nn/either/","title":"tiny.nn.either"' in text
    assert '"boost":0.5' in text.split('"location":"api/tiny/scale/"')[1].split("}")[0]


def test_the_search_puts_a_part_before_its_twin(site: Path) -> None:
    text = (site / "search/search_index.json").read_text("utf-8")
    twin = text.split('"location":"api/tiny/reference/scale/"')[1]
    assert '"boost":0.25' in twin.split("}")[0]


def test_a_folder_lists_its_modules(site: Path) -> None:
    html = (site / "api/tiny/nn/index.html").read_text("utf-8")
    table = html.split("<article", 1)[1].split("<table>")[1]
    assert 'href="either/#tiny.nn.either"' in table
    assert "<td>This | that.</td>" in table
    assert "Names in" not in table  # none of them gives a name to the package
    other = (site / "api/tiny/scale/index.html").read_text("utf-8")
    assert 'id="modules"' not in other


def test_a_package_that_names_nothing_says_so(project: Project) -> None:
    with pytest.raises(ValueError, match=r"tiny/__init__\.py: no _NAMES_OF$"):
        _ = Package(project).names
