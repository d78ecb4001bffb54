"""Fields for the exercises of chapters, above their solutions.

What is right and what is known to be wrong travels as JSON in the page; the script
docs/live/exercises/load.js makes fields of it. A function gets the editor of
`engine.site.python`. Without JavaScript there are the folded solutions.
"""

import json
import re
from typing import Any

import numpy as np
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from engine.pages.exercises import answers_of
from engine.site import project_of
from tformer.check.asked import Exercise, Field, exercises, texts

_TITLE = re.compile(
    r'<div class="admonition question">\s*'
    r'<p class="admonition-title">(?P<number>\d+)\. '
)
_FOLD = '<details class="success">'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read the answers anew at each build of a server."""
    exercises.cache_clear()
    return config


def on_page_content(content: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Put the fields of each exercise above its solution."""
    if page.meta.get("kind") != "chapter":
        return content
    asked = answers_of(project_of(config), page.file.name)
    return with_fields(content, asked)


def with_fields(content: str, asked: dict[int, Exercise]) -> str:
    """Return the HTML of a chapter with the fields of its exercises."""
    found = [*_TITLE.finditer(content)]
    ends = [*(x.start() for x in found[1:]), len(content)]
    for title, end in [*zip(found, ends, strict=True)][::-1]:
        exercise = asked.get(int(title["number"]))
        at = content.find(_FOLD, title.end(), end)
        if exercise and at >= 0:
            content = content[:at] + fields(exercise) + content[at:]
    return content


def fields(exercise: Exercise) -> str:
    """Return what stands above the solution of an exercise."""
    if exercise.kind == "function":
        return f'<div data-python="{exercise.title}"></div>\n'
    if exercise.kind == "open":
        return ""
    data = json.dumps(data_of(exercise), ensure_ascii=False).replace("</", "<\\/")
    return (
        f'<div data-exercise="{exercise.title}">'
        f'<script type="application/json">{data}</script></div>\n'
    )


def data_of(exercise: Exercise) -> dict[str, object]:
    """Return what the page needs of an exercise."""
    return {
        "kind": exercise.kind,
        "asks": exercise.asks,
        "hint": exercise.hint,
        "fields": [_field(field) for field in exercise.fields],
        "options": [
            {"says": x.says, "told": x.told, "right": x.right} for x in exercise.options
        ],
        "texts": {name: texts("check")[name] for name in ("right", "wrong")},
    }


def _field(field: Field) -> dict[str, object]:
    right = field.right
    return {
        "asks": field.asks,
        "shape": right.shape,
        "mask": right.dtype == bool,
        "exact": right.dtype.kind in "biu",
        "percent": field.percent,
        "within": field.within,
        "bound": field.bound,
        "right": _numbers(right),
        "wrong": [[_numbers(x), told] for x, told in field.known],
        "rows": field.rows,
        "columns": field.columns,
    }


def _numbers(array: np.ndarray) -> list[float]:
    numbers: list[float] = array.astype(float).ravel().tolist()
    return [int(x) if x.is_integer() else x for x in numbers]
