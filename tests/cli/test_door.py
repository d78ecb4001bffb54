"""The door of the command line: a sentence and an exit code, whatever goes wrong."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file, save_file

import tformer as package
from checkpoint_files import seal
from tformer.cli import main

ROOT = Path(package.__file__).parents[1]


def shell(command: str, **environment: str) -> tuple[int, str, str]:
    """Run `tformer …` as a shell does, in a process of its own."""
    process = subprocess.run(
        command.replace("tformer", f"{sys.executable} -m tformer"),
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", **environment},
        cwd=ROOT,
    )
    assert "Traceback" not in process.stdout + process.stderr
    return process.returncode, process.stdout, process.stderr


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a Unix shell does")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("tformer translate dates <&-", 1, "error: the standard input is closed"),
        ("tformer translate dates '3 mai 1979' >&-", 1, "error: the standard output"),
        ("tformer translate dates x >&- 2>&-", 1, ""),
        ("tformer translate dates '3 mai 1979' <&- 2>&-", 0, ""),
        ("tformer --nothing 2>&-", 2, ""),
        ("tformer info <&- >&- 2>&-", 1, ""),
    ],
)
def test_closed_streams(command, code, said):
    """Output that is lost is not success."""
    found, _, err = shell(command)
    assert found == code
    assert err.startswith(said)
    assert err.count("\n") == bool(said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_full_disks_behind_the_streams():
    code, _, err = shell("tformer info > /dev/full")
    assert (code, err) == (1, "error: No space left on device\n")
    assert shell("tformer info nothing 2> /dev/full")[0] == 1


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a Unix shell does")
def test_no_file_gets_the_number_of_a_closed_stream(tmp_path):
    """Else what others print, such as torch's own warnings, would land in it."""
    code = """
import os, sys
from tformer.cli.errors import explained
with explained():
    file = open(sys.argv[1], "w")
    os.write(2, b"lost")
    file.write(f"{file.fileno() > 2}")
"""
    (tmp_path / "code.py").write_text(code)
    command = f"{sys.executable} code.py out <&- 2>&-"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment)
    assert (tmp_path / "out").read_text() == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_a_name_that_is_no_unicode_goes_out_as_it_came(tmp_path):
    out = os.fsencode(tmp_path) + b"/\xe9.svg"
    process = subprocess.run(
        [sys.executable, "-m", "tformer", "attend", "dates", "1 May 2000", "-o", out],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},  # as in most languages
        cwd=ROOT,
    )
    assert (process.returncode, process.stdout) == (0, out + b"\n"), process.stderr
    assert os.path.exists(out)


def test_without_docstrings_all_still_works():
    code, out, _ = shell("tformer train --help", PYTHONOPTIMIZE="2")
    assert code == 0
    assert "--warmup-steps" in out
    code, out, _ = shell("tformer translate dates '3 mai 1979'", PYTHONOPTIMIZE="2")
    assert (code, out) == (0, "1979-05-03\n")


class Panic(BaseException):
    """As an error of Rust, it is no `Exception`."""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("at\nlast"), 1, "internal: ZeroDivisionError: at. This is"),
        (Panic("what"), 1, "internal: Panic: what. This is a mistake of tformer's"),
        (RecursionError("deep"), 1, "internal: RecursionError: deep"),
        (MemoryError("all\nof it"), 1, "there is not enough memory: all\n"),
        (
            RuntimeError("Storage size calculation overflowed with sizes=[9]"),
            1,
            "there is not enough memory: Storage size",
        ),
        (OSError(28, "No space left", "a.svg"), 1, "a.svg: No space left\n"),
        (FileNotFoundError("a.txt: no such file"), 1, "a.txt: no such file\n"),
        (ValueError("x (1) must be 2"), 1, "x (1) must be 2\n"),
        (KeyboardInterrupt(), 130, None),
        (SystemExit(7), 7, None),
    ],
)
def test_every_error_is_a_sentence_and_a_code(tformer, monkeypatch, error, code, said):
    monkeypatch.setattr("tformer.cli.app.app", Mock(side_effect=error))
    found = tformer("info")
    assert found.code == code
    if said:
        assert found.err.startswith(f"error: {said}")
        assert found.err.count("\n") == 1
        assert ("TFORMER_TRACEBACK=1" in found.err) == ("internal" in said)


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), Panic("x"), ValueError("x")])
def test_the_traceback_can_be_asked_for(monkeypatch, error):
    monkeypatch.setattr("tformer.cli.app.app", Mock(side_effect=error))
    monkeypatch.setenv("TFORMER_TRACEBACK", "1")
    with pytest.raises(type(error)):
        main()


