"""Links: inside of the book where it has the page, and to the site otherwise."""

from collections.abc import Mapping
from urllib.parse import urldefrag, urljoin, urlsplit

from bs4 import Tag


def lead(body: Tag, address: str, inside: Mapping[str, str]) -> None:
    """Let each link of a chapter lead on.

    Args:
        body: the chapter.
        address: where it stands on the site.
        inside: the chapters of the book by their addresses.
    """
    for link in body("a", href=True):
        if urlsplit(str(link["href"])).scheme:
            continue
        page, fragment = urldefrag(urljoin(address, str(link["href"])))
        behind = f"#{fragment}" if fragment else ""
        if page == address:
            # The site may have an anchor that the book leaves out.
            known = not fragment or body.find(id=fragment)
            within = behind or f"{inside[page]}.xhtml"
            link["href"] = within if known else page + behind
        elif page in inside:
            link["href"] = f"{inside[page]}.xhtml{behind}"
        else:
            link["href"] = page + behind
