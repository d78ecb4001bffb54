"""A Content-Security-Policy in each page: it runs the site's own files, nothing else.

Material has some short scripts in its pages. Each of them is allowed by the hash of its
text; a script that somebody else brings into a page does not run.
"""

import base64
import hashlib
import re

POLICY = (
    "default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'self'"
)
# Scripts and styles in the page, but not data.
_INLINE = re.compile(
    r"<(?P<tag>script|style)\b"
    r'(?![^>]*\s(?:src=|type="application/(?:ld\+)?json"))[^>]*>(?P<text>.*?)</(?P=tag)>',
    re.DOTALL,
)
_FIRST = '<meta charset="utf-8">'


def with_policy(html: str) -> str:
    """Return a page with the policy that allows what it has inside, and no more."""
    allowed: dict[str, set[str]] = {"script": set(), "style": set()}
    for found in _INLINE.finditer(html):
        allowed[found["tag"]].add(f" {digest(found['text'])}")
    policy = POLICY.format(**{tag: "".join(sorted(x)) for tag, x in allowed.items()})
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return html.replace(_FIRST, f"{_FIRST}\n      {meta}", 1)


def digest(text: str) -> str:
    """Return the hash by which a policy allows a script or a style."""
    value = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{value}'"
