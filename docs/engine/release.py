"""A release: what the changelog says of it, and whether a tag may be published.

`python -m engine release v0.2.0` prints what is new in 0.2.0, or says what stands in
the way. The version stands in the package's `__init__.py`, and what changed in
docs/changelog.md, in the form of https://keepachangelog.com/en/1.1.0/.
"""

import itertools
import re
import subprocess
import tomllib
from dataclasses import dataclass
from datetime import date

from packaging.version import Version

from engine.project import Project

PAGE = "changelog.md"
UNRELEASED = "Unreleased"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_KIND = re.compile(r"^### (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What the changelog says of one version, or of what is not released yet."""

    title: str  # as it stands behind `##`
    text: str

    @property
    def version(self) -> Version | None:
        """The version, in the section of a release."""
        return Version(self.title.split(" - ")[0]) if self.day else None

    @property
    def day(self) -> date | None:
        """The day of a release.

        Raises:
            ValueError: the title is neither Unreleased nor `0.2.0 - 2026-12-01`.
        """
        if self.title == UNRELEASED:
            return None
        try:
            version, day = self.title.split(" - ")
            Version(version)
            return date.fromisoformat(day)
        except ValueError:  # InvalidVersion too
            raise ValueError(
                f"## {self.title}: must be {UNRELEASED}, or as 0.2.0 - 2026-12-01"
            ) from None

    @property
    def entries(self) -> dict[str, list[str]]:
        """The first line of each entry, by its kind."""
        _, *parts = _KIND.split(self.text)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return {kind: re.findall(r"^- (.+)$", text, re.M) for kind, text in pairs}


def sections(text: str) -> list[Section]:
    """Return the sections of a changelog, the newest first."""
    _, *parts = _HEADING.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [Section(title.strip(), part.strip("\n")) for title, part in pairs]


def problems(text: str, version: str) -> list[str]:
    """Return what is wrong with a changelog of a package that has this version."""
    found = sections(text)
    if not found:
        return [f"{PAGE} has no section"]
    try:
        released = [(x.version, x.day) for x in found if x.day and x.version]
    except ValueError as error:
        return [f"{PAGE}: {error}"]
    wrong = [each for section in found for each in _kinds_problems(section)]
    if UNRELEASED in [section.title for section in found[1:]]:
        wrong.append(f"{UNRELEASED} must stand on top, once")
    for (one, day), (older, before) in itertools.pairwise(released):
        if one <= older or day < before:
            wrong.append(f"{one} of {day} stands above {older} of {before}")
    newest = released[0][0] if released else None
    if newest and newest > Version(version):
        wrong.append(f"{newest} is newer than the package's version, {version}")
    if newest and found[0].day and newest != Version(version):
        wrong.append(f"the newest section must be {version} or {UNRELEASED}")
    return [f"{PAGE}: {each}" for each in wrong]


def _kinds_problems(section: Section) -> list[str]:
    names = _KIND.findall(section.text)
    wrong = [
        f"{section.title}: {name} is none of {', '.join(KINDS)}"
        for name in names
        if name not in KINDS
    ]
    wrong += [
        f"{section.title}: {kind} has no entry"
        for kind, entries in section.entries.items()
        if not entries
    ]
    known = [name for name in names if name in KINDS]
    if known != sorted({*known}, key=KINDS.index):
        wrong.append(f"{section.title}: the kinds must stand once, in order")
    if section.day and not names:
        wrong.append(f"{section.title}: a release says what changed")
    return wrong


def is_released(text: str) -> bool:
    """Whether a changelog knows a release: before, PyPI does not have the package."""
    return any(section.day for section in sections(text))


def changelog(project: Project) -> str:
    """Return the changelog of a project."""
    return (project.docs / PAGE).read_text("utf-8")


def notes(project: Project, tag: str) -> str:
    """Return what is new in a release.

    Raises:
        ValueError: the tag must not be published: it is not the package's version, or
            the changelog is wrong or does not begin with it.
    """
    text, version = changelog(project), project.version
    if tag != f"v{version}":
        raise ValueError(f"tag ({tag}) must be v{version}, the version of the package")
    if wrong := problems(text, version):
        raise ValueError("\n".join(wrong))
    newest = sections(text)[0]
    if newest.version != Version(version):
        raise ValueError(f"{PAGE} must begin with ## {version} and its day")
    return f"{newest.text}\n"


WITH = "train"  # the extra that notebooks need: they draw, and some of them train


def unpinned(project: Project) -> str:
    """Return what pip installs from the repository, as it is that day.

    Notebooks are made with it; the site pins it, by `pinned`, when it is built.
    """
    return f"{_named(project)} @ git+{project.repo_url}"


def pinned(project: Project) -> str:
    """Return what pip installs to get the package as it is here.

    That is the released version where nothing of the package has changed since, and
    the commit otherwise; without git, the repository.
    """
    tag = f"v{project.version}"
    if _git(project, "diff", "--quiet", tag, "HEAD", "--", project.package) is not None:
        return f"{_named(project)}=={project.version}"
    commit = _git(project, "rev-parse", "HEAD")
    return f"{unpinned(project)}@{commit}" if commit else unpinned(project)


def _named(project: Project) -> str:
    file = project.root / "pyproject.toml"
    said = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    extras = said.get("project", {}).get("optional-dependencies", {})
    return f"{project.package}[{WITH}]" if WITH in extras else project.package


def _git(project: Project, *words: str) -> str | None:
    """Return what git prints, or None where it fails or is not there."""
    command = ["git", "-c", "safe.directory=*", *words]
    try:
        done = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()
