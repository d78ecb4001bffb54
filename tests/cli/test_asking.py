"""`tformer translate`, `generate` and `attend`; and mistakes in all that are asked."""

import io
import sys
from unittest.mock import Mock

import pytest

from tformer.generate.translate import translate
from tformer.training.checkpoint import load_checkpoint


def as_input(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def test_translate_writes_what_the_model_writes(tformer, runs):
    checkpoint = load_checkpoint(runs["reverse"] / "model")
    texts = ["abc", "dog", "emu"]
    said = tformer("translate", runs["reverse"], *texts)
    expected = translate(*checkpoint[:2], texts, max_len=17)
    assert said.out.split("\n")[:-1] == expected


def test_the_standard_input_is_read_as_files_are(tformer, monkeypatch):
    marked = b"\xef\xbb\xbfjeudi 3 mai 1979\r\n12 March 2024\n"
    monkeypatch.setattr(sys, "stdin", as_input(marked))
    assert tformer("translate", "dates").out == "1979-05-03\n2024-03-12\n"
    monkeypatch.setattr(sys, "stdin", as_input(b"3 mai 1979\n\xe9\n"))
    said = tformer("translate", "dates")
    assert said.code == 1
    assert "the standard input, line 2: byte 1 (0xe9) is not UTF-8" in said.err


def test_a_date_unlike_the_training_is_said_to_be_so(tformer):
    texts = ["3 mai 1979", "31.2.2020", "3 mai 1850", "the 3rd, May 1979"]
    said = tformer("translate", "dates-as-typed", *texts)
    assert said.out.count("\n") == len(texts)
    assert said.err.splitlines() == [
        "warning: 31.2.2020 is a day that no calendar has",
        "warning: 3 mai 1850 is not in 1900 to 2099, the years of the training",
        "warning: the 3rd, May 1979 is in no form that the model was trained on, "
        "and may be read wrong",
    ]


def test_nothing_is_written_before_all_lines_are_read(tformer, monkeypatch):
    lines = b"3 mai 1979\n" * 3 + b"\n"
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    said = tformer("translate", "dates", "--batch-size", 1)
    assert (said.code, said.out) == (1, "")
    assert "line 4 is empty" in said.err


def test_the_model_of_the_package_writes_dates(tformer, monkeypatch, tmp_path):
    dates = ["jeudi 3 mai 1979", "12 March 2024"]
    assert tformer("translate", "dates", *dates).out == "1979-05-03\n2024-03-12\n"
    monkeypatch.setattr(sys, "stdin", as_input("\n".join(dates).encode()))
    said = tformer("translate", "dates", "--beams", 3, "--batch-size", 1)
    assert said.out == "1979-05-03\n2024-03-12\n"
    (tmp_path / "a.txt").write_text("jeudi 3 mai 1979\r\n")
    assert tformer("translate", "dates", "--file", tmp_path / "a.txt").out == (
        "1979-05-03\n"
    )


def test_each_text_gets_one_line_whatever_the_model_writes(tformer, monkeypatch):
    """Pieces of words can write line ends; line n would not be of text n any more."""
    written = ["a\nb", "c\r\nd", "\re\n"]
    monkeypatch.setattr(
        "tformer.cli.asking.translate_texts", Mock(return_value=written)
    )
    said = tformer("translate", "dates", "1", "2", "3")
    assert said == (0, "a b\nc d\n e \n", "")


def test_generate_goes_on_and_repeats_itself(tformer, runs):
    words = ["generate", runs["gpt"], "--prompt", "To be", "--max-new-tokens", 30]
    texts, again = (
        [tformer(*words, "--seed", seed).out for seed in range(4)] for _ in range(2)
    )
    assert texts == again
    assert len(set(texts)) > 1
    assert all(text.startswith("To be") for text in texts)
    longest = max(texts, key=len)  # one that drew the end token may have nothing more
    assert len("To be") + 1 < len(longest) <= len("To be") + 30 + 1
    several = tformer(*words, "--count", 2)
    assert several.out.startswith("--- 1\nTo be")
    assert "--- 2\n" in several.out
    stop = longest[len("To be")]
    words += ["--seed", texts.index(longest)]
    assert tformer(*words, "--stop", stop).out == f"To be{stop}\n"
    assert tformer("generate", runs["bpe"], "--prompt", "be", "--top-k", 3).code == 0


def test_many_texts_are_written_in_batches(tformer, runs, monkeypatch):
    asked = ["--max-new-tokens", 3, "--prompt", "be", "--count"]
    words = ["generate", runs["gpt"], *asked]
    few = tformer(*words, 3).out
    assert tformer(*words, 3).out == few
    monkeypatch.setattr("tformer.cli.generate.SIDE_BY_SIDE", 3)
    assert tformer(*words, 3).out == few
    several = tformer(*words, 7).out
    assert several.startswith(few)
    assert [f"--- {i}\n" in several for i in range(9)] == [False] + [True] * 7 + [False]


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["reverse", "abc"], "svg"),
        (["reverse", "abc", "--kind", "encoder", "--layer", 1, "--head", 2], "png"),
        (["reverse", "abc", "--kind", "decoder", "--target", "cba"], "pdf"),
        (["gpt", "To be"], "svg"),
        (["bert", "To be"], "svg"),
        (["bpe", "be\n"], "svg"),
    ],
)
def test_attend_draws(tformer, runs, tmp_path, words, ending):
    out = tmp_path / f"maps/drawing.{ending}"
    said = tformer("attend", runs[words[0]], *words[1:], "--out", out)
    assert said == (0, f"{out}\n", "")
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert out.read_bytes().startswith(start)


