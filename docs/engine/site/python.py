"""Python in the page: exercises and blocks that run it, and the files that it needs.

An exercise is `<div data-python="rotary"></div>`. It gets the code to begin with, the
commands for a shell, and, where docs/npm/python.py could make Python for the page, the
addresses of its files. The page Check lists all exercises. Without JavaScript, and
without Python, each is code to copy and a command.

The block of a chapter whose fence is `{.python .editable}` gets a place below its
output, which has what the block needs of those above it: readers run and edit it there.
Without JavaScript, and without Python, nothing is there.
"""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from engine.copies.needed import EDITABLE, editable_block, needed
from engine.pages.blocks import PageError
from engine.pages.reading import Page as Source
from engine.project import Project
from engine.site import project_of
from tformer.check.asked import chapters, exercises
from tformer.check.chapter_files import exercise_of
from tformer.check.exercises import COMMENT, EXERCISES, Exercise
from tformer.check.planting import planted
from tformer.check.spec import Spec

MADE = "assets/python/made.json"  # by docs/npm/python.py
READERS = ("live/python/reader.py", "live/python/running.py")
IMPORT = "import numpy as np\n\n\n"
LIST = "<!-- all exercises -->"
WITHOUT = (
    "Python does not run in this copy of the site: it was built without NumPy for the "
    "page. In a shell the same check does."
)
_PLACE = re.compile(r'<div data-python="(?P<name>[\w -]+)"></div>')
_PRINTING = re.compile(
    rf'<div class="printing [^"]*\b{EDITABLE} highlight">(?:(?!</?div).)*</div>\s*'
    r'<div class="[^"]*\boutput highlight">(?:(?!</?div).)*</div>',
    re.DOTALL,
)
# What of the package runs with NumPy alone, found by importing it so.
_IMPORTED = """
import pkgutil, sys
sys.modules["torch"] = None
import tformer.check.answers, tformer.check.exercises, tformer.reference as twin
for found in pkgutil.iter_modules(twin.__path__, twin.__name__ + "."):
    __import__(found.name)
print(*(m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "tformer"
        and m is not None))
"""


@dataclass(frozen=True)
class Runtime:
    """Python for the page, and the part of the package that it runs."""

    folder: str  # from the site's root, as `package`
    package: str
    content: bytes  # of the package
    size: int  # in bytes, of all that travels


def runtime(project: Project) -> Runtime | None:
    """Return Python for the page; None where it could not be made."""
    path = project.docs / MADE
    made = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if not made.get("folder"):
        return None
    content = archive(project)
    name = f"live/python/tformer-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    size = sum(made["bytes"].values()) + len(content)
    return Runtime(f"assets/python/{made['folder']}/", name, content, size)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the part of the package that the page runs; leave out what only we read."""
    found = config.extra["python"] = runtime(project_of(config))
    for path in (MADE, *READERS):
        if file := files.get_file_from_path(path):
            files.remove(file)
    if found:
        files.append(File.generated(config, found.package, content=found.content))
        for path, content in faults().items():
            files.append(File.generated(config, path, content=content))
    return files


def faults() -> dict[str, str]:
    """Return what readers may mend, by its path: a file for each exercise."""
    asked = [x for name in chapters() for x in exercises(name).values()]
    functions = [exercise_of(each) for each in asked if each.kind == "function"]
    return {
        f"live/python/faults/{each.name.replace(' ', '-')}.json": json.dumps(
            [
                {"source": x.source, "id": x.mistake.id, "sentence": x.mistake.sentence}
                | {"chapter": x.mistake.chapter, "page": page_of(each.spec)}
                for x in planted(each.spec, each.function)
            ],
            ensure_ascii=False,
        )
        for each in (*EXERCISES.values(), *functions)
    }


def page_of(spec: Spec) -> str:
    """Return the folder of the atlas that has a spec's mistakes, if any."""
    return spec.name if spec.name in EXERCISES else ""


