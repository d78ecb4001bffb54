"""Mend what mkdocs-jupyter leaves in the pages of the labs."""

import posixpath
import re
from collections.abc import Callable

_LINK = re.compile(
    r'href="(?P<path>(?![a-z][a-z0-9+.-]*:|[#/])[^"#]+)(?P<anchor>#[^"]*)?"'
)
_STYLE = re.compile(r"<style[^>]*>(?P<css>.*?)</style>", re.DOTALL)
# For MathJax and Mermaid, which would be loaded from elsewhere; the site has KaTeX.
_SCRIPT = re.compile(
    r'<script (?:src=""|type="text/x-mathjax-config"|type="module").*?</script>',
    re.DOTALL,
)


def take_styles(html: str) -> tuple[str, str]:
    """Return a page without its styles (590 KB, the same in every lab), and these."""
    css = "\n".join(style["css"] for style in _STYLE.finditer(html))
    return _SCRIPT.sub("", _STYLE.sub("", html)), css


def mend_links(
    html: str, source: str, find: Callable[[str], str | None]
) -> tuple[str, list[str]]:
    """Turn links to sources into links to pages, as MkDocs does in Markdown.

    Args:
        html: the page.
        source: its file in docs/, from which its links start.
        find: gives the link to a file in docs/ from this page, if there is one.

    Returns:
        The page, and the links that lead nowhere.
    """
    lost = []

    def link(match: re.Match[str]) -> str:
        path, anchor = match["path"], match["anchor"] or ""
        if not path.endswith((".md", ".ipynb")):
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        url = find(file)
        if url is None:
            lost.append(path)
            return match[0]
        return f'href="{url}{anchor}"'

    return _LINK.sub(link, html), lost
