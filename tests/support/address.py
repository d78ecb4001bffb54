"""The addresses of the site and the repository: read, compared and changed.

mkdocs.yml is the place where they stand. The files in COPIES must repeat them, because
the tools that read these files know no other; ``make address`` rewrites them all.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "mkdocs.yml"
BOTH = ("README.md", "CITATION.cff", "pyproject.toml")
ONE = ("docs/index.md", "docs/teaching.md", "tformer/check/telling.py")
ONE += (".github/CONTRIBUTING.md", ".github/ISSUE_TEMPLATE/config.yml")
COPIES = [ROOT / name for name in BOTH + ONE]


def read() -> tuple[str, str]:
    """Return the addresses of the repository and of the site."""
    text = SOURCE.read_text("utf-8")
    lines = dict(re.findall(r"^(repo_url|site_url): (\S+)$", text, re.M))
    return lines["repo_url"].rstrip("/"), lines["site_url"].rstrip("/")


def change(repo: str, site: str) -> None:
    """Write other addresses into mkdocs.yml and the files that repeat them."""
    old = read()
    new = (repo or old[0]).rstrip("/"), (site or old[1]).rstrip("/")
    for address in new:
        if not re.fullmatch(r"https?://[\w.-]+(?::\d+)?(?:/[\w.~-]+)*", address):
            raise SystemExit(f"{address!r} is not the address of a site or repository")
    for file in [SOURCE, *COPIES]:
        text = file.read_text("utf-8")
        for before, after in zip(old, new, strict=True):
            text = re.sub(rf"{re.escape(before)}(?![\w.-])", after, text)
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    change(*sys.argv[1:3])
    print("repository {}\nsite       {}".format(*read()))
