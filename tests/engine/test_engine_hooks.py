"""MkDocs makes the generated files first, links them, and mends the labs' pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.copies.alone import problem_of
from engine.project import ENGINE, Project
from engine.run.cache import STATES
from engine.site.hooks import chapter_links
from engine.site.labs import mend_links, take_styles

LAB = {
    "cells": [
        {
            "cell_type": "markdown",
            "id": "a",
            "metadata": {},
            "source": "# Lab\n\n[chapter](../chapters/scale.md#the-question) "
            "and [nothing](gone.md) and [away](https://example.org/x.md)",
        },
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "source": "from tiny.scale import scale\n\nprint(scale([1.0], 4.0))",
            "outputs": [],
            "execution_count": None,
        },
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def build(project: Project, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=project.root,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONPATH": str(ENGINE.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.fixture
def site(project: Project) -> Project:
    """Add the hooks and a lab to the small project."""
    config = project.root / "mkdocs.yml"
    labs = 'plugins:\n  - mkdocs-jupyter: {include: ["labs/*.ipynb"]}\n'
    text = (
        config.read_text("utf-8")
        + f"hooks: [{ENGINE}/site/hooks.py, {ENGINE}/site/labs.py]\n{labs}"
    )
    config.write_text(text, "utf-8")
    (project.docs / "labs").mkdir()
    lab = json.dumps(LAB)
    lab_of(project).write_text(lab, "utf-8")
    theme = project.root / "theme" / "partials"
    theme.mkdir(parents=True)
    shown = (
        "{% if page.meta.kind %}{{ page.meta | tojson }}{% endif %}{{ page.content }}"
    )
    (theme / "content.html").write_text(shown, "utf-8")
    text = text.replace("  font: false", "  font: false\n  custom_dir: theme")
    config.write_text(text, "utf-8")
    return Project(project.root)


def lab_of(site: Project) -> Path:
    return site.docs / "labs" / "lab.ipynb"


def test_a_build_makes_links_and_mends(site: Project) -> None:
    code, said = build(site)
    assert code == 0, said
    assert "labs/lab.ipynb links to gone.md, which is not there" in said
    chapter = (site.root / "site/chapters/scale/index.html").read_text("utf-8")
    assert "pytest.mark" not in chapter
    assert "https://github.com/example/tiny/blob/HEAD/tiny/scale.py" in chapter
    for file in (
        "figures/scale-line.svg",
        "notebooks/scale.ipynb",
        "downloads/scale.py",
    ):
        assert (site.root / "site" / file).is_file()
        assert file in chapter
    lab = (site.root / "site/labs/lab/index.html").read_text("utf-8")
    assert 'href="../../chapters/scale/#the-question"' in lab
    assert 'href="https://example.org/x.md"' in lab
    assert 'href="../../assets/css/jupyter.css"' in lab
    assert len(lab) < 100_000
    assert not re.search(r"<script[^>]*>[^<]*https?://(?!www.w3.org|example.org)", lab)
    assert (site.root / "site/assets/css/jupyter.css").stat().st_size > 100_000
    taken = site.root / "site/labs/lab/lab.ipynb"
    assert problem_of("tiny", taken) is None
    assert "tiny cannot be imported" in (problem_of("tiny", lab_of(site)) or "")
    assert (
        "](https://example.org/tiny/chapters/scale/#the-question)"
        in taken.read_text("utf-8")
    )
    # One cache of labs per state of the package.
    (first,) = (site.root / ".cache" / "mkdocs-jupyter").iterdir()
    (site.root / "tiny" / "checks.py").write_text("def check_positive(x): return x\n")

    # What fails is told by the engine as a warning, as the lost link above was, so it
    # stops a strict build and no other.
    page = site.docs / "index.md"
    page.write_text(page.read_text("utf-8").replace("print", "printed"), "utf-8")
    code, said = build(site, "--strict")
    assert code == 1
    warning = "docs/index.md:4: NameError: name 'printed' is not defined"
    assert f"WARNING -  {warning}" in said
    (second,) = set(first.parent.iterdir()) - {first}
    # Going back costs nothing: the last few states are kept, and no more.
    for number in range(STATES):
        (first.parent / f"older-{number}").mkdir()
        os.utime(first.parent / f"older-{number}", (number, number))
    build(site)
    kept = {folder.name for folder in first.parent.iterdir()}
    assert {first.name, second.name} < kept
    assert len(kept) == STATES
    assert "older-0" not in kept


def test_links_of_a_chapter(project: Project) -> None:
    meta = {"kind": "chapter", "modules": ["tiny/scale.py", "tiny/checks.py"]}
    links = chapter_links(project, "chapters/scale.md", meta)
    github = "https://github.com/example/tiny/blob/HEAD"
    assert links == {
        "source_url": f"{github}/docs/chapters/scale.md",
        "module_urls": [f"{github}/tiny/scale.py", f"{github}/tiny/checks.py"],
        "notebook": None,
        "standalone": None,
        "standalone_numpy": None,
        "colab_url": None,
    }
    for file in ("notebooks/scale.ipynb", "downloads/scale_numpy.py"):
        path = project.docs / file
        path.parent.mkdir()
        path.write_text("", "utf-8")
    links = chapter_links(project, "chapters/scale.md", meta)
    assert links["notebook"] == "notebooks/scale.ipynb"
    assert links["standalone"] is None
    assert links["standalone_numpy"] == "downloads/scale_numpy.py"
    assert links["colab_url"] == (
        "https://colab.research.google.com/github/example/tiny/blob/notebooks/scale.ipynb"
    )


def test_links_to_sources_become_links_to_pages() -> None:
    html = (
        '<a href="../a/b.md#c">1</a><a href="b.ipynb">2</a><a href="gone.md">3</a>'
        '<a href="http://x.org/b.md">4</a><a href="/b.md">5</a><a href="#d">6</a>'
        '<a href="b.png">7</a>'
    )
    there = {"a/b.md": "../a/b/", "labs/b.ipynb": "../b/"}
    mended, lost = mend_links(html, "labs/lab.ipynb", there.get)
    assert re.findall('href="(.*?)"', mended) == [
        "../a/b/#c",
        "../b/",
        "gone.md",
        "http://x.org/b.md",
        "/b.md",
        "#d",
        "b.png",
    ]
    assert lost == ["gone.md"]


def test_styles_and_foreign_scripts_are_taken_out() -> None:
    html = (
        "<style>a{}</style><p>x</p><style type='text/css'>b{}</style>"
        '<script src=""> </script><script type="text/x-mathjax-config">y</script>'
        "<script>kept()</script>"
        '<script type="module">import "https://example.org"</script>'
    )
    assert take_styles(html) == ("<p>x</p><script>kept()</script>", "a{}\nb{}")
