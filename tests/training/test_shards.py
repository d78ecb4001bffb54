"""Sharded checkpoints in one process: what is kept, and what is refused.

On several processes, and from one number of them to another: test_distributed.py.
"""

import warnings
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import nn

from tformer import CausalLM
from tformer.models.families import custom
from tformer.training import shards
from tformer.training.muon import muon
from tformer.training.optimizer import adamw
from tformer.training.shards import (
    full_state,
    load_full_state,
    load_shards,
    save_shards,
)


def make_model(seed: int = 0, **changes) -> CausalLM:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 11, "d_model": 6, "num_heads": 3, "num_layers": 1}
    return custom.build({**sizes, **changes})


def trained(steps=2, make=adamw, seed=0) -> tuple[CausalLM, torch.optim.Optimizer]:
    model = make_model(seed)
    optimizer = make(model)
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    for _ in range(steps):
        step(model, optimizer)
    return model, optimizer


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.arange(10)[None]).square().mean().backward()
    optimizer.step()


def fresh(make=adamw) -> tuple[CausalLM, torch.optim.Optimizer]:
    return trained(0, make, seed=1)


def equal(one: nn.Module, two: nn.Module) -> bool:
    return all(map(torch.equal, one.parameters(), two.parameters()))


@pytest.fixture
def saved(tmp_path) -> Path:
    with warnings.catch_warnings(action="error"):
        save_shards(tmp_path / "saved", *trained())
    return tmp_path / "saved"


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("form", ["shards", "full"])
@pytest.mark.parametrize("make", [adamw, muon])
def test_goes_on_bit_for_bit(tmp_path, make, form, steps):
    model, optimizer = trained(steps, make)
    other, other_optimizer = fresh(make)
    if form == "full":
        load_full_state(other, full_state(model, optimizer), other_optimizer)
    else:
        save_shards(tmp_path / "saved", model, optimizer)
        load_shards(tmp_path / "saved", other, other_optimizer)
    for _ in range(2):
        step(model, optimizer)
        step(other, other_optimizer)
    assert equal(model, other)
    assert equal(model, trained(steps + 2, make)[0])  # saving has changed nothing


def test_the_settings_of_the_optimizer_stay(saved):
    model, optimizer = fresh()
    optimizer.param_groups[0]["lr"] = 0.5
    load_shards(saved, model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0.0]


def test_a_model_alone_and_of_both(tmp_path, saved):
    model, _ = trained()
    save_shards(tmp_path / "model", model)
    assert all(name.startswith("model.") for name in full_state(model))
    others = [fresh()[0] for _ in range(3)]
    load_shards(tmp_path / "model", others[0])
    load_shards(saved, others[1])
    load_full_state(others[2], full_state(*trained()))
    assert all(equal(model, other) for other in others)


def test_nothing_but_safetensors(saved):
    files = list(saved.rglob("*"))
    assert [file.suffix for file in files] == [".safetensors"]
    with safe_open(files[0], "pt") as file:
        assert "model.embedding.weight" in file.keys()  # noqa: SIM118
        assert "optimizer.state.embedding.weight.exp_avg" in file.keys()  # noqa: SIM118


def test_names_of_older_versions(tmp_path, monkeypatch):
    today = shards._state

    def older(*given):
        return {n.replace(".blocks.", ".layers."): x for n, x in today(*given).items()}

    with monkeypatch.context() as patch:
        patch.setattr(shards, "_state", older)
        save_shards(tmp_path / "saved", *trained())
    model, optimizer = fresh()
    load_shards(tmp_path / "saved", model, optimizer)
    assert equal(model, trained()[0])


class TestErrors:
    def test_folders(self, saved, tmp_path):
        with pytest.raises(FileExistsError, match="is there already"):
            save_shards(saved, *trained())
        with pytest.raises(FileNotFoundError, match="no such folder"):
            load_shards(tmp_path / "nothing", *fresh())
        with pytest.raises(ValueError, match=r"(lacks|unknown) optimizer\.state\."):
            load_shards(saved, *fresh(muon))

    @pytest.mark.parametrize("left", [4, 5000])
    def test_truncated(self, saved, left):
        (file,) = saved.iterdir()
        file.write_bytes(file.read_bytes()[:left])
        with pytest.raises(ValueError, match="holds a file that is cut off"):
            load_shards(saved, *fresh())

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"num_layers": 2}, r"it lacks model\.blocks\.1\."),
            ({"bias": False}, r"it has an unknown model\.blocks"),
            (
                {"vocab_size": 12},
                r"model\.embedding\.weight is \(11, 6\), not \(12, 6\)",
            ),
        ],
    )
    def test_another_model(self, saved, changes, said):
        model = make_model(**changes)
        before = model.embedding.weight.clone()
        with pytest.raises(ValueError, match=f"is of another model: {said}"):
            load_shards(saved, model)
        with pytest.raises(ValueError, match=f"is of another model: {said}"):
            load_full_state(model, full_state(trained()[0]))
        assert torch.equal(model.embedding.weight, before)
