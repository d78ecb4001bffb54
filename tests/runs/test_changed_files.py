"""Every file that a run goes on from has a hash, and is held to it."""

import json
import shutil
import warnings
from pathlib import Path

import pytest
import torch

from small_run import (
    SHORT,
    flip,
    go_on,
    small_pairs_settings,
    small_text_settings,
    stop_after,
    train_here,
)
from tformer.files import SEAL, sealed, sha256_of
from tformer.models.causal_lm import CausalLM
from tformer.models.families import custom
from tformer.runs.checkpoints import load_state, save_state
from tformer.runs.folder import RunError
from tformer.training.optimizer import adamw
from tformer.training.shards import save_shards


def make(seed: int = 0) -> tuple[CausalLM, torch.optim.AdamW]:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 11, "d_model": 6, "num_heads": 3, "num_layers": 1}
    model = custom.build(sizes)
    return model, adamw(model)


@pytest.fixture
def saved(tmp_path) -> Path:
    """Two checkpoints; the path is that of the newer."""
    facts = {"scaler": {"scale": 65536.0}}
    for step in (3, 6):
        save_state(tmp_path / "checkpoints", step, *make(), facts=facts, keep=2)
    return tmp_path / "checkpoints/step-00000006"


def is_as_it_was_saved(state: Path) -> None:
    model, optimizer = make(seed=1)
    with warnings.catch_warnings(action="error"):
        facts = load_state(state, model, optimizer)
    assert (facts["step"], facts["scaler"]) == (6, {"scale": 65536.0})
    assert all(map(torch.equal, model.parameters(), make()[0].parameters()))


def test_as_it_was_saved_it_is_loaded(saved):
    is_as_it_was_saved(saved)


def test_shards_of_older_versions_are_loaded(saved):
    """FSDP's processes wrote a part each; here there is one."""
    (saved / "training.safetensors").unlink()
    save_shards(saved / "shards", *make())
    (part,) = (saved / "shards").iterdir()
    facts = json.loads((saved / "state.json").read_text())
    del facts[SEAL]
    facts["sha256"] = {f"shards/{part.name}": sha256_of(part)}
    (saved / "state.json").write_text(json.dumps(sealed(facts)))
    is_as_it_was_saved(saved)
    flip(part, -1)
    with pytest.raises(RunError, match="is truncated or changed"):
        load_state(saved, *make())


def without_seal(text: str) -> str:
    return json.dumps({n: x for n, x in json.loads(text).items() if n != SEAL})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("65536", "65537"), "state.json was changed"),
        (lambda text: text.replace('"step": 6', '"step": 7'), "state.json was changed"),
        (without_seal, "state.json was changed"),
        (lambda _: '{"format": "another"}', "format .'another'. must be 'tformer trai"),
        (lambda _: "[" * 200_000, "is not JSON"),
    ],
)
def test_changed_facts_are_refused(saved, spoil, message):
    path = saved / "state.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(RunError, match=rf"step-00000006 .*{message}.*step-00000003"):
        load_state(saved, *make())


@pytest.mark.parametrize("place", [9, -1, -5000, None])
def test_changed_tensors_are_refused_and_nothing_is_overwritten(saved, place):
    tensors = saved / "training.safetensors"
    tensors.unlink() if place is None else flip(tensors, place)
    message = "No such file" if place is None else "is truncated or changed"
    model, optimizer = make(seed=1)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(RunError, match=rf"step-00000006 .*{message}.*step-00000003"):
        load_state(saved, model, optimizer)
    assert all(map(torch.equal, model.parameters(), before))


def test_under_the_name_of_another_step(saved):
    other = saved.rename(saved.with_name("step-00000009"))
    with pytest.raises(RunError, match=r"state.json is of step 6\. Remove it"):
        load_state(other, *make())


def test_the_checkpoint_before_does(stopped):
    state = stopped / "checkpoints/step-00000007"
    flip(state / "training.safetensors", 1000)
    with pytest.raises(RunError, match=r"step-00000007 .*Remove it .*step-00000006"):
        go_on(stopped)
    shutil.rmtree(state)
    assert train_here(stopped, SHORT)["steps"] == 12


class TestData:
    def test_ids_and_their_text(self, tmp_path):
        path, settings = tmp_path / "run", small_text_settings(tmp_path, model="bert")
        stop_after(path, settings, 5)
        flip(path / "data/tokens.bin", 70)
        with pytest.raises(ValueError, match=r"tokens.bin was changed: its sha256 is"):
            go_on(path)
        # The ids are removed, and the text they are made of again has changed.
        shutil.rmtree(path / "data")
        book = Path(settings.files[0])
        text = book.read_text()
        book.write_text(text.replace("not", "ton"))
        with pytest.raises(RunError, match="the run's data are no longer its own"):
            go_on(path)
        book.write_text(text)
        shutil.rmtree(path / "data")
        assert go_on(path)["steps"] == 12

    def test_the_vocabulary_of_pairs(self, tmp_path):
        path, settings = tmp_path / "run", small_pairs_settings(tmp_path)
        stop_after(path, settings, 5)
        kept = path / "data/vocabulary.json"
        values = json.loads(kept.read_text())
        values["vocabulary"]["characters"] = values["vocabulary"]["characters"][::-1]
        kept.write_text(json.dumps(values))
        with pytest.raises(RunError, match="the run's data are no longer its own"):
            go_on(path)
