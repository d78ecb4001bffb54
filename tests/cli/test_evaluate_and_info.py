"""`tformer evaluate` and `info`; models that are not finished, or damaged."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from checkpoint_files import seal
from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings


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


def test_an_unfinished_run_is_asked_by_its_newest_checkpoint(tformer, runs, tmp_path):
    run, words = tmp_path / "run", ["--prompt", "To be", "--max-new-tokens", 20]
    shutil.copytree(runs["gpt"], run)
    for file in ("model/model.safetensors", "model/config.json", "result.json"):
        (run / file).unlink()
    newest = f"{run} is not finished: this is its newest checkpoint, step-00000021"
    with pytest.warns(UserWarning, match=newest):
        said = tformer("evaluate", run, runs["text"])
    assert said == tformer("evaluate", runs["gpt"], runs["text"])
    whole = tformer("generate", runs["gpt"], *words)
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
