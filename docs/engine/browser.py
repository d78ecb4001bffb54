"""The Chromium of this machine, for what only a browser can do."""

import shutil

CHROMIUM = (
    "chromium-headless-shell",  # without windows: a third of the CPU
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


def chromium() -> str:
    """Return the path of a Chromium.

    Raises:
        FileNotFoundError: there is none.
    """
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise FileNotFoundError(f"no browser is there: none of {', '.join(CHROMIUM)}")
    return program
