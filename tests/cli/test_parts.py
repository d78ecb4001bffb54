"""The parts of a language model, named on the command line."""

import json
import shutil

import pytest
import torch

from tformer.data.vocabulary import CharacterVocabulary
from tformer.models.families.custom import PARTS
from tformer.nn.experts import active_parameters
from tformer.runs.folder import RunFolder
from tformer.runs.model import build_model
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint


def test_a_run_with_parts(runs, today):
    model = load_checkpoint(RunFolder(runs["today"]).model).model
    c = model.config
    assert {name: c[name] for name in today} == today
    assert (c["num_heads"], c["d_ff"], c["eps"]) == (2, 14, 1e-5)
    config = json.loads((runs["today"] / "config.json").read_text())
    assert config["model"] == "causal-lm"
    assert config["parts"]["softcap"] == 20.0


def test_info_shows_the_parts(tformer, runs, today):
    said = tformer("info", runs["today"])
    shown = dict(line.split(maxsplit=1) for line in said.out.splitlines()[1:-1])
    assert shown["model"] == "causal-lm"
    for name, value in (today | {"qk_norm": False, "sinks": False}).items():
        assert shown[name.replace("_", "-")] == str(value), name
    others = tformer("info", runs["gpt"]).out
    assert not {name.replace("_", "-") for name in PARTS} & {*others.split()}


@pytest.mark.nightly
def test_a_run_with_experts(tformer, small, runs, tmp_path):
    """Stored, balanced in the training, shown, and the same after a stop."""
    words = [*small(max_len=17, experts=4, shared_experts=1), "--quiet"]
    run, text = tmp_path / "run", runs["text"]
    said = tformer("train", "text", text, *words, "--threads", 1, "-o", run)
    assert said.code == 0, said.err
    model = load_checkpoint(run / "model").model
    assert (model.config["experts"], model.config["shared_experts"]) == (4, 1)
    for block in model.blocks:
        bias = block.feed_forward.router.selection_bias
        steps = bias.abs() / 0.001
        torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-3)
        assert 0 < steps.max() < 22
    whole, active = sum(p.numel() for p in model.parameters()), active_parameters(model)
    assert whole - active == 2 * 2 * 10 * 14  # two experts that a token does not use
    shown = [line.split() for line in tformer("info", run).out.splitlines()]
    for line in (
        *(["experts", "4"], ["shared-experts", "1"], ["parameters", str(whole)]),
        ["active_parameters", str(active)],
    ):
        assert line in shown
    said = tformer("info", run / "model").out
    assert f"{whole:,} parameters, of which a token uses {active:,}\n" in said
    words = ["--prompt", "To be", "--max-new-tokens", 40]
    assert tformer("generate", run, *words).code == 0
    weights = (run / "model/model.safetensors").read_bytes()
    for name in ("result.json", "model/model.safetensors", "model/config.json"):
        (run / name).unlink()
    for path in (run / "checkpoints").glob("*21"):
        shutil.rmtree(path)
    assert [path.name[-2:] for path in (run / "checkpoints").iterdir()] == ["18"]
    said = tformer("train", "--resume", run, "--quiet", "--threads", 1)
    assert said.code == 0, said.err
    assert (run / "model/model.safetensors").read_bytes() == weights


def test_a_run_with_biases_by_distance(tformer, small, runs, tmp_path):
    """Trained, shown, drawn, and further than max_len; T5's table has been learned."""
    words = small(max_len=17, steps=2, warmup_steps=0, positions="t5")
    run = tmp_path / "run"
    said = tformer("train", "text", runs["text"], *words, "--quiet", "-o", run)
    assert said.code == 0, said.err
    assert "positions          t5" in tformer("info", run).out
    model = load_checkpoint(run / "model").model
    assert model.blocks[0].attention.relative.table[:16].any(dim=1).all()
    words = ["--prompt", "To be", "--max-new-tokens", 40]
    assert tformer("generate", run, *words).code == 0
    assert tformer("attend", run, "To be", "-o", tmp_path / "a.svg").code == 0


# Those that the settings know; of other numbers and names `test_custom.py` has more.
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--norm", "batch"], "norm ('batch') must be one of layer, rms"),
        (["--kv-heads", "3"], "num_heads (4) must be divisible by kv_heads (3)"),
        (["--global-every", "2"], "global_every (2) needs a window"),
        (["--logit-cap", "inf"], "logit_cap (inf) must be above 0 and finite"),
        (["--window", "many"], "should be a valid integer"),
    ],
)
def test_bad_combinations(tformer, runs, tmp_path, words, message):
    said = tformer("train", "text", runs["text"], "-o", tmp_path / "run", *words)
    assert message in said.err
    assert said.code == 2
    assert not (tmp_path / "run").exists()


def test_parts_are_of_language_models(tformer, tmp_path):
    said = tformer("train", "copy", "-o", tmp_path / "run", "--norm", "rms")
    assert "norm ('rms') is for model 'causal-lm', which learns a text" in said.err
    said = tformer("train", "copy", "-o", tmp_path / "run", "--model", "causal-lm")
    assert "model ('causal-lm') must be transformer for copy" in said.err
    assert said.code == 2


@pytest.mark.parametrize("part", [{"positions": "none"}, {"qk_norm": False}])
def test_who_names_a_part_gets_a_model_of_parts(part):
    settings = RunSettings.of("text", files=("a",), **part)
    assert settings.model == "causal-lm"
    defaults = {name: part.default for name, part in PARTS.items()}
    assert settings.flat().items() >= (defaults | part).items()
    assert RunSettings.of("text", files=("a",)).model == "gpt"


def test_as_gpt_it_has_the_parts_of_gpt():
    settings = RunSettings.of("text", files=("a",), model="causal-lm")
    letters = CharacterVocabulary("abcdef")
    gpt = build_model(RunSettings.of("text", files=("a",)), letters)
    ours = build_model(settings, letters)
    assert {**ours.config, "d_ff": 512} == gpt.config


def test_an_old_run_still_opens(runs, tmp_path):
    """Older settings had the parts beside the others, and none of those since."""
    for name in ("gpt", "today"):
        settings = RunFolder(runs[name]).settings()
        flat = {**dict.fromkeys(PARTS), "qk_norm": False, "sinks": False}
        old = json.loads(json.dumps({**flat, **settings.flat()}))
        assert RunSettings.from_json(old) == settings
        del old["optimizer"]
        assert RunSettings.from_json(old) == settings
