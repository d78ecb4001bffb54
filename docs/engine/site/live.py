"""Live pieces: what the pages that have one get, and the files that pieces read.

A page with `data-live` gets one module, which loads all else when a reader comes near;
no other page does, and nothing keeps the first paint waiting. The site gets the trained
models, `live/models/`, and the lines of the package that pieces quote,
`live/source.json`: which these are stands in docs/live/quotes.json.
"""

import ast
import json
import posixpath
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from engine.definitions import NoDefinition, find_nodes
from engine.project import Project

SCRIPT = "live/load.js"
QUOTES, SOURCE = "live/quotes.json", "live/source.json"
MODELS = ("pretrained", "dates*")  # the folder in the package, and which of its files
_SIGN = ' data-live="'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the models and the quoted lines."""
    project = Project(Path(config.config_file_path).resolve().parent)
    for path in models(project):
        name = f"live/models/{path.name}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    if (project.docs / QUOTES).is_file():
        text = json.dumps(quoted(project), ensure_ascii=False, indent=1)
        files.append(File.generated(config, SOURCE, content=text + "\n"))
        files.remove(files.src_uris[QUOTES])
    return files


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Load what pieces need, where there is one."""
    return with_pieces(output, page.url)


def models(project: Project) -> list[Path]:
    """Return the files of the models that run in the page."""
    folder, names = MODELS
    return sorted((project.root / project.package / folder).glob(names))


def with_pieces(html: str, url: str) -> str:
    """Return a page that loads what its pieces need.

    Args:
        html: the page.
        url: its address from the root of the site, "chapters/masks/".
    """
    if _SIGN not in html:
        return html
    folder = posixpath.dirname(f"/{url}")
    script = posixpath.relpath(f"/{SCRIPT}", folder)
    loaded = f'<script defer type="module" src="{script}"></script>'
    return html.replace("</head>", f"{loaded}</head>", 1)


def quoted(project: Project) -> dict[str, dict[str, Any]]:
    """Return the statements that docs/live/quotes.json names, by their names there.

    Each says where it stands: `file`, `definition`, `first` and `last` line, `url`; and
    `code`, its text without the indentation.

    Raises:
        NoDefinition: the file has no such definition, or the text stands in no
            statement of it, or in several.
    """
    asked = json.loads((project.docs / QUOTES).read_text("utf-8"))
    return {name: _quote(project, *place) for name, place in asked.items()}


def _quote(
    project: Project, file: str, definition: str, fragment: str
) -> dict[str, Any]:
    source = (project.root / file).read_text("utf-8")
    lines = source.split("\n")
    inside = ast.walk(find_nodes(source, definition)[-1])
    found = [
        node
        for node in inside
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.Expr)  # the docstring
        and not hasattr(node, "body")
        and fragment in "\n".join(lines[node.lineno - 1 : node.end_lineno])
    ]
    if len(found) != 1:
        problem = f"{file}: {len(found)} statements of {definition} have {fragment!r}"
        raise NoDefinition(problem)
    first, last = found[0].lineno, found[0].end_lineno or found[0].lineno
    code = [line[found[0].col_offset :] for line in lines[first - 1 : last]]
    return {
        "file": file,
        "definition": definition,
        "first": first,
        "last": last,
        "code": "\n".join(code),
        "url": f"{project.repo_url}/blob/HEAD/{file}#L{first}-L{last}",
    }
