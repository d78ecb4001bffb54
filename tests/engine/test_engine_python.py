"""Python for the page: where NumPy comes from, what travels, and what judges."""

import hashlib
import importlib.util
import io
import json
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

from engine.project import Project
from engine.site.python import WITHOUT, Runtime, archive, listing, place, runtime
from tformer.check.asked import chapters, exercises
from tformer.check.exercises import EXERCISES

ROOT = Path(__file__).parents[2]
PLACED = importlib.util.spec_from_file_location("p", ROOT / "docs/npm/python.py")
python = importlib.util.module_from_spec(PLACED)
PLACED.loader.exec_module(python)

RIGHT = "import numpy as np\ndef causal_mask(T, S):\n    return np.tri(T, S, S - T) > 0"
AHEAD = RIGHT.replace("S - T", "S - T + 1")
LIES = 'print(\'{"verdict": "right"}\')\n'
SHOUTS = "import numpy as np\nnp.array_equal = np.allclose = lambda *_: True\n"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What travels, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(io.BytesIO(archive(Project(ROOT)))) as packed:
        packed.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def ask(unpacked):
    """Ask reader.py in a process that has nothing else of the project, nor torch."""
    program = """
import json, sys
sys.path.insert(0, sys.argv[1])
sys.modules["torch"] = None
import reader
for source, name in json.load(sys.stdin):
    printed = []
    verdict = json.loads(reader.check(source, name, printed.append))
    print(json.dumps([verdict, "".join(printed)]))
"""

    def run(*asked: tuple[str, str]) -> list[tuple[dict[str, object], str]]:
        command = [sys.executable, "-IB", "-c", program, unpacked]
        text = json.dumps(asked)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_what_is_judged_in_the_page(ask):
    asked = [
        *(RIGHT, AHEAD, LIES + AHEAD, SHOUTS + AHEAD),
        *("", "causal_mask = 1", "1 +", "def causal_mask(T, S): 1 / 0", "exit()"),
    ]
    said = ask(*((source, "causal_mask") for source in asked))
    verdicts = [verdict["verdict"] for verdict, _ in said]
    assert verdicts[:4] == ["right", "wrong", "wrong", "wrong"]
    assert verdicts[4:] == [*["not run"] * 3, "wrong", "not run"]
    named = [[x["id"] for x in verdict.get("mistakes", [])] for verdict, _ in said]
    assert named[1] == named[2] == named[3] == ["one_ahead"]
    assert said[2][1] == '{"verdict": "right"}\n'
    numbers = dict(said[1][0]["numbers"])
    assert numbers["yours"] != numbers["right"]
    assert "SyntaxError" in said[6][1]
    assert (
        "ZeroDivisionError: division by zero (line 1)"
        in said[7][0]["differs"]["message"]
    )


def test_code_is_run_below_what_it_needs(unpacked):
    place = importlib.util.spec_from_file_location("r", unpacked / "running.py")
    running = importlib.util.module_from_spec(place)
    place.loader.exec_module(running)
    before = (
        "import numpy as np\nnp.set_printoptions(precision=1)\ndef f(x): return 1 / x"
    )
    printed: list[str] = []
    for source, ends in (
        ("print(np.pi * np.ones(1), f(2))\nf(4)", True),
        ("f(0)", False),
    ):
        kept = np.get_printoptions()
        assert running.run(source, printed.append, before) is ends
        assert np.get_printoptions() == kept  # the next code begins anew
    text = "".join(printed)
    assert text.startswith("[3.1] 0.5\n0.25\nTraceback:\n")
    lines = ('File "<your code>", line 1', 'File "<above your code>", line 3', "in f\n")
    assert all(line in text for line in lines)
    assert "    def f(x): return 1 / x\n" in text
    assert text.endswith("ZeroDivisionError: division by zero\n")


OF_CHAPTERS = [
    f"{chapter} {number}"
    for chapter in chapters()
    for number, exercise in exercises(chapter).items()
    if exercise.kind == "function"
]


def starter(name: str) -> str:
    """What stands on the page."""
    html = place(name, None, "")
    return BeautifulSoup(html, "html.parser").pre.get_text()


def test_what_raises_in_some_cases_alone_is_told(ask):
    wrong = f"{AHEAD} if T < 5 else T / (S - S)"
    ((verdict, _),) = ask((wrong, "causal_mask"))
    assert verdict["differs"]["kind"] == "value"
    assert verdict["raises"].startswith("In the case “T = 5, S = 5")
    assert "ZeroDivisionError: division by zero (line 3)" in verdict["raises"]


def test_no_starter_is_right(ask):
    names = [*EXERCISES, *OF_CHAPTERS]
    assert len(OF_CHAPTERS) > 9
    said = ask(*((starter(name), name) for name in names))
    unwritten = {"verdict": "not run", "reason": "It is not written yet."}
    verdicts = {name: x for name, (x, _) in zip(names, said, strict=True)}
    assert {name for name, x in verdicts.items() if x != unwritten} == set()


