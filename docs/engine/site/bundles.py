"""One stylesheet and one script, small, for all that mkdocs.yml and the theme name.

`extra_css` and `extra_javascript` stay lists of small files for people. A page loads
`assets/js/site.js`, and `assets/css/site.css`, or, if it has formulas, `formulas.css`,
which is the same with KaTeX's rules.

A policy that forbids inline styles (see `policy`) forbids `style="…"` too. So each of
them becomes a class, whose name is made from its declarations.
"""

import hashlib
import re
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files

from engine.site.node import minified

SITE, WITH_FORMULAS = "assets/css/site.css", "assets/css/formulas.css"
SCRIPT = "assets/js/site.js"
KATEX = "assets/katex/katex.min.css"

_ELEMENT = re.compile(r"<[a-zA-Z][^<>]*?\sstyle=\"[^<>]*>")
_STYLE = re.compile(r'\sstyle="(?P<declarations>[^"]*)"')
_CLASS = re.compile(r'(?<=\sclass=")')
# Material marks the body while it sets the colours, and this rule for all that is in it
# makes a browser style the whole page twice at each start.
_SWITCHING = re.compile(r"\[data-md-color-switching\][^{}]*\{[^{}]*\}")
_FROM_KATEX = re.compile(r"url\((?=fonts/)")

_sources: dict[str, list[str]] = {}  # what is bundled, from docs/
_rules: dict[bool, dict[str, str]] = {}  # classes, of pages with and without formulas


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the lists of small files, and name the bundles in their place."""
    scripts = [x for x in config.extra_javascript if type(x) is str or _plain(x)]
    _sources.update(css=list(config.extra_css), js=[str(x) for x in scripts])
    _rules.update({False: {}, True: {}})
    others = [x for x in config.extra_javascript if x not in scripts]
    config.extra_css = []
    config.extra_javascript = [SCRIPT, *others] if scripts else others
    return config


def on_files(files: Files, **_: Any) -> Files:
    """Leave the small files out of the site."""
    for path in [*_sources["css"], *_sources["js"], KATEX]:
        if file := files.get_file_from_path(path):
            files.remove(file)
    return files


def on_env(env: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Tell the template the addresses: they change when a style changes."""
    docs = Path(config.docs_dir)
    parts = [docs / path for path in [*_sources["css"], KATEX]]
    texts = [part.read_text("utf-8") for part in parts if part.is_file()]
    state = "".join([*texts, str(config.extra.get("formulas"))])
    version = hashlib.sha256(state.encode()).hexdigest()[:8]
    config.extra["styles"] = {
        "site": f"{SITE}?{version}",
        "formulas": f"{WITH_FORMULAS}?{version}",
    }
    return env


@event_priority(-50)
def on_post_page(output: str, **_: Any) -> str:
    """Turn each `style` into a class."""
    return without_styles(output, _rules[WITH_FORMULAS in output])


@event_priority(-50)
def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Do so with pages that are no Markdown: 404.html."""
    if not template_name.endswith(".html"):
        return output_content
    return without_styles(output_content, _rules[False])


def on_post_build(config: MkDocsConfig) -> None:
    """Write the bundles."""
    site = Path(config.site_dir)
    for path, formulas in ((SITE, False), (WITH_FORMULAS, True)):
        rules = {**_rules[False], **_rules[True]} if formulas else _rules[False]
        css = _styles(config, formulas) + "\n".join(map(_rule, sorted(rules.items())))
        _write(site / path, minified(css, "css"))
    if _sources["js"]:
        # each in a block of its own: names in one do not meet those in another
        parts = [_read(config, path) for path in _sources["js"]]
        js = "\n".join(f"{{\n{part}\n}}" for part in parts)
        _write(site / SCRIPT, minified(js, "js"))
    worker = site / "assets/js/search-worker.js"
    if worker.is_file():
        _write(worker, minified(worker.read_text("utf-8"), "js"))


def without_styles(html: str, rules: dict[str, str]) -> str:
    """Return a page with classes for its `style` attributes.

    Args:
        html: the page.
        rules: gets the declarations of each class, by its name.
    """

    def mend(match: re.Match[str]) -> str:
        element = match[0]
        declarations = _STYLE.search(element)
        if not declarations:
            return element
        text = ";".join(filter(None, map(str.strip, declarations[1].split(";"))))
        element = _STYLE.sub("", element, count=1)
        if not text:
            return element
        name = f"s{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        rules[name] = text
        if _CLASS.search(element):
            return _CLASS.sub(f"{name} ", element, count=1)
        end = -2 if element.endswith("/>") else -1
        return f'{element[:end].rstrip()} class="{name}"{element[end:]}'

    return _ELEMENT.sub(mend, html)


def _rule(item: tuple[str, str]) -> str:
    name, declarations = item  # as strong as the attribute was
    return f".{name}{{{declarations.replace(';', '!important;')}!important}}"


def _read(config: MkDocsConfig, path: str) -> str:
    """Return a file of docs/, or one that a plugin has written into the site."""
    here = Path(config.docs_dir, path)
    return (here if here.is_file() else Path(config.site_dir, path)).read_text("utf-8")


def _styles(config: MkDocsConfig, formulas: bool) -> str:
    """Return Material's styles, KaTeX's if they are asked for, and the site's own."""
    folder = package_files("material") / "templates" / "assets" / "stylesheets"
    theme = [x for x in folder.iterdir() if re.fullmatch(r"\w+\.\w+\.min\.css", x.name)]
    texts = [x.read_text("utf-8") for x in sorted(theme, key=lambda x: x.name)]
    parts = [_SWITCHING.sub("", text) for text in texts]
    if formulas:
        parts.append(_FROM_KATEX.sub("url(../katex/", _read(config, KATEX)))
    parts += [_read(config, path) for path in _sources["css"]]
    return re.sub(r"/\*# sourceMappingURL=.*?\*/", "", "\n".join(parts))


def _plain(script: Any) -> bool:
    return str(script).endswith(".js") and not (
        script.type or script.defer or getattr(script, "async")
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
