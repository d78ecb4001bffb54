"""The door of the command line: a sentence and an exit code, whatever goes wrong."""

import os
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tformer import __version__
from tformer.cli import main
from tformer.cli.errors import explained

STREAMS = ("stdin", "stdout", "stderr")
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="closes streams as Unix does")


@pytest.fixture
def forked(tmp_path, monkeypatch):
    """Run a command in a child, whose streams are closed or lead to some file."""

    def child(run, closed: str, places: list[str]) -> int:
        for number, name in enumerate(STREAMS):
            os.dup2(os.open(places[number], os.O_RDWR | os.O_CREAT), number)
            mode = "w" if number else "r"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        for number in map(int, closed):
            os.close(number)
            setattr(sys, STREAMS[number], None)
        try:
            run()
        except SystemExit as ended:
            return ended.code or 0
        return 0

    def call(words: str, closed: str = "", *, run=main, out="out", err="err"):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["tformer", *words.split(" ", 3)])
        number = os.fork()
        if not number:
            code = 99
            try:
                code = child(run, closed, [os.devnull, out, err])
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        printed = (
            Path(x).read_bytes() if Path(x).is_file() else b"" for x in (out, err)
        )
        return code, *printed

    return call


@unix
@pytest.mark.parametrize(
    ("words", "closed", "code", "said"),
    [
        ("translate dates", "0", 1, b"error: the standard input is closed"),
        ("translate dates 3 mai 1979", "1", 1, b"error: the standard output is closed"),
        ("translate dates x", "12", 1, b""),
        ("translate dates 3 mai 1979", "02", 0, b""),
        ("--nothing", "2", 2, b""),
        ("info", "012", 1, b""),
    ],
)
def test_closed_streams(forked, words, closed, code, said):
    """Output that is lost is not success."""
    found, _, err = forked(words, closed)
    assert found == code
    assert err.startswith(said)
    assert err.count(b"\n") == bool(said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_full_disks_behind_the_streams(forked):
    said = (1, b"", b"error: No space left on device\n")
    assert forked("info", out="/dev/full") == said
    assert forked("info nothing", err="/dev/full")[0] == 1


@unix
def test_no_file_gets_the_number_of_a_closed_stream(forked):
    """Else what others print, such as torch's own warnings, would land in it."""

    def run():
        with explained(), open("new", "w") as file:
            os.write(2, b"lost")
            file.write(f"{file.fileno() > 2}")

    forked("", "02", run=run)
    assert Path("new").read_text() == "True"


def test_the_version_is_told(tformer):
    said = tformer("--version")
    assert (said.code, said.out) == (0, f"tformer {__version__}\n")


class Panic(BaseException):
    """As an error of Rust, it is no `Exception`."""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("at\nlast"), 1, "internal: ZeroDivisionError: at. This is"),
        (Panic("what"), 1, "internal: Panic: what. This is a mistake of tformer's"),
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
        ["train", "copy", "-o", "RUN", "--batch-size", 2**31],
        ["train", "text", "BOOK", "-o", "RUN", "--vocab-size", 10**12],
        ["translate", "dates", "x", "--beams", "2", "--length-penalty", 1000],
        ["translate", "dates", "x", "--beams", 10**20],
        ["generate", "GPT", "--count", 10**20],
        ["generate", "GPT", "--top-k", -1],
    ],
)
def test_sizes_beyond_all_measure_are_wrong_usage(tformer, runs, tmp_path, words):
    places = {"RUN": tmp_path / "run", "GPT": runs["gpt"], "BOOK": runs["text"]}
    said = tformer(*[places.get(word, word) for word in words])
    assert said.code == 2
    assert str(words[-1]) in said.err or "equal to" in said.err
    assert not list(tmp_path.iterdir())


MEMORY = "error: there is not enough memory: "


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 2**31 - 2}, MEMORY),
        ({"d_model": 2**31 - 2, "d_ff": 2**31 - 2}, MEMORY),
        (
            {"vocabulary": "bpe", "vocab_size": 2**31 - 1, "max_len": 5},
            "error: vocab_size (2147483647) must be at most 1048576",
        ),
    ],
)
def test_more_than_there_could_be(tformer, small, runs, tmp_path, changes, message):
    task = ["text", runs["text"]] if "vocabulary" in changes else ["copy"]
    said = tformer("train", *task, *small(**changes), "-o", tmp_path / "run")
    assert said.code == 1
    assert said.err.startswith(message)
    assert not list(tmp_path.iterdir())
