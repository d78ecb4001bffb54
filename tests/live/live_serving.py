"""A small site for live pieces, quick to serve: no page is built.

It serves what the built site has: docs/live and the models under /live/, Material's
style and the site's own, and pages made here around a piece, with the site's policy.
"""

import functools
import json
from pathlib import Path

import markdown
import material

from engine.families.words import words
from engine.project import Project
from engine.site.forms import forms
from engine.site.live import models, quoted
from engine.site.policy import with_policy
from engine.site.python import Runtime, faults, runtime
from engine.site.questions import questions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MATERIAL = Path(material.__file__).parent / "templates" / "assets" / "stylesheets"
STYLES = ("/material/", "/assets/")  # a browser may keep them
SCRIPT = '<script defer type="module" src="../live/{}"></script>'
PAGE = """<!doctype html>
<html lang="en" class="no-js">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width,initial-scale=1">
    <title>A page with a live piece</title>
    <link rel="icon" href="/assets/favicon.svg">
{styles}
  </head>
  <body dir="ltr" data-md-color-scheme="default" data-md-color-primary="indigo"
        data-md-color-accent="indigo">
    <main class="md-main"><div class="md-main__inner md-grid">
      <div class="md-content"><article class="md-content__inner md-typeset">
<h1>A page</h1>
{body}
      <p><a href="#end">What follows</a></p></article></div>
    </div></main>
  </body>
</html>
"""


class LiveSite:
    """What is served. `changed` has the files that a test wants otherwise.

    `changed["/live/engine/norm.js"] = text` serves another text; None serves nothing.
    """

    def __init__(self) -> None:
        self.address = ""
        self.changed: dict[str, str | bytes | None] = {}
        self.pages: dict[str, str] = {}

    def page(self, body: str, *, eval_: bool = False) -> str:
        """Make a page around a piece of HTML; return its address.

        Args:
            body: the piece.
            eval_: let the policy allow `eval`, by which Playwright runs what a test
                evaluates in Firefox.
        """
        styles = [f"/material/{p.name}" for p in sorted(MATERIAL.glob("*.css"))]
        own = sorted((DOCS / "assets/css").glob("*.css"))
        styles += [f"/assets/css/{path.name}" for path in own]
        links = "\n".join(f'    <link rel="stylesheet" href="{x}">' for x in styles)
        if ' data-live="' in body:  # as docs/theme/partials/about.html does
            links += SCRIPT.format("load.js")
        if ' data-python="' in body:
            links += SCRIPT.format("python/load.js")
        if ' data-exercise="' in body:
            links += SCRIPT.format("exercises/load.js")
        html = with_policy(PAGE.format(styles=links, body=body))
        if eval_:
            html = html.replace("script-src 'self'", "script-src 'self' 'unsafe-eval'")
        name = f"/page-{len(self.pages)}/"
        self.pages[name] = html
        return self.address + name

    def plant(self, file: str, old: str, new: str) -> None:
        """Serve a module of docs/live with a fault: `new` in the place of `old`."""
        text = (DOCS / "live" / file).read_text("utf-8")
        assert old in text, f"{file} has no {old}"
        self.changed[f"/live/{file}"] = text.replace(old, new)

    def read(self, path: str) -> tuple[bytes | None, dict[str, str]]:
        """Return what stands at a path of the site, and how long it may be kept."""
        keep = "max-age=3600" if path.startswith(STYLES) else "no-store"
        return self.found(path), {"Cache-Control": keep}

    def found(self, path: str) -> bytes | None:
        made = {**self.pages, **self.changed}
        if path in made:
            content = made[path]
            return content.encode() if isinstance(content, str) else content
        if (found := python()) and path == f"/{found.package}":
            return found.content
        if path.startswith("/live/python/faults/"):
            return known_faults().get(path)
        if path == "/live/source.json":
            return quotes()
        if path == "/live/forms.json":
            return known_forms()
        if path == "/live/families.json":
            return known_families()
        if path.startswith("/live/questions/"):
            return known_questions().get(path.removeprefix("/live/questions/"))
        if path.startswith("/live/models/"):
            found = {f"{p.parent.name}/{p.name}": p for p in models(Project(ROOT))}
            at = found.get(path.removeprefix("/live/models/"))
        elif path.startswith("/material/"):
            at = MATERIAL / Path(path).name
        else:
            at = (DOCS / path[1:]).resolve()
            at = at if at.is_relative_to(DOCS) else None
        return at.read_bytes() if at and at.is_file() else None


@functools.cache
def python() -> Runtime | None:
    """Python for the page, where it could be made."""
    return runtime(Project(ROOT))


@functools.cache
def known_faults() -> dict[str, bytes]:
    return {f"/{path}": text.encode() for path, text in faults().items()}


@functools.cache
def quotes() -> bytes:
    return json.dumps(quoted(Project(ROOT))).encode()


@functools.cache
def known_forms() -> bytes:
    return json.dumps(forms(DOCS / "results")).encode()


@functools.cache
def known_questions() -> dict[str, bytes]:
    """The cards of three chapters; their formulas are not set."""
    files: dict[str, bytes] = {}
    listed = []
    for name in ("attention", "masks", "heads"):
        text = (DOCS / f"chapters/{name}.md").read_text("utf-8")
        start = text.index("## Interview questions")
        html = markdown.markdown(
            text[start:], extensions=["toc", "pymdownx.details", "pymdownx.superfences"]
        )
        files[f"{name}.json"] = json.dumps(questions(name, html)).encode()
        listed.append({"name": name, "title": name.capitalize()})
    return {**files, "index.json": json.dumps(listed).encode()}


@functools.cache
def known_families() -> bytes:
    return json.dumps(words()).encode()
