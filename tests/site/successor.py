"""What the successor of MkDocs and Material lacks for this site: `make successor`.

Zensical reads mkdocs.yml, and is to replace Material, which is kept until May 2027. A
copy of the project is built with it, and what a reader would miss is reported. That
fails nothing: docs/moving.md says what moving would take.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engine.pages.listing import files_of
from engine.project import Project

SECONDS = 900
LEFT = {".git", ".venv", ".cache", "site", "runs"}  # in the root
CHAPTER = "chapters/attention/index.html"


class Wanted(NamedTuple):
    """What a file of the site must hold."""

    what: str
    file: str
    pattern: str


WANTED = (
    Wanted("code of the package, by its name", CHAPTER, "attention_weights"),
    Wanted("a header under a chapter's title (hooks.py)", CHAPTER, "chapter-header"),
    Wanted("formulas that are set (formulas.py)", CHAPTER, 'class="katex'),
    Wanted("figures with captions (captions.py)", CHAPTER, "<figcaption"),
    Wanted("fields for exercises (exercises.py)", CHAPTER, "data-exercise"),
    Wanted("a card for shared links (cards.py)", CHAPTER, 'property="og:image"'),
    Wanted("a policy of what may run (bundles.py)", CHAPTER, "Content-Security-Policy"),
    Wanted("the table of chapters (lists.py)", "index.html", "Attention</a>"),
    Wanted("a chapter as Markdown", "chapters/attention/index.md", "# "),
    Wanted("the lab, from a notebook", "labs/build-a-head/index.html", "<h1"),
    Wanted("a page for each module", "api/tformer/nn/attention/index.html", "<h1"),
    Wanted("a page for each mistake (mistakes.py)", "mistakes/index.html", "<table"),
    Wanted("the index of the search (search.py)", "search/sections.json", r"\{"),
    Wanted("llms.txt", "llms.txt", "attention"),
    Wanted("the page for what is not there", "404.html", 'id="lost"'),
)


def lacking(project: Project, site: Path) -> Iterator[str]:
    """Yield what a built site lacks, a sentence each."""
    for file in files_of(project.config["nav"]):
        url = project.page_url(project.docs / file).removeprefix(project.site_url)
        if not (site / url / "index.html").is_file():
            yield f"the page of {file}"
    for what, file, pattern in WANTED:
        path = site / file
        if not path.is_file():
            yield f"{what}: {file} is not there"
        elif not re.search(pattern, path.read_text("utf-8")):
            yield f"{what}: {file} has no {pattern}"
    for path in site.rglob("*.html"):
        prose = re.sub(r"<code.*?</code>", "", path.read_text("utf-8"), flags=re.S)
        if "--8<--" in prose:
            yield f"snippets: {path.relative_to(site)} shows a mark of one"


def build(project: Project, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a copy of the project in a folder, into its `site`."""
    for source in project.root.iterdir():
        if source.name in LEFT:
            continue
        if source.is_dir():
            shutil.copytree(source, folder / source.name)
        else:
            shutil.copy(source, folder)
    command = [sys.executable, "-m", "zensical", "build", "-f", "mkdocs.yml"]
    path = os.pathsep.join([str(folder / "docs"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def report(project: Project) -> str:
    """Return the report, as Markdown."""
    lines = ["## The site, built by Zensical", ""]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = build(project, Path(folder))
        except subprocess.TimeoutExpired:
            return "\n".join([*lines, f"It did not end in {SECONDS} seconds."])
        said = (done.stdout + done.stderr).strip().splitlines()
        found = [*lacking(project, Path(folder, "site"))]
    if done.returncode:
        lines += [f"It ended with {done.returncode}: {said[-1] if said else ''}", ""]
    lines += [f"It lacks {len(found)} things:", ""] if found else ["It lacks nothing."]
    lines += [f"- {each}" for each in found]
    return "\n".join([*lines, "", "```text", *said[-20:], "```"])


if __name__ == "__main__":
    print(report(Project.find(Path.cwd())))