@pytest.mark.parametrize(
    "words",
    [
        ["train", "copy", "-o", "RUN", "--d-model", 10**18],
        ["train", "copy", "-o", "RUN", "--max-len", 10**22],
        ["train", "copy", "-o", "RUN", "--batch-size", 2**31],
        ["train", "text", "BOOK", "-o", "RUN", "--vocab-size", 10**12],
        ["translate", "dates", "x", "--beams", "2", "--length-penalty", 1000],
        ["translate", "dates", "x", "--max-len", 10**20],
        ["translate", "dates", "x", "--beams", 10**20],
        ["evaluate", "dates", "--count", 10**20],
        ["generate", "GPT", "--count", 10**20],
        ["generate", "GPT", "--max-new-tokens", 10**20],
        ["generate", "GPT", "--top-k", -1],
    ],
)
def test_sizes_beyond_all_measure_are_wrong_usage(tformer, runs, tmp_path, words):
    places = {"RUN": tmp_path / "run", "GPT": runs["gpt"], "BOOK": runs["text"]}
    said = tformer(*[places.get(word, word) for word in words])
    assert said.code == 2
    assert str(words[-1]) in said.err or "equal to" in said.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["d-model", "d-ff", "num-heads"])
def test_more_than_all_memory_is_a_sentence(tformer, small, tmp_path, option):
    changes = {option.replace("-", "_"): 2**31 - 2} | {"d_model": 2**31 - 2}
    said = tformer("train", "copy", *small(**changes), "-o", tmp_path / "run")
    assert said.code == 1
    assert said.err.startswith("error: there is not enough memory: ")
    assert not list(tmp_path.iterdir())


def test_more_pieces_than_there_could_be(tformer, small, runs, tmp_path):
    words = small(vocabulary="bpe", vocab_size=2**31 - 1, max_len=5)
    said = tformer("train", "text", runs["text"], *words, "-o", tmp_path / "run")
    assert said.code == 1
    assert "vocab_size (2147483647) must be at most 1048576" in said.err
    assert not list(tmp_path.iterdir())


def test_many_texts_are_written_in_batches(tformer, runs, monkeypatch):
    words = [
        "generate",
        runs["gpt"],
        "--max-new-tokens",
        3,
        "--prompt",
        "be",
        "--count",
    ]
    few = tformer(*words, 3).out
    assert tformer(*words, 3).out == few
    monkeypatch.setattr("tformer.cli.asking.SIDE_BY_SIDE", 3)
    assert tformer(*words, 3).out == few
    several = tformer(*words, 7).out
    assert several.startswith(few)
    assert [f"--- {i}\n" in several for i in range(9)] == [False] + [True] * 7 + [False]


@pytest.fixture
def damaged(runs, tmp_path):
    """A copy of a run, with a NaN among the weights of its model."""

    def damage(name: str) -> Path:
        run = tmp_path / name
        shutil.copytree(runs[name], run)
        weights = run / "model/model.safetensors"
        tensors = load_file(weights)
        first = sorted(name for name in tensors if name.endswith("linear1.weight"))[0]
        tensors[first][1, 2] = torch.nan
        save_file(tensors, weights)
        seal(run / "model")
        return run

    return damage


@pytest.mark.parametrize("name", ["reverse", "gpt", "bert"])
def test_evaluate_stays_json_where_numbers_are_none(tformer, runs, damaged, name):
    words = [] if name == "reverse" else [runs["text"]]
    said = tformer("evaluate", damaged(name), *words, "--json")

    def no_json(constant):
        raise AssertionError(constant)

    values = json.loads(said.out, parse_constant=no_json)
    assert (said.code, values["loss"], values["perplexity"]) == (0, None, None)
    none = [word for word, value in values.items() if value is None]
    assert none == ["exact_match"] * (name == "reverse") + ["loss", "perplexity"] + (
        ["bits_per_byte"] * (name == "gpt")
    )
    assert said.err.startswith(f"warning: {' and '.join(none)} not finite")
    assert "linear1.weight holds NaN or inf" in said.err
    good = tformer("evaluate", runs[name], *words, "--json")
    assert json.loads(good.out)["loss"] > 0
    assert "warning" not in good.err


def test_a_model_with_nan_writes_nothing(tformer, damaged, tmp_path):
    out = tmp_path / "drawing.svg"
    for words in (
        ["translate", damaged("reverse"), "abc"],
        ["generate", damaged("gpt")],
        ["attend", damaged("bert"), "be", "-o", out],
    ):
        said = tformer(*words)
        assert (said.code, said.out) == (1, "")
        assert f"{words[1]} is damaged: " in said.err
        assert "linear1.weight holds numbers as NaN or inf" in said.err
    assert not out.exists()