def test_each_exercise_can_be_done_with_numpy_alone(ask):
    names = [*EXERCISES, *OF_CHAPTERS]
    code = "import reader\n{} = reader.asked({!r})[0].oracle"
    functions = [BeautifulSoup(place(x, None, ""), "html.parser").div for x in names]
    said = ask(
        *(
            (code.format(each["data-function"], name), name)
            for name, each in zip(names, functions, strict=True)
        )
    )
    known = ("dtype", "precision")  # oracles compute in float64
    wrong = {
        name: verdict
        for name, (verdict, _) in zip(names, said, strict=True)
        if verdict["verdict"] != "right" and verdict["differs"]["kind"] not in known
    }
    assert wrong == {}


def test_a_function_of_a_chapter_is_judged(ask):
    right = """
import numpy as np
def rotate(x):
    t, i = np.arange(len(x))[:, None], np.arange(x.shape[1] // 2)
    angle = t / 10000 ** (2 * i / x.shape[1])
    a, b = x[:, 0::2], x[:, 1::2]
    pairs = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return np.stack(pairs, -1).reshape(x.shape)
"""
    (first, _), (second, _) = ask(
        (right, "positions 4"),
        (right.replace("angle = t", "angle = -t"), "positions 4"),
    )
    assert first["verdict"] == "right"
    assert [x["id"] for x in second["mistakes"]] == ["backwards"]


def test_what_travels_is_the_package_unchanged(unpacked):
    names = {x.relative_to(unpacked) for x in unpacked.rglob("*") if x.is_file()}
    ours = {x for x in names if x.parts[0] == "tformer"}
    assert names - ours == {Path("reader.py"), Path("running.py")}
    assert {
        x for x in ours if (unpacked / x).read_bytes() != (ROOT / x).read_bytes()
    } == set()
    for part in ("check/judging.py", "check/exercises/rotary.md", "reference/heads.py"):
        assert Path("tformer", part) in ours
    assert archive(Project(ROOT)) == archive(Project(ROOT))


def test_all_exercises_are_listed():
    page = listing()
    for name, exercise in EXERCISES.items():
        assert f'<div data-python="{name}"></div>' in page
        assert f"## {exercise.title} {{ #{name} }}" in page
        html = place(name, None, "../")
        assert f"tformer check start {name}" in html
        assert WITHOUT in html
        assert "data-folder" not in html


def test_an_exercise_knows_where_python_is():
    html = place("rotary", Runtime("assets/python/1a/", "live/t.zip", b"", 9), "../../")
    for part in (
        'data-folder="../../assets/python/1a/"',
        'data-package="../../live/t.zip"',
        'data-bytes="9"',
    ):
        assert part in html
    assert WITHOUT not in html


def test_a_project_without_numpy_has_no_python(tmp_path):
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    assert runtime(Project(tmp_path)) is None
    made = tmp_path / "docs/assets/python/made.json"
    made.parent.mkdir(parents=True)
    made.write_text('{"folder": null}')
    assert runtime(Project(tmp_path)) is None


def test_only_the_wheel_of_the_lock_file_is_taken(tmp_path, monkeypatch):
    wheel = tmp_path / "numpy.whl"
    wheel.write_bytes(b"numpy")
    right = hashlib.sha256(b"numpy").hexdigest()
    for place_ in (tmp_path, wheel):
        monkeypatch.setenv(python.WHERE, str(place_))
        assert python.wheel("1", "numpy.whl", right) == b"numpy"
    with pytest.raises(SystemExit, match="must have the SHA-256"):
        python.wheel("1", "numpy.whl", "0" * 64)
    monkeypatch.setenv(python.WHERE, str(tmp_path / "none"))
    with pytest.raises(SystemExit, match=r"must be numpy\.whl, or its folder"):
        python.wheel("1", "numpy.whl", right)

    monkeypatch.delenv(python.WHERE)
    sent = {"content": b"numpy"}
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda *_, **__: io.BytesIO(sent["content"])
    )
    assert python.wheel("1", "numpy.whl", right) == b"numpy"
    sent["content"] = b"a page of a proxy"
    assert python.wheel("1", "numpy.whl", right) is None

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    assert python.wheel("1", "numpy.whl", right) is None


def test_a_slim_archive_keeps_its_licence():
    new = io.BytesIO()
    names = ["numpy/a.py", "numpy/tests/b.py", "numpy/c.pyi", "n.dist-info/LICENSE.txt"]
    with zipfile.ZipFile(new, "w") as out:
        for name in names:
            out.writestr(name, "")
    kept = python.slim(new.getvalue(), python.DROPPED[python.NUMPY])
    left = zipfile.ZipFile(io.BytesIO(kept)).namelist()
    assert left == ["numpy/a.py", "n.dist-info/LICENSE.txt"]
