"""MkDocs makes the generated files first, links them, and mends labs and API pages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from engine.copies.alone import problem_of
from engine.project import ENGINE
from engine.site.hooks import ONE_PAGE

CONFIG = f"""
nav:
  - index.md
  - Book:
      - chapters/scale.md
  - Lab: labs/lab.ipynb
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
  - mkdocs-jupyter: {{include: ["labs/*.ipynb"]}}
hooks: [{", ".join(f"{ENGINE}/site/{x}.py" for x in ("hooks", "labs", "lists", "api"))}]
"""
STUB = """from tiny.data import Loose as Loose
from tiny.scale import Scaler as Scaler
from tiny.scale import scale as scale
"""
DATA = '''"""What is read."""

from tiny.scale import scale


class Loose:
    """In a folder's own file."""
'''
TEXT = "# Lab\n\n[chapter](../chapters/scale.md#the-question), [nothing](gone.md), "
TEXT += "[away](https://example.org/x.md), [this](lab.ipynb#lab), [image](a.png)"
CODE = "from tiny.scale import scale\n\nprint(scale([1.0], 4.0))"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
LAB = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_markdown_cell(TEXT), nbformat.v4.new_code_cell(CODE)],
    metadata=KERNEL,
)
META = "{% if page.meta.kind %}{{ page.meta | tojson }}{% endif %}{{ page.content }}"


def build(root: Path, *options: str, **more: str) -> tuple[int, str]:
    own = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ENGINE.parent)}
    command = [sys.executable, "-m", "mkdocs", "build", *options]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, **own, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The small project with a lab and pages of its API, built; what was said."""
    root = tmp_path_factory.mktemp("built") / "small"
    shutil.copytree(Path(__file__).parent / "project", root)
    config, page = root / "mkdocs.yml", root / "docs/chapters/scale.md"
    theme = ("  font: false", "  font: false\n  custom_dir: theme")
    config.write_text(config.read_text("utf-8").replace(*theme) + CONFIG, "utf-8")
    for file, text in {
        "tiny/__init__.py": '"""A package."""\n\n__version__ = "1.0.0"\n',
        "tiny/__init__.pyi": STUB,
        "tiny/data/__init__.py": DATA,
        "tiny/nn/__init__.py": '"""Parts."""\n',
        "tiny/nn/_own.py": '"""Nobody sees this."""\n',
        "tiny/nn/either.py": '"""This | that."""\n',
        "tiny/__main__.py": '"""Nor this."""\n',
        "docs/api/index.md": "# API\n\n<!-- names -->\n",
        "docs/labs/lab.ipynb": json.dumps(LAB),
        "theme/partials/content.html": META,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, "utf-8")
    lead = "concept: <scales>\nquestion: Why scale?\ndescription"
    page.write_text(page.read_text("utf-8").replace("description", lead, 1), "utf-8")
    code, said = build(root)
    assert code == 0, said
    return root, said


@pytest.fixture(scope="module")
def site(built: tuple[Path, str]) -> Path:
    return built[0] / "site"


def article(site: Path, page: str) -> str:
    html = (site / page / "index.html").read_text("utf-8")
    return html.split("<article", 1)[1]


def test_every_public_module_has_a_page_and_folders_stand_first(site: Path) -> None:
    nav = (site / "api/index.html").read_text("utf-8").split("md-nav--primary")[1]
    tops = dict.fromkeys(re.findall(r'href="tiny/(\w+)/"', nav))
    assert list(tops) == ["nn", "data", "reference", "checks", "scale", "stored"]
    pages = {path.parent for path in (site / "api").rglob("index.html")}
    modules = {*tops, "reference/scale", "nn/either"}
    assert pages == {site / "api", *(site / "api/tiny" / name for name in modules)}
    table = article(site, "api")
    for module, name in (("scale", "scale"), ("scale", "Scaler"), ("data", "Loose")):
        assert f"tiny/{module}/#tiny.{module}.{name}" in table
    assert "<td>This | that.</td>" in table
    assert 'href="either/#tiny.nn.either"' in article(site, "api/tiny/nn")


def test_a_page_of_the_api_has_its_full_name_and_its_chapter(site: Path) -> None:
    html = (site / "api/tiny/scale/index.html").read_text("utf-8")
    assert "<title>tiny.scale - tiny</title>" in html
    assert 'content="API of tiny.scale. Scale numbers."' in html
    chapter = '\n<p>Chapter: <a href="../../../chapters/scale/">Scale</a></p>'
    assert html.partition("</h1>")[2].startswith(chapter)
    assert "<p>Chapter" not in article(site, "api/tiny/stored")


def test_a_folder_shows_what_it_defines_and_not_what_it_hands_on(site: Path) -> None:
    html = article(site, "api/tiny/data")
    assert 'id="tiny.data.Loose"' in html
    assert 'id="tiny.data.scale"' not in html


def test_a_build_makes_files_and_links_them(site: Path) -> None:
    chapter = (site / "chapters/scale/index.html").read_text("utf-8")
    assert "pytest.mark" not in chapter
    for where in ("blob/HEAD/docs/chapters/scale.md", "blob/HEAD/tiny/scale.py"):
        assert f"https://github.com/example/tiny/{where}" in chapter
    assert "example/tiny/blob/notebooks/scale.ipynb" in chapter
    files = ("figures/scale-line.svg", "notebooks/scale.ipynb", "downloads/scale.py")
    for file in files:
        assert (site / file).is_file()
        assert file in chapter


def test_a_lab_is_mended_and_taken_away(built: tuple[Path, str]) -> None:
    root, said = built
    assert "labs/lab.ipynb links to gone.md, which is not there" in said
    folder = root / "site/labs/lab"
    lab = (folder / "index.html").read_text("utf-8")
    assert 'href="../../chapters/scale/#the-question"' in lab
    for link in ("https://example.org/x.md", "./#lab", "a.png"):
        assert f'href="{link}"' in lab
    assert 'href="../../assets/css/jupyter.css"' in lab
    assert len(lab) < 100_000
    assert not re.search(r"<script[^>]*>[^<]*https?://(?!www.w3.org|example.org)", lab)
    assert (root / "site/assets/css/jupyter.css").stat().st_size > 100_000
    taken = folder / "lab.ipynb"
    assert problem_of("tiny", taken, root) is None
    alone = problem_of("tiny", root / "docs/labs/lab.ipynb")
    assert "'tiny' is not a package" in (alone or "")
    link = "](https://example.org/tiny/chapters/scale/#the-question)"
    assert link in taken.read_text("utf-8")


@pytest.mark.nightly
def test_one_page_is_built_alone_and_what_fails_stops_a_strict_build(
    built: tuple[Path, str],
) -> None:
    root, strict = built[0], ("--strict", "--site-dir", "other")
    (first,) = (root / ".cache" / "mkdocs-jupyter").iterdir()
    (root / "tiny/nn/_own.py").write_text("# Another state of the package.\n", "utf-8")
    home = root / "docs/index.md"
    home.write_text("```python\n1 / 0\n```\n\n[gone](gone.md)\n", "utf-8")
    code, said = build(root, *strict, **{ONE_PAGE: "docs/chapters/scale.md"})
    assert code == 0, said
    assert "<h1" in (root / "other/chapters/scale/index.html").read_text("utf-8")
    assert not (root / "other/index.html").exists()
    assert not first.exists()
    code, said = build(root, *strict, **{ONE_PAGE: "docs/index.md"})
    assert code == 1
    assert "WARNING -  docs/index.md" in said
    assert "docs/index.md:2: ZeroDivisionError" in said