def test_a_drawing_that_cannot_be_written_leaves_the_old_one(
    tformer, runs, tmp_path, monkeypatch
):
    from matplotlib.figure import Figure

    out = tmp_path / "a.svg"
    assert tformer("attend", runs["gpt"], "be or", "-o", out).code == 0
    before = out.read_bytes()

    def full(_, path, **__):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    said = tformer("attend", runs["gpt"], "be or", "-o", out)
    assert (said.code, out.read_bytes()) == (1, before)
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["translate", "nowhere", "x"], 1, "neither the folder of a run"),
        (["translate", "RUN:gpt", "x"], 1, "is a CausalLM: translate is not for it"),
        (["translate", "dates", "☃"], 1, "line 1: '☃' (U+2603)"),
        (["translate", "dates", ""], 1, "line 1 is empty"),
        (["translate", "dates", "x", "--file", "y"], 2, "texts or --file, not both"),
        (["translate", "dates", "--file", "no.txt"], 1, "no.txt: no such file"),
        (["translate", "dates", "x", "--beams", "0"], 2, "greater than or equal to 1"),
        (["generate", "dates"], 1, "is a Transformer: generate is not for it"),
        (["generate", "RUN:gpt", "--prompt", "☃"], 1, "'☃' (U+2603)"),
        (["generate", "RUN:gpt", "--prompt", ""], 1, "at least one character"),
        (["generate", "RUN:gpt", "--temperature", "0"], 1, "temperature (0.0)"),
        (["generate", "RUN:gpt", "--top-p", "2"], 1, "top_p (2.0)"),
        (["generate", "RUN:gpt", "--stop", "ab"], 1, "--stop 'ab' must be one token"),
        (["evaluate", "RUN:gpt"], 2, "name one file"),
        (["evaluate", "RUN:pairs"], 2, "name two files"),
        (["evaluate", "RUN:bert"], 2, "name one file"),
        (["evaluate", "dates", "--split", "train"], 2, "--split must be one of"),
        (["attend", "dates", "1 May 2000", "--out", "x.txt"], 1, "must end in one of"),
        (
            ["attend", "RUN:gpt", "be", "--kind", "cross"],
            1,
            "that translates",
        ),
        (["attend", "RUN:gpt", "be" * 50], 1, "17"),
        (["info", "nothing"], 1, "nor a task (copy, reverse, sort, addition"),
        (["info", "."], 1, "has no run in it"),
        (["fly"], 2, "No such command 'fly'"),
    ],
)
def test_mistakes_are_named(tformer, runs, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    words = [runs[w[4:]] if w.startswith("RUN:") else w for w in words]
    said = tformer(*words)
    assert message in said.err
    assert said.code == code
