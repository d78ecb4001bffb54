"""One stylesheet and one script, small, for all that mkdocs.yml and the theme name.

`extra_css` and `extra_javascript` stay lists of small files for people. A page loads
`assets/js/site.js`, and `assets/css/site.css`, or, if it has formulas, `formulas.css`,
which is the same with KaTeX's rules.

A policy that forbids inline styles (see `policy`) forbids `style="…"` too. So each of
them becomes a class, whose name is made from its declarations.

A rule such as `html:has(.slide)` makes a browser look through all of a page whenever
something in it changes. So a page's root has a class for each of `_TOLD` in the page.
"""

import hashlib
import re
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files

from engine.node import node
from engine.project import PACKAGES
from engine.site.material import mended
from engine.site.policy import with_policy

SITE, WITH_FORMULAS = "assets/css/site.css", "assets/css/formulas.css"
SCRIPT, WORKER = "assets/js/site.js", "assets/js/search-worker.js"
KATEX = "assets/katex/katex.min.css"

_ELEMENT = re.compile(
    r"<(?P<before>[a-zA-Z][^<>]*?)\sstyle=\"(?P<style>[^\"]*)\"(?P<after>[^<>]*?)"
    r"(?P<end>\s*/?>)"
)
# Material marks the body while it sets the colours, and this rule for all that is in it
# makes a browser style the whole page twice at each start.
_SWITCHING = re.compile(r"\[data-md-color-switching\][^{}]*\{[^{}]*\}")
# Its script marks what has the focus by keyboard; browsers do so themselves.
_FOCUS = (".focus-visible", ":focus-visible")
_TOLD = ("home-top", "jupyter-wrapper", "slide")
_sources: dict[str, list[str]] = {}  # what is bundled, from docs/
_rules: dict[str, dict[str, str]] = {}  # the classes that each stylesheet needs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the lists of small files, and name the bundles in their place."""
    scripts = [str(script) for script in config.extra_javascript]
    _sources.update(css=list(config.extra_css), js=scripts)
    _rules.update({SITE: {}, WITH_FORMULAS: {}})
    config.extra_css, config.extra_javascript = [], [SCRIPT]
    return config


def on_files(files: Files, **_: Any) -> Files:
    """Leave the small files out of the site."""
    for path in [*_sources["css"], *_sources["js"], KATEX]:
        if file := files.get_file_from_path(path):
            files.remove(file)
    return files


@event_priority(-50)  # when mkdocstrings has written its styles
def on_env(env: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Tell the template the addresses: they change when a style changes."""
    state = _styles(config, WITH_FORMULAS) + str(config.extra.get("formulas"))
    version = hashlib.sha256(state.encode()).hexdigest()[:8]
    names = {"site": SITE, "formulas": WITH_FORMULAS}
    config.extra["styles"] = {x: f"{path}?{version}" for x, path in names.items()}
    return env


@event_priority(-100)  # when nothing changes the page any more
def on_post_page(output: str, **_: Any) -> str:
    """Turn each `style` into a class, and say what is and what may run in the page."""
    sheet = WITH_FORMULAS if WITH_FORMULAS in output else SITE
    has = "".join(f" has-{name}" for name in _TOLD if f'class="{name}"' in output)
    output = output.replace('class="no-js"', f'class="no-js{has}"', 1)
    return with_policy(without_styles(output, _rules[sheet]))


@event_priority(-100)
def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Do so with pages that are no Markdown: 404.html."""
    is_page = template_name.endswith(".html")
    return on_post_page(output_content) if is_page else output_content


def on_post_build(config: MkDocsConfig) -> None:
    """Write the bundles, and mend Material's script."""
    site = Path(config.site_dir)
    _rules[WITH_FORMULAS].update(_rules[SITE])
    for path, rules in _rules.items():
        classes = (f".{name}{{{rules[name]}}}" for name in sorted(rules))
        _write(site / path, "\n".join([_styles(config, path), *classes]))
    # Each script in a block of its own: names in one do not meet those in another.
    scripts = [f"{{\n{_read(config, path)}\n}}" for path in _sources["js"]]
    _write(site / SCRIPT, "\n".join(scripts))
    _write(site / WORKER, _read(config, WORKER))
    for script in (site / "assets" / "javascripts").glob("bundle.*.min.js"):
        code = mended(script.read_text("utf-8"), script.name)
        script.write_text(code, "utf-8")


def without_styles(html: str, rules: dict[str, str]) -> str:
    """Return a page with classes for its `style`s, and add their `rules`."""

    def mend(match: re.Match[str]) -> str:
        before, style, after, end = match.groups()
        parts = [part.strip() for part in style.split(";") if part.strip()]
        given = f"<{before}{after}"
        if not parts:
            return given + end
        name = f"s{hashlib.sha256(';'.join(parts).encode()).hexdigest()[:6]}"
        # As strong as the attribute was.
        rules[name] = ";".join(f"{part}!important" for part in parts)
        if ' class="' in given:
            return given.replace(' class="', f' class="{name} ', 1) + end
        return f'{given} class="{name}"{end.strip()}'

    return _ELEMENT.sub(mend, html)


def _read(config: MkDocsConfig, path: str) -> str:
    """Return a file of docs/, or one that a plugin has written into the site."""
    here = Path(config.docs_dir, path)
    return (here if here.is_file() else Path(config.site_dir, path)).read_text("utf-8")


def _styles(config: MkDocsConfig, path: str) -> str:
    """Return Material's styles, KaTeX's where formulas are, and the site's own."""
    folder = Path(str(package_files("material"))) / "templates/assets/stylesheets"
    texts = [x.read_text("utf-8") for x in sorted(folder.glob("*.min.css"))]
    parts = [_SWITCHING.sub("", text).replace(*_FOCUS) for text in texts]
    if path == WITH_FORMULAS:
        parts.append(_read(config, KATEX).replace("url(fonts/", "url(../katex/fonts/"))
    parts += [_read(config, path) for path in _sources["css"]]
    return re.sub(r"/\*# sourceMappingURL=.*?\*/", "", "\n".join(parts))


def _write(path: Path, text: str) -> None:
    """Write CSS or JavaScript as esbuild shortens it."""
    program = PACKAGES / "esbuild" / "bin" / "esbuild"
    options = (f"--loader={path.suffix[1:]}", "--minify", "--legal-comments=none")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(node(program, *options, "--log-level=warning", text=text), "utf-8")
