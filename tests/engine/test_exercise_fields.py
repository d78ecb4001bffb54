"""The fields of exercises in a page, and how they judge."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.node import node
from engine.site.exercises import data_of, fields, with_fields
from engine.site.python import place
from tformer.check.asked import chapters, exercises

ROOT = Path(__file__).parents[2]
ALL = [x for chapter in chapters() for x in exercises(chapter).values()]
FIELDS = [(x, field) for x in ALL for field in x.fields]


def test_the_page_judges_as_the_package_does(tmp_path):
    """Right answers, known wrong ones, and others, in JavaScript and in Python."""
    asked, expected = [], []
    for exercise, field in FIELDS:
        others = [field.right * 1.37 + 0.71] if field.right.dtype != bool else []
        others += [field.right * 100] if field.percent else []  # 37.5 for 0.375
        for value in [field.right, *(x for x, _ in field.known), *others]:
            data = json.loads(json.dumps(data_of(exercise)))["fields"]
            at = exercise.fields.index(field)
            asked.append([data[at], np.asarray(value).astype(float).ravel().tolist()])
            expected.append(field.wrong_with(value))
    judge = (ROOT / "docs/live/exercises/judge.js").as_uri()
    program = tmp_path / "parity.mjs"
    program.write_text(
        f'import {{ wrongWith }} from "{judge}"\n'
        f"const asked = {json.dumps(asked)}\n"
        "console.log(JSON.stringify(asked.map(([f, x]) => wrongWith(f, x))))",
        "utf-8",
    )
    assert json.loads(node(program, text="")) == expected
    assert len(expected) > 300


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("12,345", 12345), ("1,050,624.5", 1050624.5), ("0.375", 0.375)),
        *(("37.5 %", 0.375), ("3/8", 0.375), ("−2", -2), ("0,375", 0.375)),
        *(("6.9e-4", 6.9e-4), ("8.4 MB", 8.4), (" 1 000 ", 1000), (".5", 0.5)),
        *(
            ("1.5,3", None),
            ("", None),
            ("many", None),
            ("1/2/3", None),
            ("3 x 4", None),
        ),
    ],
)
def test_numbers_are_read_as_people_write_them(tmp_path, text, number):
    judge = (ROOT / "docs/live/exercises/judge.js").as_uri()
    program = tmp_path / "read.mjs"
    program.write_text(
        f'import {{ parse }} from "{judge}"\n'
        f"console.log(JSON.stringify(parse({json.dumps(text)})))"
    )
    assert json.loads(node(program, text="")) == number


def test_fields_stand_above_solutions():
    asked = exercises("masks")
    box = (
        '<div class="admonition question">\n'
        '<p class="admonition-title">{}. A (easy)</p>'
        '<p>Text.</p>\n<details class="success"><summary>Solution</summary></details>'
        "\n</div>\n"
    )
    other = '<details class="success"><summary>Elsewhere</summary></details>'
    content = "".join(box.format(number) for number in (1, 2, 5, 9)) + other
    found = with_fields(content, asked)
    assert re.findall('data-exercise="([^"]*)"', found) == ["masks 1", "masks 2"]
    editor = found.index('<div data-python="masks 5"></div>')
    assert editor < found.rindex("<summary>Solution")
    assert found.endswith(box.format(9) + other)  # it has no exercise 9
    parts = re.split('<details class="success">', found)
    assert 'data-exercise="masks 2"' in parts[1]


def test_a_function_gets_an_editor_and_what_is_open_nothing():
    for exercise in ALL:
        if exercise.kind == "function":
            made = place(exercise.title, None, "../")
            assert f'data-function="{exercise.name}"' in made
            assert fields(exercise) == f'<div data-python="{exercise.title}"></div>\n'
    assert fields(exercises("gpt")[4]) == ""


def test_json_ends_no_script():
    for exercise in ALL:
        text = fields(exercise)
        assert text.count("</script>") == (' type="application/json"' in text)


def test_the_answers_need_no_torch_on_the_site():
    code = "import sys; sys.modules['torch'] = None; import engine.site.exercises"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
