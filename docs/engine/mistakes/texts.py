"""What people write of mistakes: docs/mistakes/seen.toml and symptoms.toml.

The specs know what was done and what comes of it in numbers. These files know what one
sees of it while a model trains or writes, and where others met it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from engine.mistakes import known, name_of, names_of
from tformer.check.spec import Mistake, Spec

FOLDER = "docs/mistakes"
LONGEST = 72  # letters of a title that is made of a sentence
_THREAD = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)")


@dataclass(frozen=True)
class Thread:
    """Where a mistake happened."""

    place: str  # "owner/repository#12", or the address of a page
    said: str  # what happened there, in a clause

    @property
    def url(self) -> str:
        """Its address."""
        found = _THREAD.fullmatch(self.place)
        if found is None:
            return self.place
        return f"https://github.com/{found['repository']}/issues/{found['number']}"

    @property
    def name(self) -> str:
        """How it is called in a list."""
        return self.place.removeprefix("https://").rstrip("/")


@dataclass(frozen=True)
class Seen:
    """What is written of one mistake."""

    title: str
    seen: str  # what one sees of it
    threads: tuple[Thread, ...] = ()


@dataclass(frozen=True)
class Symptom:
    """What one sees, and which mistakes may be behind it."""

    title: str
    words: tuple[str, ...]  # as people type it
    text: str  # what to look at first
    mistakes: Mapping[str, str]  # by name: how to tell it from the others
    sections: Mapping[str, str]  # other causes, by the section: "loss#the-code"
    commands: tuple[str, ...]  # which show it, beside those of the mistakes

    @property
    def anchor(self) -> str:
        """The id of its heading."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


class Texts:
    """All that is written.

    Raises:
        ValueError: a text speaks of a mistake that no spec knows, or says nothing.
    """

    def __init__(self, root: Path) -> None:
        folder = root / FOLDER
        seen = tomllib.loads((folder / "seen.toml").read_text("utf-8"))
        self.seen = {name: _seen(name, fields) for name, fields in seen.items()}
        every = tomllib.loads((folder / "symptoms.toml").read_text("utf-8"))
        self.symptoms = [_symptom(fields) for fields in every["symptom"]]
        told = [name for each in self.symptoms for name in each.mistakes]
        names = {name_of(spec, mistake) for spec, mistake in known()}
        if lost := {*self.seen, *told} - names:
            raise ValueError(f"{FOLDER} speaks of {sorted(lost)}, which no spec knows")

    def of(self, spec: Spec, mistake: Mistake) -> Seen:
        """Return what is written of a mistake, or of it in the part that has it."""
        for name in names_of(spec, mistake):
            if name in self.seen:
                return self.seen[name]
        clause = re.split(r"[:;] ", mistake.sentence)[0].rstrip(".")
        short = mistake.id.replace("_", " ").capitalize()
        return Seen(clause if len(clause) <= LONGEST else short, "")

    @cached_property
    def _by_mistake(self) -> dict[str, list[Symptom]]:
        found: dict[str, list[Symptom]] = {}
        for symptom in self.symptoms:
            for name in symptom.mistakes:
                found.setdefault(name, []).append(symptom)
        return found

    def symptoms_of(self, spec: Spec, mistake: Mistake) -> list[Symptom]:
        """Return the symptoms behind which a mistake may be."""
        found = (self._by_mistake.get(x, []) for x in names_of(spec, mistake))
        return list({each.title: each for some in found for each in some}.values())


def _seen(name: str, fields: Mapping[str, object]) -> Seen:
    title, seen = fields.get("title"), fields.get("seen")
    if not (isinstance(title, str) and isinstance(seen, str)) or len(fields) > 3:
        raise ValueError(f"{name} needs a title, what is seen, and at most threads")
    threads = cast(Mapping[str, str], fields.get("threads", {}))
    return Seen(title, seen.strip(), tuple(Thread(*x) for x in threads.items()))


def _symptom(fields: Mapping[str, object]) -> Symptom:
    title, text = str(fields["title"]), str(fields["text"]).strip()
    words, commands = (
        tuple(cast(list[str], fields.get(x, []))) for x in ("words", "commands")
    )
    mistakes, sections = (
        cast(dict[str, str], fields.get(x, {})) for x in ("mistakes", "sections")
    )
    return Symptom(title, words, text, mistakes, sections, commands)
