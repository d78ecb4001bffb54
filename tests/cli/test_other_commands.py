"""`tformer evaluate`, `translate`, `generate`, `attend` and `info`."""

import io
import json
import shutil
import sys
from unittest.mock import Mock

import pytest

from tformer.generate.translate import translate
from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint


def test_translate_writes_what_the_model_writes(tformer, runs):
    checkpoint = load_checkpoint(runs["reverse"] / "model")
    texts = ["abc", "dog", "emu"]
    said = tformer("translate", runs["reverse"], *texts)
    expected = translate(*checkpoint[:2], texts, max_len=17)
    assert said.out.split("\n")[:-1] == expected


def as_input(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def test_the_standard_input_is_read_as_files_are(tformer, monkeypatch):
    marked = b"\xef\xbb\xbfjeudi 3 mai 1979\r\n12 March 2024\n"
    monkeypatch.setattr(sys, "stdin", as_input(marked))
    assert tformer("translate", "dates").out == "1979-05-03\n2024-03-12\n"
    monkeypatch.setattr(sys, "stdin", as_input(b"3 mai 1979\n\xe9\n"))
    said = tformer("translate", "dates")
    assert said.code == 1
    assert "the standard input, line 2: byte 1 (0xe9) is not UTF-8" in said.err


def test_nothing_is_written_before_all_lines_are_read(tformer, monkeypatch):
    lines = b"3 mai 1979\n" * 3 + b"\n"
    monkeypatch.setattr(sys, "stdin", as_input(lines))
    said = tformer("translate", "dates", "--batch-size", 1)
    assert (said.code, said.out) == (1, "")
    assert "line 4 is empty" in said.err


def test_an_unknown_character_is_named_with_its_line(tformer, runs, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("to be or not to be\n" * 5000 + "thé end\n", encoding="utf-8")
    said = tformer("evaluate", runs["gpt"], path)
    assert said.code == 1
    assert f"{path}, line 5001: 'é' (U+00E9) in 'thé end' is not among" in said.err
    said = tformer("generate", runs["gpt"], "--prompt", "be " * 5000 + "é")
    assert said.err.startswith("error: --prompt: 'é' (U+00E9) in ")
    assert len(said.err) < 300


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["RUN:gpt", "FILE", "--beams", "4"], "--beams"),
        (["RUN:gpt", "FILE", "--length-penalty", "1"], "--length-penalty"),
        (["RUN:gpt", "FILE", "--split", "test"], "--split"),
        (["RUN:bert", "FILE", "--count", "3"], "--count"),
        (["dates", "FILE", "FILE", "--split", "test"], "--split"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    tformer, runs, tmp_path, words, option
):
    path = tmp_path / "a.txt"
    path.write_text("to be or not to be\n")
    words = [runs[w[4:]] if w.startswith("RUN:") else w for w in words]
    said = tformer("evaluate", *[path if word == "FILE" else word for word in words])
    assert said.code == 2
    assert f"{option} is for" in said.err


def test_a_model_without_its_manifest_is_named(tformer, runs, tmp_path):
    weights = tmp_path / "a.safetensors"
    weights.write_bytes((runs["reverse"] / "model/model.safetensors").read_bytes())
    said = tformer("info", weights)
    assert said.code == 1
    assert "a.json: no such file" in said.err


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


def test_evaluate_a_task_gives_the_numbers_of_the_run(tformer, runs):
    said = tformer("evaluate", runs["reverse"], "--count", 13, "--json")
    ours = json.loads(said.out)
    result = json.loads((runs["reverse"] / "result.json").read_text())
    assert ours["exact_match"] == result["test_exact_match"]
    assert ours["loss"] == pytest.approx(result["test_loss"], rel=1e-5)


def test_evaluate_a_text_gives_bits_per_byte(tformer, runs):
    said = tformer("evaluate", runs["gpt"], runs["text"])
    values = dict(line.split() for line in said.out.splitlines())
    assert 0 < float(values["bits_per_byte"]) < 8
    bits = float(values["loss"]) / 0.6931471805599453  # a token is a byte here
    assert float(values["bits_per_byte"]) == pytest.approx(bits, rel=1e-4)


def test_evaluate_a_bert_hides_tokens_of_a_text(tformer, runs):
    one, two = (tformer("evaluate", runs["bert"], runs["text"]) for _ in range(2))
    assert one == two
    values = dict(line.split() for line in one.out.splitlines())
    assert 0 < int(values["hidden_tokens"]) < 0.3 * runs["text"].stat().st_size
    assert 0 < float(values["loss"]) < 5


def test_evaluate_pairs_prints_bleu_with_its_signature(tformer, runs):
    said = tformer("evaluate", runs["pairs"], runs["sources"], runs["targets"])
    assert "exact_match " in said.out
    assert "bleu " in said.out
    assert "signature nrefs:1|case:mixed|eff:no|tok:13a" in said.out


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


def test_info_tells_tasks_runs_and_models(tformer, runs):
    said = tformer("info").out
    assert "number-words" in said
    assert "your own text file" in said
    assert "learning-rate" in tformer("info", "copy").out
    of_run = tformer("info", runs["reverse"]).out
    assert "steps made: 21 of 21" in of_run
    assert "test_exact_match" in of_run
    assert "a Transformer of" in tformer("info", "dates").out
    assert "a CausalLM of" in tformer("info", runs["gpt"] / "model").out


def test_info_tells_the_memory_of_the_cache(tformer, runs):
    """2 · layers · kv heads · head_dim · length · bytes, of a run and of its model."""

    def told(what) -> list[str]:
        lines = tformer("info", what).out.splitlines()
        return [line[20:].strip() for line in lines if line.startswith("  cache ")]

    gpt = 2 * 1 * 2 * 5 * 4  # a layer, two heads of width 5, four bytes a number
    each = f"(float32); a further token takes {gpt}"
    line = f"{17 * gpt:,} bytes for 17 tokens {each}"
    assert told(runs["gpt"]) == told(runs["gpt"] / "model") == [line]
    today = 2 * 1 * 1 * 4 * 4
    line = f"{12 * today:,} bytes for 17 tokens (float32); a further token takes 0"
    assert told(runs["today"]) == [line]  # its window is 6: there is room for 12
    line = f"{82 * gpt:,} bytes for a source and a target of 41 tokens each {each}"
    assert told(runs["pairs"]) == [line]
    assert told(runs["bert"]) == []


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
        (["attend", "dates", "1 May 2000", "--layer", "3"], 1, "layer (3) must be in"),
        (["attend", "dates", "1 May 2000", "--kind", "odd"], 1, "kind ('odd') must be"),
        (["attend", "RUN:gpt", "be", "--kind", "cross"], 1, "left out for this model"),
        (["attend", "RUN:gpt", "be", "--target", "x"], 1, "that translates"),
        (["attend", "RUN:gpt", "be" * 50], 1, "has more than 17 tokens"),
        (["attend", "dates", ""], 1, "the text is empty"),
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


def test_an_unfinished_run_is_asked_by_its_newest_checkpoint(tformer, runs, tmp_path):
    run, words = tmp_path / "run", ["--prompt", "To be", "--max-new-tokens", 20]
    for name in ("gpt", "bert"):
        shutil.copytree(runs[name], run)
        for file in ("model/model.safetensors", "model/config.json", "result.json"):
            (run / file).unlink()
        newest = f"{run} is not finished: this is its newest checkpoint, step-00000021"
        with pytest.warns(UserWarning, match=newest):
            said = tformer("evaluate", run, runs["text"])
        assert said.code == 0
        assert said.out == tformer("evaluate", runs[name], runs["text"]).out
        if name == "gpt":
            whole = tformer("generate", runs[name], *words)
            with pytest.warns(UserWarning, match="newest checkpoint"):
                assert tformer("generate", run, *words).out == whole.out
        assert "not finished" in tformer("info", run).out
        with pytest.warns(UserWarning, match="newest checkpoint"):
            said = tformer("evaluate", run, runs["text"], "--save", "early")
        assert (said.code, "is not finished: --save is for" in said.err) == (1, True)
        shutil.rmtree(run)
    RunFolder.create(run, RunSettings.of("copy")).unlock()
    said = tformer("translate", run, "abc")
    assert (said.code, said.out) == (1, "")
    assert "is not finished, and has no checkpoint: go on with" in said.err


def test_help_teaches(tformer):
    said = tformer("--help")
    for command in ("train", "evaluate", "translate", "generate", "attend", "info"):
        assert command in said.out
        example = tformer(command, "--help").out
        assert f"tformer {command}" in example
    assert "Exit codes" in said.out


def test_a_pickle_is_not_opened(tformer, tmp_path):
    """A file that would run code, if it were unpickled, under a model's name."""
    bad = tmp_path / "model.safetensors"
    bad.write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path).encode() + b"/ran'\ntR.")
    for name in ("model.json", "config.json"):
        (tmp_path / name).write_bytes(bad.read_bytes())
    for name in (bad, tmp_path):
        assert tformer("info", name).code == 1
    assert not (tmp_path / "ran").exists()


def test_without_its_packages_it_says_what_to_install(tformer, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    said = tformer("--help")
    assert said.code == 1
    assert (
        said.err
        == "error: this needs the package typer: pip install 'tformer[train]'\n"
    )


def test_each_text_gets_one_line_whatever_the_model_writes(tformer, monkeypatch):
    """Pieces of words can write line ends; line n would not be of text n any more."""
    written = ["a\nb", "c\r\nd", "\re\n"]
    monkeypatch.setattr(
        "tformer.cli.asking.translate_texts", Mock(return_value=written)
    )
    said = tformer("translate", "dates", "1", "2", "3")
    assert said == (0, "a b\nc d\n e \n", "")
