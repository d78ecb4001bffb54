"""Links from the terms of the page of families to the sections that explain them."""

import re
from collections.abc import Mapping

Terms = Mapping[str, str]  # a term, and the address of what explains it
_WHOLE = r"\[[^\]]*\]\([^)]*\)|`[^`]*`"  # a link, and code: left as they are


def link_numbers(text: str) -> str:
    """Make a link of each number at arXiv."""
    return re.sub(r"arXiv:([\d.]+\d)", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)


def linked(text: str, terms: Terms) -> str:
    """Make a link of the first mention of each term; of two that overlap, the longer.

    Two terms of one address count as one. Code and links stay as they are.
    """
    longest = sorted(terms, key=len, reverse=True)
    found = re.compile(
        rf"{_WHOLE}|(?<!\w)({'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE
    )
    by_lower = {term.lower(): address for term, address in terms.items()}
    seen: set[str] = set()

    def link(match: re.Match[str]) -> str:
        address = by_lower.get((match[1] or "").lower())
        if address is None or address in seen:
            return match[0]
        seen.add(address)
        return f"[{match[0]}]({address})"

    return found.sub(link, text)


def linked_name(name: str, terms: Terms) -> str:
    """Make a link of what a part is, if it is a term, as `RMSNorm`."""
    kind, comma, rest = name.partition(",")
    return f"[{kind}]({terms[kind]}){comma}{rest}" if kind in terms else name
