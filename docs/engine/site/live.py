"""Live pieces: the files that they read, and the lines of the package that they quote.

A page with `data-live` gets one module, from the template `main.html`, which loads all
else when a reader comes near. The site gets the trained models, `live/models/`, and the
lines of the package that pieces quote, `live/source.json`: which these are stands in
docs/live/quotes.json. `live/forms.json` has the forms of dates of the training,
`live/families.json` what the config reader knows of the families.

A chapter whose front matter says `live:` leads to the trained model, at the state that
shows what it teaches: one line at the end of *See it*. The address holds the state, as
docs/live/explorer/state.js reads it.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from engine.definitions import NoDefinition, find_nodes
from engine.families.words import words
from engine.project import Project
from engine.site import project_of
from engine.site.forms import forms

QUOTES, SOURCE = "live/quotes.json", "live/source.json"
FORMS, FAMILIES = "live/forms.json", "live/families.json"
MODELS = "pretrained/dates-as-typed*/*"  # in the package
EXPLORER = "live/"  # the address of the page
_BELOW = re.compile(r"^## The code$", re.MULTILINE)  # what stands below *See it*


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the models and the quoted lines."""
    project = project_of(config)
    for path in models(project):
        name = f"live/models/{path.parent.name}/{path.name}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    text = json.dumps(forms(project.docs / "results"), ensure_ascii=False)
    files.append(File.generated(config, FORMS, content=text + "\n"))
    text = json.dumps(words(), ensure_ascii=False)
    files.append(File.generated(config, FAMILIES, content=text + "\n"))
    if quotes := files.get_file_from_path(QUOTES):
        text = json.dumps(quoted(project), ensure_ascii=False, indent=1)
        files.append(File.generated(config, SOURCE, content=text + "\n"))
        files.remove(quotes)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead from a chapter to what it teaches in the live model."""
    if live := page.meta.get("live"):
        line = thread(live, up="../" * page.file.url.count("/"))
        return _BELOW.sub(lambda x: f"{line}\n\n{x[0]}", markdown, count=1)
    return markdown


def thread(live: dict[str, Any], *, up: str) -> str:
    """Write the line that leads to the live model; `up` leads to the site's root.

    The link is HTML: MkDocs would look for a heading of that name.
    """
    link = f'<a href="{up}{EXPLORER}{fragment(live["state"])}">In the live model</a>'
    return f'<p class="live-thread" markdown>**{link}**: {live["says"].strip()}</p>'


def fragment(state: dict[str, Any]) -> str:
    """Write a state as the part of an address after #, as the explorer reads it."""
    values = {x: ",".join(y) if isinstance(y, list) else y for x, y in state.items()}
    return "#" + urlencode(values, safe=":,").replace("&", "&amp;")


def models(project: Project) -> list[Path]:
    """Return the files of the models that run in the page."""
    return sorted((project.root / project.package).glob(MODELS))


def quoted(project: Project) -> dict[str, dict[str, Any]]:
    """Return the statements that docs/live/quotes.json names, by their names there.

    Each says where it stands: `file`, `definition`, `first` and `last` line, `url`; and
    `code`, its text without the indentation. A text that stands in no statement of the
    definition, or in several, is a `NoDefinition`.
    """
    asked = json.loads((project.docs / QUOTES).read_text("utf-8"))
    return {name: _quote(project, *place) for name, place in asked.items()}


def _quote(
    project: Project, file: str, definition: str, fragment: str
) -> dict[str, Any]:
    source = (project.root / file).read_text("utf-8")
    lines = source.split("\n")
    found = []
    for node in ast.walk(find_nodes(source, definition)[-1]):
        # Not the docstring, and nothing that holds other statements.
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Expr):
            first, last = node.lineno, node.end_lineno or node.lineno
            whole = lines[first - 1 : last]
            if not hasattr(node, "body") and fragment in "\n".join(whole):
                code = "\n".join(line[node.col_offset :] for line in whole)
                found.append((first, last, code))
    if len(found) != 1:
        problem = f"{file}: {len(found)} statements of {definition} have {fragment!r}"
        raise NoDefinition(problem)
    first, last, text = found[0]
    url = f"{project.repo_url}/blob/HEAD/{file}#L{first}-L{last}"
    said = {"file": file, "definition": definition, "first": first, "last": last}
    return {**said, "code": text, "url": url}
