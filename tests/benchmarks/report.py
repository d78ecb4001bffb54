"""The file of a benchmark: its rows, and on what they were measured."""

import datetime
import importlib.metadata
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import torch

from benchmarks.measuring import measure, ratios
from benchmarks.workload import Workload
from tformer.runs.metrics import describe_machine

ROOT = Path(__file__).parents[2]
PACKAGES = ("torch", "numpy", "transformers", "x-transformers")


def row(workload: Workload, seconds: float, device: str = "cpu") -> dict[str, Any]:
    """Measure a workload; return its row."""
    # Built there, and run without this context, in which each call of torch is slower.
    with torch.device(device):
        contenders = workload.make()
    found = measure(contenders, workload.dtype, seconds, device)
    compared = ratios(found)
    for each in found.values():
        each.pop("rounds", None)
    return {
        "family": workload.family,
        "name": workload.name,
        "size": workload.size,
        "dtype": workload.dtype,
        "length": workload.length,
        **compared,
        "contenders": found,
    }


def about(arguments: list[str], short: bool, device: str) -> dict[str, Any]:
    """Say on what, with what, from which commit and how it was measured."""
    return {
        "machine": describe_machine(torch.device(device)),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "--short=10", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", "tformer")),
        "command": shlex.join(["python", "tests/benchmarks", *_without_out(arguments)]),
        "short": short,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def save(path: Path, report: dict[str, Any]) -> None:
    """Write the file, with few enough digits to be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    few: Any = json.loads(json.dumps(report), parse_float=_rounded)
    text = json.dumps(few, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def line(found: dict[str, Any]) -> str:
    """Say a row in a line of the terminal."""
    name = f"{found['name']}, {found['size']}, {found['dtype']}"
    apart = [n for n, x in found["contenders"].items() if "disagrees" in x]
    told = f"  DISAGREE: {', '.join(apart)}" if apart else ""
    if found.get("ratio") is None:
        return f"{name}: not compared{told}"
    ours = found["contenders"][found["ours"]]["median"]
    return f"{name}: {1e3 * ours:.3g} ms, {found['ratio']:.2f} of {found['best']}{told}"


def _without_out(arguments: list[str]) -> list[str]:
    """Leave out where the file went: that is nobody's business."""
    if "--out" not in arguments:
        return arguments
    place = arguments.index("--out")
    return arguments[:place] + arguments[place + 2 :]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _rounded(number: str) -> float:
    return float(f"{float(number):.4g}")
