"""MkDocs hooks for the API pages, which mkdocs-api-autonav makes of the package.

The plugin gives every module a page. Here the pages get what it cannot know: folders in
the order in which a reader meets them, the chapters that teach a module, and the table
of all public names on `api/index.md`.
"""

import logging
from collections.abc import Iterator
from html import escape
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from engine.project import Project
from engine.site import project_of

INDEX = "api/index.md"
# What `api/index.md` says where the table goes.
NAMES = "<!-- names -->"
# Folders in the navigation; what is not named here follows, in the alphabet's order.
ORDER = (
    *("nn", "models", "generate", "training", "data", "tasks"),
    *("runs", "cli", "interop", "check", "pretrained", "reference"),
)
# In the search: chapters first, and a part before its twin of the same name.
BOOST, BOOST_OF = 0.5, {"reference": 0.25}


class Package:
    """The package as griffe reads it, without importing it."""

    def __init__(self, project: Project) -> None:
        loader = griffe.GriffeLoader(
            search_paths=[project.root], allow_inspection=False
        )
        package = loader.load(project.package)
        assert isinstance(package, griffe.Module)
        self.name = package.path
        # Public modules by their dotted names, the package itself last.
        self.modules = {x.path: x for x in _below(package)} | {self.name: package}
        self.names: dict[str, list[str]] = {}  # that each gives to the package
        for name, module in project.public_names.items():
            self.names.setdefault(module, []).append(name)

    def about(self, name: str) -> str:
        """Return the first paragraph of a module's docstring."""
        docstring = self.modules[name].docstring
        return docstring.value.split("\n\n")[0].replace("\n", " ") if docstring else ""

    def inside(self, folder: str) -> list[str]:
        """Return the modules that lie directly in a folder, folders in their order."""
        found = [x for x in self.modules if x.rpartition(".")[0] == folder]
        return sorted(found, key=self.rank) if folder == self.name else found

    def rank(self, name: str) -> tuple[bool, int, str]:
        """Say where what lies in the package stands: folders first."""
        last = name.rpartition(".")[2]
        place = ORDER.index(last) if last in ORDER else len(ORDER)
        return not self.is_folder(f"{self.name}.{last}"), place, last

    def is_folder(self, name: str) -> bool:
        """Whether a module is a folder's __init__."""
        return bool(self.modules[name].is_init_module)

    def defined(self, name: str) -> list[str]:
        """Return the public names that a module defines itself."""
        members = self.modules[name].members.values()
        own = (x for x in members if not x.is_alias and not x.is_module)
        return [x.name for x in own if not x.name.startswith("_")]

    def table(self, modules: list[str]) -> str:
        """Return a table of modules: the link, the first line, public names if any."""
        rows = [["Module", "What it is", f"Names in `{self.name}`"], ["---"] * 3]
        for module in modules:
            link = f"[`{module.rpartition('.')[2]}`][{module}]"
            about = self.about(module).replace("|", r"\|")
            rows.append([link, about, self.links(module)])
        width = 3 if self.names.keys() & modules else 2
        return "\n".join(f"| {' | '.join(row[:width])} |" for row in rows)

    def links(self, module: str) -> str:
        """Return links to the names that a module gives to the package."""
        names = self.names.get(module, [])
        return ", ".join(f"[`{name}`][{module}.{name}]" for name in names)

    def overview(self) -> str:
        """Return a table of the modules for each folder, with their public names."""
        parts = []
        listed = self.inside(self.name)
        for folder in filter(self.is_folder, listed):
            about, names = self.about(folder), self.links(folder)
            modules = [x for x in self.modules if x.startswith(f"{folder}.")]
            parts.append(f"## {folder.rpartition('.')[2]}")
            parts.append(f"[`{folder}`][{folder}]: {about[:1].lower()}{about[1:]}")
            parts += [f"Names in `{self.name}`: {names}"] if names else []
            parts += [self.table(modules)] if modules else []
        loose = [name for name in listed if not self.is_folder(name)]
        parts += ["## Beside the folders", self.table(loose)] if loose else []
        return "\n\n".join(parts)


def _below(module: griffe.Module) -> Iterator[griffe.Module]:
    """Yield the public modules below one, a folder before what it holds."""
    for name, inner in sorted(module.modules.items()):
        if isinstance(inner, griffe.Module) and not name.startswith("_"):
            yield inner
            yield from _below(inner)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show on a folder's page what its __init__ defines, not what it hands on."""
    package = Package(project_of(config))
    config.extra["api"] = package
    plugin: Any = config.plugins["api-autonav"]
    for name in filter(package.is_folder, package.modules):
        only = {"members": package.defined(name) or False}
        plugin.config.module_options[f"{name}$"] = only
    # It tells of every page that it makes: a hundred lines a build.
    logging.getLogger("mkdocs.plugins.mkdocs_api_autonav").setLevel(logging.WARNING)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Lift the package's folders to the top of the section, and sort them."""
    package: Package = config.extra["api"]
    plugin: Any = config.plugins["api-autonav"]
    title = plugin.config.nav_section_title
    for section in config.nav or []:
        pages = section.get(title) if isinstance(section, dict) else None
        if pages and isinstance(pages[-1], dict) and package.name in pages[-1]:
            parts = pages.pop()[package.name]
            pages += sorted(parts, key=lambda part: package.rank(next(iter(part))))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Put in what the plugin cannot know."""
    source, package = page.file.src_uri, config.extra["api"]
    if source == INDEX:
        page.meta["search"] = {"boost": BOOST}
        return markdown.replace(NAMES, package.overview())
    if not source.startswith("api/"):
        return markdown
    name = _module(source)
    boost = BOOST_OF.get(name.split(".")[1], BOOST)
    about = f"API of {name}. {package.about(name)}".replace('"', "'")  # an attribute
    page.meta.update(title=name, description=about, search={"boost": boost})
    modules = package.inside(name)
    table = f"\n\n## Modules\n\n{package.table(modules)}"
    return markdown + table if modules else markdown


def on_page_content(
    html: str, page: Page, config: MkDocsConfig, files: Files, **_: Any
) -> str:
    """Name the chapters that teach a module, under its title."""
    source = page.file.src_uri
    if not source.startswith("api/") or source == INDEX:
        return html
    file = _module(source).replace(".", "/") + ".py"
    links = []
    for chapter in config.extra["chapters"]:
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
