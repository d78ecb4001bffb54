"""A page a mistake, and the lists of the index, as Markdown."""

import difflib
import re
from collections.abc import Iterator, Mapping
from inspect import getsourcefile
from itertools import groupby
from pathlib import Path
from textwrap import dedent

from engine.mistakes import known, name_of
from engine.mistakes.drawing import picture, text_of, tiny
from engine.mistakes.showing import Shown, all_shown
from engine.mistakes.texts import Symptom, Texts
from engine.project import Project
from tformer.check.exercises import EXERCISES
from tformer.check.spec import PROPERTIES, Mistake, Spec

FOLDER = "mistakes"
_SPECIAL = re.compile(r"([\\*_<>\[\]|])")
_CODE = re.compile(r"(`[^`]+`)")
_COMMENT = re.compile(r"  # .*")  # what a phone has no room for


class Atlas:
    """All pages of mistakes of a project."""

    def __init__(self, project: Project, chapters: Mapping[str, str]) -> None:
        self.project = project
        self.chapters = chapters  # the titles, by name
        self.texts = Texts(project.root)
        self.shown = all_shown(project.root)

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield each page and its picture: the file in docs/, and what stands in it."""
        for spec, mistake in known():
            name = name_of(spec, mistake)
            yield f"{FOLDER}/{name}.md", self.page(spec, mistake)
            if self.shown[name].right:
                yield f"{FOLDER}/{name}.svg", picture(self.shown[name])

    def page(self, spec: Spec, mistake: Mistake) -> str:
        """Write the page of a mistake."""
        return "\n\n".join(self._parts(spec, mistake)) + "\n"

    def _parts(self, spec: Spec, mistake: Mistake) -> Iterator[str]:
        shown = self.shown[name_of(spec, mistake)]
        texts = self.texts.of(spec, mistake)
        about = mistake.sentence.replace('"', "'")
        yield f'---\ndescription: "{about}"\nsearch:\n  boost: 0.4\n---'
        yield f"# {_plain(texts.title)}"
        kicker = f"[Mistakes](../index.md) in [`{spec.name}`](../index.md#{spec.name})"
        yield f"{kicker}\n{{ .mistake-kicker }}"
        yield f"**{_plain(mistake.sentence)}**"
        if texts.seen:
            yield f"*What you see.* {texts.seen}"
        yield from self._numbers(mistake, shown)
        yield "## The fix { data-search-exclude }"
        link = self._section(mistake.chapter, up="../../")
        yield f"Explained in {link}. In the spec's own code:"
        yield f"```diff\n{change(mistake)}\n```"
        yield self._source(mistake)
        if spec.name in EXERCISES:
            start, then = (f"`tformer check {x}{spec.name}`" for x in ("start ", ""))
            yield f"Check your own: {start} writes a file, {then} checks it."
        if symptoms := self.texts.symptoms_of(spec, mistake):
            links = ", ".join(
                f"[{_plain(x.title)}](../index.md#{x.anchor})" for x in symptoms
            )
            yield f"Seen as: {links}."
        if texts.threads:
            yield "## Where it happened { data-search-exclude }"
            yield "\n".join(
                f"- [{_plain(x.name)}]({x.url}): {x.said}" for x in texts.threads
            )
        others = [
            f"[{_plain(self.texts.of(spec, x).title)}]({x.id}.md)"
            for x in spec.mistakes
            if x.id != mistake.id
        ]
        if others:
            yield f"## Others in `{spec.name}` {{ data-search-exclude }}"
            yield " · ".join(others)

    def _section(self, place: str, *, up: str) -> str:
        """Link a section of a chapter: `masks#bad-input`."""
        chapter, _, section = place.partition("#")
        title = self.chapters.get(chapter, chapter)
        target = f"{up}chapters/{place.replace('#', '.md#')}"
        return f"[{title}: {section.replace('-', ' ')}]({target})"

    def _numbers(self, mistake: Mistake, shown: Shown) -> Iterator[str]:
        """Show the case: the picture, what the check says, and the inputs."""
        yield "## The numbers that show it { data-search-exclude }"
        told = f"The smallest case that shows it is “{shown.case}”: {shown.message}."
        if mistake.shows in PROPERTIES:
            told += f" What must hold: {PROPERTIES[mistake.shows]}."
        if shown.right:
            crop = f" ({shown.crop})" if shown.crop else ""
            drawn = f"{shown.part[:1].upper()}{shown.part[1:]}{crop}, right and wrong."
            alike = [*map(len, shown.right)] == [*map(len, shown.wrong)]
            framed = alike and shown.kind != "shape"
            frame = " What differs has a red frame." * framed
            caption = drawn + frame
            yield f'![{_plain(text_of(shown))}]({mistake.id}.svg "{_plain(caption)}")'
        yield _plain(told)
        yield "```text\n" + "\n".join(shown.inputs) + "\n```"

    def _source(self, mistake: Mistake) -> str:
        file = getsourcefile(mistake.right) or ""
        path = Path(file).relative_to(self.project.root).as_posix()
        where = f"{self.project.repo_url}/blob/HEAD/{path}"
        code = "NumPy loops" if mistake.framework == "numpy" else "PyTorch"
        said = "A line with + is right, a line with − makes the mistake"
        return f"{said}: {code} of [{path}]({where})."

    def symptoms(self) -> str:
        """Write the list of symptoms, each with the mistakes behind it."""
        every = self.texts.symptoms
        jumps = " · ".join(f"[{_plain(x.title)}](#{x.anchor})" for x in every)
        return "\n\n".join([jumps, *map(self._symptom, every)])

    def _symptom(self, symptom: Symptom) -> str:
        named = {name_of(*each): each for each in known()}
        behind = [named[name] for name in symptom.mistakes]
        lines = [f"### {symptom.title} {{ #{symptom.anchor} }}", symptom.text]
        if symptom.words:
            lines.append(f"*Also typed:* {', '.join(symptom.words)}")
        rows = [
            f"- [{_plain(self.texts.of(*each).title)}]({name_of(*each)}.md): {told}"
            for each, told in zip(behind, symptom.mistakes.values(), strict=True)
        ]
        rows += [
            f"- {self._section(place, up='../')}: {told}"
            for place, told in symptom.sections.items()
        ]
        lines.append("\n".join(rows))
        explained = dict.fromkeys(x.chapter for _, x in behind)
        if links := [self._section(x, up="../") for x in explained]:
            lines.append(f"*Explained in* {', '.join(links)}.")
        asks = [f"tformer check {x.name}" for x, _ in behind if x.name in EXERCISES]
        if commands := dict.fromkeys([*symptom.commands, *asks]):
            lines.append(f"*Ask* {', '.join(f'`{x}`' for x in commands)}.")
        return "\n\n".join(lines)

    def concepts(self) -> str:
        """Write the list of all mistakes by concept, with tiny pictures.

        Concepts stand in the order of the chapters.
        """
        parts, order = [], [*self.chapters]

        def place(pair: tuple[Spec, Mistake]) -> int:
            first = pair[0].mistakes[0].chapter.partition("#")[0]
            return order.index(first) if first in order else len(order)

        ordered = sorted(known(), key=place)
        for name, each in groupby(ordered, key=lambda pair: pair[0].name):
            rows = [
                f"<li>{tiny(self.shown[name_of(spec, x)])}"
                f'<a href="{spec.name}/{x.id}/">{self.texts.of(spec, x).title}</a></li>'
                for spec, x in each
            ]
            known_as = EXERCISES[name].title if name in EXERCISES else f"`{name}`"
            head = f"### {known_as} {{ #{name} data-search-exclude }}"
            parts.append(f'{head}\n\n<ul class="mistakes">{"".join(rows)}</ul>')
        return "\n\n".join(parts)


def change(mistake: Mistake) -> str:
    """Return what to change, as a difference from the wrong code to the right one."""
    right, wrong = mistake.sources
    found = difflib.unified_diff(
        wrong.splitlines(), right.splitlines(), lineterm="", n=1
    )
    lines = [x for x in [*found][3:] if not x.startswith(" @@")]
    bare = dedent("\n".join(_COMMENT.sub("", x[1:]) for x in lines)).split("\n")
    marks = ("…" if x.startswith("@@") else x[0] for x in lines)
    pairs = zip(marks, bare, strict=True)
    return "\n".join("…" if mark == "…" else f"{mark} {x}" for mark, x in pairs)


def _plain(text: str) -> str:
    """Write a text so that Markdown shows it as it is, code in backticks as code."""
    parts = _CODE.split(text)
    return "".join(
        x if number % 2 else _SPECIAL.sub(r"\\\1", x) for number, x in enumerate(parts)
    )
