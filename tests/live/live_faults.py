"""Faults planted in what a page is served: a test that stays green then is no test."""

from live_serving import ROOT, LiveSite


def plant(site: LiveSite, file: str, old: str, new: str) -> None:
    """Serve a module of docs/live with `new` in the place of `old`."""
    text = (ROOT / "docs/live" / file).read_text("utf-8")
    assert old in text, f"{file} has no {old}"
    site.changed[f"/live/{file}"] = text.replace(old, new)
