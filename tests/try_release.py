"""Try what was installed, as a new user would: every command, and what it says.

`python tests/try_release.py` in an environment with the wheel and torch; with `--train`
in one with the extra `train` too. It needs no pytest, and nothing of this folder.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROTARY = """
import numpy as np

def rotary(x, positions, base):
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(x.dtype)
"""


def tformer(*words: object, code: int = 0) -> str:
    """Run the installed command; return what it prints, or raise."""
    command = Path(sys.executable).with_name("tformer")
    done = subprocess.run(
        [command, *map(str, words)], capture_output=True, text=True, encoding="utf-8"
    )
    said = done.stdout + done.stderr
    print(f"$ tformer {' '.join(map(str, words))}\n{said[-600:]}")
    expect(done.returncode == code, f"exit code {done.returncode}, and not {code}")
    expect("Traceback" not in said, "a traceback")
    return said


def verdict(said: str) -> str:
    """Return the verdict in what `check --json` prints."""
    found: str = json.loads(said.partition("\n")[0])["verdict"]
    return found


def expect(holds: bool, what: str) -> None:
    """End with a message where something does not hold."""
    if not holds:
        raise SystemExit(f"failed: {what}")


def plain() -> None:
    """Without the extra: the modules work, and the command says what it lacks."""
    import torch

    import tformer as package

    version = importlib.metadata.version("tformer")
    expect(package.__version__ == version, f"{package.__version__} is not {version}")
    inside = Path(package.__file__).is_relative_to(sys.prefix)
    expect(inside, f"{package.__file__} is not what was installed")
    attention = package.MultiHeadAttention(12, num_heads=3)
    expect(
        attention(torch.randn(2, 5, 12)).shape == (2, 5, 12), "the shape of attention"
    )
    from tformer.reference import from_torch

    expect(from_torch(attention) is not None, "the NumPy twin")
    said = tformer("--help", code=1)
    expect("tformer[train]" in said, "the sentence that says what is to be installed")


def trained() -> None:
    """With the extra: every command, in an empty folder."""
    expect("Usage" in tformer("--help"), "the help")
    version = importlib.metadata.version("tformer")
    expect(tformer("--version") == f"tformer {version}\n", "the version")
    expect(f"tformer {version}" in tformer("info"), "the version in info")
    said = tformer("translate", "dates", "jeudi 3 mai 1979")
    expect("1979-05-03" in said, "the translation of a date")

    tformer("check", "start", "rotary")
    expect("rotary" in tformer("check", "rotary", code=1), "a file to be written")
    Path("rotary.py").write_text(ROTARY, "utf-8")
    expect(verdict(tformer("check", "rotary", "--json")) == "right", "a right answer")
    Path("rotary.py").write_text(ROTARY.replace("a * cos -", "a * cos +"), "utf-8")
    said = tformer("check", "rotary", "--json", code=1)
    expect(verdict(said) == "wrong", "a wrong answer")

    tformer("train", "copy", "--steps", 20, "--out", "copy")
    tformer("train", "--resume", "copy")
    tformer("info", "copy")
    tformer("evaluate", "copy")
    Path("book.txt").write_text("All happy families are alike. " * 400, "utf-8")
    tformer("train", "text", "book.txt", "--steps", 20, "--out", "book")
    tformer("generate", "book", "--prompt", "All happy", "--count", 1)
    tformer("attend", "dates", "3 mai 1979", "--out", "attention.svg")
    expect("<svg" in Path("attention.svg").read_text("utf-8"), "a picture of attention")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="with the extra `train`")
    with_extra = parser.parse_args().train
    os.chdir(tempfile.mkdtemp())
    if with_extra:
        trained()
    else:
        plain()
    print("all of it worked")
