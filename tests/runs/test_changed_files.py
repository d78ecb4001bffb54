"""Every file that a run goes on from has a hash, and is held to it."""

import json
import shutil
import warnings
from pathlib import Path

import pytest
import torch

from small_run import (
    SHORT,
    begin_or_resume,
    small_pairs_settings,
    small_text_settings,
    stop_after,
    train_here,
)
from tformer.models.causal_lm import CausalLM
from tformer.models.families import custom
from tformer.runs.checkpoints import load_state, save_state
from tformer.runs.folder import RunError
from tformer.training.optimizer import adamw


def make(seed: int = 0) -> tuple[CausalLM, torch.optim.AdamW]:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 11, "d_model": 6, "num_heads": 3, "num_layers": 1}
    model = custom.build(sizes)
    return model, adamw(model)


def flip(path: Path, place: int) -> None:
    """Change a bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


@pytest.fixture(params=["whole", "sharded"])
def saved(request, tmp_path) -> Path:
    """Two checkpoints of each kind; the path is that of the newer."""
    sharded = request.param == "sharded"
    for step in (3, 6):
        save_state(
            tmp_path / "checkpoints",
            step,
            *make(),
            facts={"scaler": {"scale": 65536.0}},
            keep=2,
            sharded=sharded,
        )
    return tmp_path / "checkpoints/step-00000006"


def tensors_of(state: Path) -> Path:
    (path,) = state.rglob("*.safetensors")
    return path


def refused(state: Path, message: str) -> None:
    model, optimizer = make(seed=1)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(RunError, match=rf"step-00000006 .*{message}.*step-00000003"):
        load_state(state, model, optimizer)
    assert all(map(torch.equal, model.parameters(), before))


class TestCheckpoint:
    def test_as_it_was_saved_it_is_loaded(self, saved):
        model, optimizer = make(seed=1)
        with warnings.catch_warnings(action="error"):
            facts = load_state(saved, model, optimizer)
        assert (facts["step"], facts["scaler"]) == (6, {"scale": 65536.0})
        assert all(map(torch.equal, model.parameters(), make()[0].parameters()))

    @pytest.mark.parametrize("place", [9, -1, -5000])
    def test_a_bit_of_the_tensors(self, saved, place):
        flip(tensors_of(saved), place)
        refused(saved, "is truncated or changed")

    def test_a_file_is_missing(self, saved):
        tensors_of(saved).unlink()
        refused(saved, "safetensors is missing")

    def test_of_an_unknown_format(self, saved):
        (saved / "state.json").write_text('{"format": "another"}')
        refused(saved, "format .'another'. must be 'tformer training state")

    def test_a_file_too_many(self, saved):
        (saved / "shards").mkdir(exist_ok=True)
        shutil.copy(tensors_of(saved), saved / "shards/other.safetensors")
        refused(saved, "other.safetensors is not of this checkpoint")

    @pytest.mark.parametrize(
        ("old", "new"),
        [("65536", "65537"), ('"step": 6', '"step": 7'), ('"sha256":', '"sha257":')],
    )
    def test_a_letter_of_the_facts(self, saved, old, new):
        path = saved / "state.json"
        path.write_text(path.read_text().replace(old, new))
        refused(saved, "state.json was changed")

    def test_the_hash_of_the_facts(self, saved):
        path = saved / "state.json"
        values = json.loads(path.read_text())
        path.write_text(
            json.dumps({n: x for n, x in values.items() if "rest" not in n})
        )
        refused(saved, "state.json was changed")

    def test_brackets_in_brackets(self, saved):
        (saved / "state.json").write_text("[" * 200_000)
        refused(saved, "is not JSON")

    def test_under_the_name_of_another_step(self, saved):
        other = saved.rename(saved.with_name("step-00000009"))
        with pytest.raises(RunError, match=r"state.json is of step 6\. Remove it"):
            load_state(other, *make())


class TestOldCheckpoint:
    """Version 1 had a hash of the one file, or none of shards."""

    def make_old(self, saved: Path) -> None:
        path = saved / "state.json"
        values = json.loads(path.read_text())
        (digest,) = values["sha256"].values()
        values["format"] = "tformer training state, version 1"
        values["sha256"] = None if (saved / "shards").exists() else digest
        path.write_text(
            json.dumps({n: x for n, x in values.items() if "rest" not in n})
        )

    @pytest.mark.filterwarnings("ignore:.*kept no hashes")
    def test_it_is_loaded(self, saved):
        self.make_old(saved)
        model, optimizer = make(seed=1)
        assert load_state(saved, model, optimizer)["step"] == 6
        assert all(map(torch.equal, model.parameters(), make()[0].parameters()))

    @pytest.mark.parametrize("saved", ["sharded"], indirect=True)
    def test_without_hashes_it_says_so(self, saved):
        self.make_old(saved)
        with pytest.warns(UserWarning, match="is of an older version, which kept no"):
            load_state(saved, *make())

    @pytest.mark.parametrize("saved", ["whole"], indirect=True)
    def test_with_a_hash_it_is_held_to_it(self, saved):
        self.make_old(saved)
        flip(tensors_of(saved), -1)
        refused(saved, "is truncated or changed")


class TestData:
    @pytest.fixture(params=["gpt", "bert"])
    def settings(self, request, tmp_path):
        return small_text_settings(tmp_path, model=request.param)

    @pytest.fixture
    def of_text(self, tmp_path, settings):
        stop_after(tmp_path / "run", settings, 5)
        return tmp_path / "run"

    def test_a_bit_of_the_ids(self, of_text, settings):
        flip(of_text / "data/tokens.bin", 70)
        with pytest.raises(ValueError, match=r"tokens.bin was changed: its sha256 is"):
            train_here(of_text, settings)

    def test_other_data_that_fit_together(self, of_text, settings):
        """The ids were removed, and the text they are made of again has changed."""
        shutil.rmtree(of_text / "data")
        book = Path(settings.files[0])
        text = book.read_text()
        book.write_text(text.replace("not", "ton"))
        with pytest.raises(RunError, match="the run's data are no longer its own"):
            train_here(of_text, settings)
        book.write_text(text)
        shutil.rmtree(of_text / "data")
        assert train_here(of_text, settings)["steps"] == 12

    def test_the_vocabulary_of_pairs(self, tmp_path):
        path, settings = tmp_path / "run", small_pairs_settings(tmp_path)
        stop_after(path, settings, 5)
        kept = path / "data/vocabulary.json"
        values = json.loads(kept.read_text())
        vocabulary = values["vocabulary"]
        vocabulary["characters"] = vocabulary["characters"][::-1]
        kept.write_text(json.dumps(values))
        with pytest.raises(RunError, match="the run's data are no longer its own"):
            train_here(path, settings)

    def test_without_what_half_precision_needs(self, stopped):
        run = begin_or_resume(stopped, SHORT)
        run.precision.scaler = torch.amp.GradScaler("cpu")
        with pytest.raises(RunError, match="step-00000007 cannot be loaded"):
            run.train()
