"""The feed: its dates are those of git, and it is Atom."""

import os
import subprocess
from xml.etree import ElementTree

from engine.project import Project
from engine.site.feed import ATOM, Dates, dates_of, feed
from engine.site.lists import Chapter

FILES = ["chapters/scale.md", "chapters/é.md"]


def commit(project: Project, date: str) -> None:
    who = {
        f"GIT_{x}_{y}": "a" for x in ("AUTHOR", "COMMITTER") for y in ("NAME", "EMAIL")
    }
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for command in (["add", "-A"], ["commit", "-qm", "a", "--no-gpg-sign"]):
        subprocess.run(
            ["git", *command],
            cwd=project.root,
            env={**os.environ, **who, **dates},
            check=True,
        )


def test_dates_are_those_of_git(project: Project) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project.root, check=True)
    commit(project, "2024-05-01T12:00:00+02:00")
    (project.docs / FILES[0]).write_text("# Other\n", "utf-8")
    (project.docs / FILES[1]).write_text("# New\n", "utf-8")
    commit(project, "2025-06-01T00:30:00+02:00")
    dates = dates_of(project, [*FILES, "chapters/not-there-yet.md"])
    assert dates[FILES[0]].published == "2024-05-01T10:00:00Z"
    assert dates[FILES[0]].updated == "2025-05-31T22:30:00Z"
    assert dates[FILES[1]].published == "2025-05-31T22:30:00Z"
    assert dates["chapters/not-there-yet.md"].updated > dates[FILES[1]].updated


def test_without_git_there_are_dates(project: Project) -> None:
    assert dates_of(project, FILES)[FILES[0]].published.endswith("Z")


def test_the_newest_chapter_comes_first() -> None:
    old, new = (
        Chapter(file, f"On `{file[9]}` & more", {"question": "Why <b>?"}, "")
        for file in FILES
    )
    day = "2025-01-0{}T00:00:00Z".format
    dates = {old.file: Dates(day(1), day(3)), new.file: Dates(day(2), day(2))}
    text = feed([old, new], dates, "https://example.org/tiny/", "Tiny", "tiny")
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{{{ATOM}}}updated") == day(3)
    entries = root.findall(f"{{{ATOM}}}entry")
    assert [x.findtext(f"{{{ATOM}}}title") for x in entries] == [
        "On é & more",
        "On s & more",
    ]
    assert entries[1].findtext(f"{{{ATOM}}}summary") == "Why <b>?"
    assert entries[1].findtext(f"{{{ATOM}}}updated") == day(3)
