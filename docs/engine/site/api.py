"""MkDocs hooks for the API pages, which mkdocs-api-autonav makes of the package.

The plugin gives every module a page. Here the pages get what it cannot know: folders in
the order in which a reader meets them, the chapters that teach a module, and the table
of all public names on `api/index.md`.
"""

import ast
import logging
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from engine.project import Project
from engine.site.lists import chapters

INDEX = "api/index.md"
# What `api/index.md` says where the table goes.
NAMES = "<!-- names -->"
# Folders in the navigation; what is not named here follows, in the alphabet's order.
ORDER = (
    *("nn", "fast", "models", "generate", "training", "data", "tasks"),
    *("runs", "cli", "interop", "pretrained", "reference"),
)
# In the search: chapters first, and a part before its twin of the same name.
BOOST, BOOST_OF = 0.5, {"reference": 0.25}

_building: dict[str, Any] = {}  # what one build reads once: package, chapters


class Package:
    """The package as its files say it, without importing it.

    Attributes:
        name: of the package.
        files: every public module by its dotted name; a folder's is its __init__.
        trees: what stands in them.
    """

    def __init__(self, project: Project) -> None:
        self.name = project.package
        self.files: dict[str, Path] = {}
        for path in sorted((project.root / self.name).rglob("*.py")):
            parts = path.relative_to(project.root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if not any(part.startswith("_") for part in parts):
                self.files[".".join(parts)] = path
        read = {name: path.read_text("utf-8") for name, path in self.files.items()}
        self.trees = {name: ast.parse(text) for name, text in read.items()}

    def about(self, module: str) -> str:
        """Return the first paragraph of a module's docstring."""
        text = ast.get_docstring(self.trees[module]) or ""
        return text.split("\n\n")[0].replace("\n", " ")

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The public names that each module gives to the package."""
        for node in self.trees[self.name].body:
            if isinstance(node, ast.Assign) and _targets(node) == ["_NAMES_OF"]:
                given = ast.literal_eval(node.value)
                return {f"{self.name}.{name}": given[name] for name in given}
        raise ValueError(f"{self.files[self.name]}: no _NAMES_OF")

    def inside(self, folder: str) -> list[str]:
        """Return the modules that lie directly in a folder."""
        return [name for name in self.files if name.rpartition(".")[0] == folder]

    def is_folder(self, module: str) -> bool:
        """Whether a module is a folder's __init__."""
        return self.files[module].name == "__init__.py"

    def defined(self, module: str) -> list[str]:
        """Return the public names that a module defines itself."""
        found = []
        for node in self.trees[module].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.append(node.name)
            else:
                found += _targets(node)
        return [name for name in found if not name.startswith("_")]

    def sections(self) -> list[tuple[str, list[str]]]:
        """Return each folder with its modules, and last what lies in none."""
        above = self.inside(self.name)
        folders = sorted(filter(self.is_folder, above), key=self.rank)
        loose = [name for name in above if name not in folders]
        listed = [(name, self.inside(name)) for name in folders]
        return [*listed, (self.name, loose)]

    def rank(self, name: str) -> tuple[int, str]:
        """Say where a folder stands among the others."""
        last = name.removeprefix(f"{self.name}.")
        place = ORDER.index(last) if last in ORDER else len(ORDER)
        return place + (not self.is_folder(f"{self.name}.{last}")), last


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show on a folder's page what its __init__ defines, not what it hands on."""
    project = Project(Path(config.config_file_path).resolve().parent)
    package = Package(project)
    _building.update(package=package, chapters=chapters(project))
    plugin: Any = config.plugins["api-autonav"]
    for name in package.files:
        if package.is_folder(name):
            only = {"members": package.defined(name) or False}
            plugin.config.module_options[f"{name}$"] = only
    # It tells of every page that it makes: a hundred lines a build.
    logging.getLogger("mkdocs.plugins.mkdocs_api_autonav").setLevel(logging.WARNING)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Lift the package's folders to the top of the section, and sort them."""
    package: Package = _building["package"]
    plugin: Any = config.plugins["api-autonav"]
    title = plugin.config.nav_section_title
    for section in config.nav or []:
        pages = section.get(title) if isinstance(section, dict) else None
        if pages and isinstance(pages[-1], dict) and package.name in pages[-1]:
            parts = pages.pop()[package.name]
            pages += sorted(parts, key=lambda part: package.rank(next(iter(part))))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put in what the plugin cannot know."""
    source = page.file.src_uri
    if not source.startswith("api/"):
        return markdown
    package: Package = _building["package"]
    if source == INDEX:
        page.meta["search"] = {"boost": BOOST}
        return markdown.replace(NAMES, _names(package))
    name = _module(source)
    boost = BOOST_OF.get(name.split(".")[1], BOOST)
    about = f"API of {name}. {package.about(name)}"
    page.meta.update(title=name, description=about, search={"boost": boost})
    modules = package.inside(name)
    if not modules:
        return markdown
    return f"{markdown}\n\n## Modules\n\n{_table(package, modules)}"


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Name the chapters that teach a module, under its title."""
    source = page.file.src_uri
    if not source.startswith("api/") or source == INDEX:
        return html
    file = _module(source).replace(".", "/") + ".py"
    links = []
    for chapter in _building["chapters"]:
        there = files.get_file_from_path(chapter.file)
        if there and file in (chapter.meta.get("modules") or []):
            url = there.url_relative_to(page.file)
            links.append(f'<a href="{url}">{escape(chapter.title)}</a>')
    plural = "s" if len(links) > 1 else ""
    line = f"<p>Chapter{plural}: {', '.join(links)}</p>" if links else ""
    return html.replace("</h1>", f"</h1>\n{line}", 1)


def _module(source: str) -> str:
    """Return the module of a page: `tformer.nn` of `api/tformer/nn/index.md`."""
    name = source.removeprefix("api/").removesuffix(".md").removesuffix("/index")
    return name.replace("/", ".")


def _names(package: Package) -> str:
    """Return a table of the modules for each folder, with their public names."""
    parts = []
    for folder, modules in package.sections():
        if folder == package.name:
            parts.append("## Beside the folders")
        else:
            about, names = package.about(folder), _links(package, folder)
            parts.append(f"## {folder.rpartition('.')[2]}")
            parts.append(f"[`{folder}`][{folder}]: {about[:1].lower()}{about[1:]}")
            parts += [f"Names in `{package.name}`: {names}"] if names else []
        parts += [_table(package, modules)] if modules else []
    return "\n\n".join(parts)


def _table(package: Package, modules: list[str]) -> str:
    """Return a table of modules: the link, the first line, public names if any."""
    rows = ["| Module | What it is |", "|---|---|"]
    named = any(module in package.names for module in modules)
    if named:
        rows = [f"{rows[0]} Names in `{package.name}` |", f"{rows[1]}---|"]
    for module in modules:
        link = f"[`{module.rpartition('.')[2]}`][{module}]"
        about = package.about(module).replace("|", r"\|")
        cells = [link, about, *([_links(package, module)] if named else [])]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _links(package: Package, module: str) -> str:
    """Return links to the names that a module gives to the package."""
    names = package.names.get(module, [])
    return ", ".join(f"[`{name}`][{module}.{name}]" for name in names)


def _targets(node: ast.stmt) -> list[str]:
    """Return the names that a statement assigns to."""
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return [ast.unparse(node.target)] if isinstance(node, ast.AnnAssign) else []
