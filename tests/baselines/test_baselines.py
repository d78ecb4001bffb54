"""The baselines learn, see nothing of the future, and write what a run writes."""

import importlib
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from engine.results import keep, kept_results
from small_run import small_text_settings, train_here
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS

HERE = Path(__file__).parent
SMALL = {"d_model": 12, "num_heads": 2, "num_layers": 1, "d_ff": 20}
SETS = {"examples": 200, "evaluate_examples": 5, "test_examples": 7}
SETS |= {"evaluate_every": 3, "d_model": 12, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def script(monkeypatch):
    """Import a script of this folder by its name."""
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module
    for name in ("models", "train", "rules", "nanogpt", "step_times"):
        sys.modules.pop(name, None)


def kept(run, tmp_path):
    """What the page would keep of a run, and the names of the files."""
    keep(tmp_path, [run])
    return kept_results(tmp_path)[0]


@pytest.mark.parametrize("name", ["nn.Transformer", "gru"])
class TestModels:
    def test_it_is_as_large_as_ours(self, script, name):
        settings = RunSettings.of("dates")
        vocab_size = len(TASKS["dates"].vocabulary())
        make = script("models").BASELINES[name]
        model = make(settings, vocab_size=vocab_size, pad_id=0)
        size = sum(p.numel() for p in model.parameters())
        assert size == pytest.approx(250_816, rel=0.001)  # that of docs/results
        assert (size == 250_816) == (name == "nn.Transformer")

    def test_the_future_and_padding_are_hidden_and_the_source_is_not(
        self, script, name
    ):
        torch.manual_seed(3)
        settings = RunSettings.of("dates", **SMALL)
        make = script("models").BASELINES[name]
        model = make(settings, vocab_size=29, pad_id=0).eval().double()
        src, tgt = torch.randint(3, 29, (2, 7)), torch.randint(3, 29, (2, 5))
        before = model(src, tgt)
        longer = torch.cat((src, torch.zeros(2, 3, dtype=torch.long)), dim=1)
        torch.testing.assert_close(model(longer, tgt), before)
        tgt[:, 3] = (tgt[:, 3] - 3 + 11) % 26 + 3
        after = model(src, tgt)
        torch.testing.assert_close(after[:, :3], before[:, :3])
        assert (after[:, 3:] - before[:, 3:]).abs().amax() > 1e-6
        src[:, 6] = (src[:, 6] - 3 + 11) % 26 + 3
        assert ((model(src, tgt) - after).abs().amax((1, 2)) > 1e-9).all()

    def test_it_learns_and_is_kept_like_a_run(self, script, name, tmp_path):
        run = tmp_path / "run"
        sets = [w for name, x in SETS.items() for w in (f"--{name}", str(x))]
        small = ["--steps", "6", "--warmup-steps", "2", "--seed", "4", "--count", "3"]
        script("train").main([name, *small, *sets, "--out", str(run)])
        found = kept(run, tmp_path)
        assert found["result"]["baseline"] == name
        assert found["settings"]["seed"] == 4
        assert set(found["evaluations"]) == {"new-years", "new-formats", "long-texts"}
        assert [look["step"] for look in found["looks"]] == [3, 6]
        lines = (run / "metrics.jsonl").read_text().splitlines()
        losses = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
        assert losses[-1] < losses[0]


def test_dateutil_reads_english_and_copying_reads_nothing(script, tmp_path):
    rules = script("rules")
    assert rules.dateutil("Thursday, May 3, 1979") == "1979-05-03"
    assert rules.dateutil("jeudi 3 mai 1979") == ""
    rules.main(["dateutil", "--count", "300", "--out", str(tmp_path / "a")])
    told = kept(tmp_path / "a", tmp_path)["result"]["test_by_locale"]
    assert all(told[name][0] == told[name][1] > 0 for name in ("en_US", "en_GB"))
    assert told["zh"][0] == 0 < told["zh"][1]
    assert sum(asked for _, asked in told.values()) == 300
    words = ["copy-source", "--task", "copy", "--count", "9"]
    rules.main([*words, "--out", str(tmp_path / "b")])
    result = json.loads((tmp_path / "b/result.json").read_text())
    assert result["test_exact_match"] == 1


def test_copying_a_translation_is_measured_by_bleu(script, tmp_path):
    (tmp_path / "a").write_text("a b c d e\nf g h i j\n")
    (tmp_path / "b").write_text("a b c d e\nv w x y z\n")
    files = [str(tmp_path / name) for name in "ab"]
    out = str(tmp_path / "run")
    script("rules").main(["copy-source", "--files", *files, "--out", out])
    (each,) = kept(tmp_path / "run", tmp_path)["evaluations"].values()
    assert each["result"]["bleu"] == pytest.approx(50, abs=5)
    assert each["asked"]["files"] == ["a", "b"]


class TestNanoGPT:
    def test_the_learning_rate_is_the_recipes(self, script):
        rate = script("nanogpt").learning_rate
        assert rate(0, 2000) == pytest.approx(1e-3 / 101)
        assert rate(100, 2000) == pytest.approx(1e-3)
        assert rate(1050, 2000) == pytest.approx((1e-3 + 1e-4) / 2)
        assert rate(2000, 2000) == pytest.approx(1e-4)

    def test_it_trains_measures_and_is_kept(self, script, tmp_path, monkeypatch):
        nanogpt = script("nanogpt")
        monkeypatch.setattr(nanogpt, "EVAL_BATCHES", 5)
        text = tmp_path / "text.txt"
        text.write_text("to be, or not to be, that is the question\n" * 40)
        run = str(tmp_path / "run")
        nanogpt.main(["train", str(text), "--steps", "5", "--seed", "2", "--out", run])
        found = kept(tmp_path / "run", tmp_path)
        draws = found["evaluations"]["nanogpt-estimate"]["result"]["losses"]
        assert len(draws) == 10 == len(set(draws))
        # The draws stray around the loss of the whole text.
        assert sum(draws) / 10 == pytest.approx(found["result"]["test_loss"], abs=0.1)
        assert found["result"]["test_loss"] < math.log(18) + 0.2
        assert found["training"]["tokens"] == 5 * 12 * 64
        # It saves nothing; with fewer a long run would look as if that were gone.
        assert found["settings"]["save_every"] == 5

    def test_our_runs_are_measured_alike(self, script, tmp_path):
        from tformer.runs.folder import RunFolder
        from tformer.runs.run import Run

        text = tmp_path / "text.txt"
        text.write_text("to be, or not to be, that is the question\n" * 60)
        settings = RunSettings.of(
            "text", files=(str(text),), steps=4, d_model=16, num_layers=1
        )
        run = tmp_path / "run"
        result = Run(RunFolder.create(run, settings), progress=False).train()
        script("nanogpt").main(["estimate", str(text), str(run)])
        kept = json.loads((run / "evaluations/nanogpt-estimate.json").read_text())
        draws = kept["result"]["losses"]
        assert sum(draws) / 10 == pytest.approx(result["test_loss"], abs=0.1)


def test_the_times_of_steps_are_kept_in_the_runs(script, tmp_path):
    """In turn; the first run's is the unit, and a wider model takes longer."""
    made = []
    for width in (12, 132):
        settings = small_text_settings(tmp_path, norm="rms", d_model=width)
        made.append(tmp_path / f"run-{width}")
        train_here(made[-1], settings)
    words = [*map(str, made), "--rounds", "3", "--steps", "2"]
    script("step_times").main(words)
    keep(tmp_path, made)
    narrow, wide = (
        k["evaluations"]["step-time"]
        for k in sorted(kept_results(tmp_path), key=lambda k: k["settings"]["d_model"])
    )
    assert narrow["asked"] == {"rounds": 3, "steps": 2}
    assert narrow["result"]["ratio"] == 1 < wide["result"]["ratio"]
    assert 0 < narrow["result"]["seconds"] < wide["result"]["seconds"] < 5
