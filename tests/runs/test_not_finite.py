"""Weights that are not numbers any more are never kept."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file

from small_run import begin_or_resume, small_settings, small_text_settings, train_here
from tformer.runs.metrics import read_metrics
from tformer.training.evaluation import MeanLoss


def poison(run, step: int, value: float) -> None:
    """Let a step spoil a weight."""

    def spoil(report):
        if report.step == step:
            with torch.no_grad():
                next(run.model.parameters())[-1] = value

    run.callback = spoil


def test_no_checkpoint_is_made_of_them(tmp_path):
    path, settings = tmp_path / "run", small_settings(steps=12, keep=1)
    run = begin_or_resume(path, settings)
    poison(run, 9, -math.inf)
    with pytest.raises(
        FloatingPointError,
        match=r"after step 9: the parameter .*q_proj\.weight is not finite, and no",
    ):
        run.train()
    (state,) = (path / "checkpoints").iterdir()  # the only one, and whole
    assert state.name == "step-00000006"
    tensors = load_file(state / "training.safetensors")
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    assert train_here(path, settings)["steps"] == 12


@pytest.mark.parametrize("model", ["gpt", "bert"])
def test_nor_a_model_after_the_last_step(tmp_path, model):
    settings = small_text_settings(tmp_path, model=model, steps=1, warmup_steps=0)
    run = begin_or_resume(tmp_path / "run", settings)

    def spoil(_):
        with torch.no_grad():
            for parameter in run.model.parameters():
                parameter.mul_(math.nan)

    run.callback = spoil
    with pytest.raises(
        FloatingPointError, match=r"after step 1: the validation loss is nan\. A lower"
    ):
        run.train()
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert not names & {"model", "result.json", "checkpoints"}
    assert read_metrics(tmp_path / "run/metrics.jsonl")[-1]["step"] == 1


def test_an_evaluation_that_cannot_be_names_its_step(tmp_path, monkeypatch):
    run = begin_or_resume(tmp_path / "run", small_settings())
    monkeypatch.setattr("tformer.runs.metrics.mean_loss", lambda *_: MeanLoss(1.0, 3))
    poison(run, 7, math.nan)
    with pytest.raises(
        FloatingPointError, match="after step 7: the model's scores of the next token"
    ):
        run.train()


def test_a_result_is_json_where_a_number_is_none(tmp_path, monkeypatch):
    scores = {"test_loss": math.nan, "test_tokens": 3}
    monkeypatch.setattr("tformer.runs.run.test_scores", lambda *_: scores)
    train_here(tmp_path / "run", small_settings(steps=6))
    text = (tmp_path / "run/result.json").read_text()
    assert '"test_loss": null' in text
    assert "NaN" not in text
    assert json.loads(text)["test_tokens"] == 3