def archive(project: Project) -> bytes:
    """Pack the checks and the NumPy twin, as they are, and what runs them."""
    command = [sys.executable, "-c", _IMPORTED]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    paths = [*map(Path, done.stdout.split())]
    for path in [x for x in paths if x.name == "__init__.py"]:  # and what it reads
        paths += [path.with_suffix(".pyi"), *path.parent.glob("*.md")]
        paths += path.parent.glob("answers/*.toml")
    new = io.BytesIO()
    with zipfile.ZipFile(new, "w") as out:
        for path in sorted(filter(Path.is_file, paths)):
            _add(out, project.relative(path), path.read_bytes())
        for reader in READERS:
            path = project.docs / reader
            _add(out, path.name, path.read_bytes())
    return new.getvalue()


def _add(out: zipfile.ZipFile, name: str, content: bytes) -> None:
    item = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes each time
    item.compress_type = zipfile.ZIP_DEFLATED
    out.writestr(item, content, compresslevel=9)


@event_priority(-20)  # when all places are there
def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Fill the places of exercises, and make one for a block that readers edit."""
    up = "../" * page.file.url.count("/")
    found = config.extra["python"]
    for source in config.extra["chapters"]:
        if found and source.file == page.file.src_uri:
            with suppress(PageError):  # which the engine tells
                html = with_place(html, source, found, up)
    return _PLACE.sub(lambda match: place(match["name"], found, up), html)


def with_place(html: str, page: Source, python: Runtime, up: str) -> str:
    """Return the HTML of a chapter with a place below its editable block, if any."""
    block = editable_block(page)
    if block is None:
        return html
    given = {"python": f"block {page.name}", "before": needed(page, block)}
    made = f'<div class="python-block" {_data(given, python, up)}></div>'
    return _PRINTING.sub(lambda match: f"{match[0]}\n{made}", html, count=1)


def _data(given: dict[str, str], python: Runtime | None, up: str) -> str:
    """Write attributes, with the addresses of Python."""
    if python:
        given |= {"folder": up + python.folder, "package": up + python.package}
        given |= {"bytes": str(python.size)}
    return " ".join(f'data-{key}="{escape(value)}"' for key, value in given.items())


def place(name: str, python: Runtime | None, up: str) -> str:
    """Return the HTML of an exercise; `up` leads from the page to the site's root."""
    function, starter, shell = _asked(name)
    data = _data({"python": name, "function": function}, python, up)
    code = highlight(starter, PythonLexer(), HtmlFormatter(wrapcode=True))
    missing = "" if python else f'<p class="python-missing">{WITHOUT}</p>\n'
    return f"""<div class="python" {data}>
{code}{missing}<p class="python-shell">{shell}</p>
</div>"""


def _asked(name: str) -> tuple[str, str, str]:
    """Return the function of an exercise, the code to begin with, and its commands."""
    judges = f"<code>tformer check {name}"
    if name in EXERCISES:
        exercise, begins = EXERCISES[name], f"<code>tformer check start {name}</code>"
        starter = exercise.starter.replace(COMMENT, IMPORT)
        shell = f"In a shell, {begins} writes this file, and {judges}</code> judges it."
        return exercise.function, starter, shell
    chapter, number = name.split()
    asked = exercises(chapter)[int(number)]
    # "A function rotate(x): x is (T, D); it returns (T, D)."
    _, head, told = re.split(rf"A function ({asked.name}\(.*?\)): ", asked.asks)
    text = fill(told, 80)
    end = "\n" if "\n" in text else ""
    body = indent(f'"""{text}{end}"""\nraise NotImplementedError\n', "    ")
    starter = f"{IMPORT}def {head}:\n{body}"
    shell = f"In a shell, {judges} my.py</code> judges what you write into my.py."
    return asked.name, starter, shell


def on_page_markdown(markdown: str, **_: Any) -> str:
    """List all exercises where a page asks for them."""
    return markdown.replace(LIST, listing()) if LIST in markdown else markdown


def listing() -> str:
    """Return all exercises as Markdown."""
    return "\n\n".join(map(_listed, EXERCISES.values()))


def _listed(exercise: Exercise) -> str:
    chapter, _, section = exercise.chapter.partition("#")
    text = f"""## {exercise.title} {{ #{exercise.name} }}

{exercise.statement} [The chapter](chapters/{chapter}.md#{section}) explains it.

<div data-python="{exercise.name}"></div>
"""
    for number, hint in enumerate(filter(None, exercise.hints), 1):
        text += f'\n??? tip "Hint {number}"\n\n{indent(hint, "    ")}\n'
    return text
