"""Python in the page: the exercises that run it, and the files that it needs.

An exercise is `<div data-python="rotary"></div>`. It gets the code to begin with, the
commands for a shell, and, where docs/npm/python.py could make Python for the page, the
addresses of its files. The page Check lists all exercises. Without JavaScript, and
without Python, each is code to copy and a command.
"""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
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

from engine.project import Project
from engine.site import project_of
from tformer.check.asked import exercises
from tformer.check.exercises import COMMENT, EXERCISES, Exercise

MADE = "assets/python/made.json"  # by docs/npm/python.py
READER = "live/python/reader.py"
IMPORT = "import numpy as np\n\n\n"
LIST = "<!-- all exercises -->"
WITHOUT = (
    "Python does not run in this copy of the site: it was built without NumPy for the "
    "page. In a shell the same check does."
)
_PLACE = re.compile(r'<div data-python="(?P<name>[\w -]+)"></div>')
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
    for path in (MADE, READER):
        if file := files.get_file_from_path(path):
            files.remove(file)
    if found:
        files.append(File.generated(config, found.package, content=found.content))
    return files


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
        _add(out, "reader.py", (project.docs / READER).read_bytes())
    return new.getvalue()


def _add(out: zipfile.ZipFile, name: str, content: bytes) -> None:
    item = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes each time
    item.compress_type = zipfile.ZIP_DEFLATED
    out.writestr(item, content, compresslevel=9)


@event_priority(-20)  # when all places are there
def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Fill the places of exercises."""
    up = "../" * page.file.url.count("/")
    found = config.extra["python"]
    return _PLACE.sub(lambda match: place(match["name"], found, up), html)


def place(name: str, python: Runtime | None, up: str) -> str:
    """Return the HTML of an exercise; `up` leads from the page to the site's root."""
    function, starter, shell = _asked(name)
    given = {"python": name, "function": function}
    if python:
        given |= {"folder": up + python.folder, "package": up + python.package}
        given |= {"bytes": str(python.size)}
    data = " ".join(f'data-{key}="{escape(value)}"' for key, value in given.items())
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
