"""The tensors of a checkpoint: what is refused, and what older versions called them."""

import os
import re
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from checkpoint_files import config_with, make_model, same, seal
from small_models import SIZES, small_gpt
from tformer import GPT, CausalLM, CausalLMConfig, load_checkpoint, save_checkpoint
from tformer.training import shards
from tformer.training.weights import modern_names


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


class Subclass(GPT):
    """Whatever it does otherwise, no name in a manifest says it."""


class Marked(torch.Tensor):
    """A tensor of another kind, of which safetensors would save only the numbers."""


def small(**changes) -> GPT:
    torch.manual_seed(0)
    return small_gpt(**changes)


def changed(change) -> GPT:
    model = small()
    change(model)
    return model


def with_weight(weight: torch.Tensor):
    def change(model: GPT) -> None:
        model.embedding.weight = nn.Parameter(weight, requires_grad=False)

    return change


def parametrize(model: GPT) -> None:
    nn.utils.parametrizations.weight_norm(model.stack.layers[0].self_attn.q_proj)


def compile_a_part(model: GPT) -> None:
    model.stack = torch.compile(model.stack)


V, D = SIZES["vocab_size"], SIZES["d_model"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed(parametrize), "it has a parameter .*parametrizations"),
        (lambda: changed(compile_a_part), "it has a parameter stack._orig_mod."),
        (lambda: Subclass(small().config), r"architecture \('Subclass'\) must be"),
        (lambda: nn.Linear(2, 2), r"architecture \('Linear'\) must be one of"),
        (
            lambda: type("GPT", (GPT,), {})(small().config),
            "it is another class than tformer's GPT",
        ),
        (
            lambda: changed(lambda m: delattr(m.stack.layers, "1")),
            r"it lacks the parameter stack\.layers\.1",
        ),
        (
            lambda: changed(with_weight(torch.zeros(V + 1, D))),
            rf"embedding\.weight is \({V + 1}, {D}\), not \({V}, {D}\)",
        ),
        (
            lambda: changed(with_weight(torch.zeros(V, D, dtype=torch.complex64))),
            "of torch.complex64 on cpu, which cannot be saved",
        ),
        (
            lambda: changed(with_weight(torch.zeros(V, D, device="meta"))),
            "on meta, which cannot be saved",
        ),
        (
            lambda: changed(with_weight(torch.zeros(V, D).as_subclass(Marked))),
            "embedding.weight is a Marked of",
        ),
    ],
)
def test_what_could_not_be_loaded_again_is_refused_before_all_else(path, make, message):
    save_checkpoint(path, small())
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    for place in (path, path.parent / "new" / "model.safetensors"):
        with pytest.raises(
            ValueError, match=rf"could not be loaded again: .*{message}"
        ):
            save_checkpoint(place, make())
    assert before == {file: file.read_bytes() for file in path.parent.iterdir()}
    load_checkpoint(path)


def test_a_compiled_model_is_saved_as_itself(path):
    model = small()
    for compiled in (torch.compile(model), changed(lambda m: m.compile())):
        save_checkpoint(path, compiled)
        loaded = load_checkpoint(path)
        assert loaded.manifest["architecture"] == "GPT"
        assert same(loaded.model, model)


def test_anothers_json_is_not_overwritten(path):
    manifest = path.with_suffix(".json")
    for text in ('{"my": "settings"}', "no JSON", '{"format": 3}', "[]"):
        manifest.write_text(text)
        with pytest.raises(FileExistsError, match=r"model\.json is no manifest"):
            save_checkpoint(path, small())
        assert [file.read_text() for file in path.parent.iterdir()] == [text]
    manifest.write_text('{"format": "tformer checkpoint, version 1"}')
    save_checkpoint(path, small())
    load_checkpoint(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for few")
def test_no_link_is_followed(path, tmp_path):
    others = tmp_path / "others.txt"
    others.write_text("mine")
    path.with_name("model.safetensors.new").symlink_to(others)
    save_checkpoint(path, small())
    assert others.read_text() == "mine"
    load_checkpoint(path)


def test_a_full_disk_is_an_error_of_the_system(path, monkeypatch):
    import safetensors.torch

    def full(*_):
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OSError, match=r"model\.safetensors cannot be written: .*space"):
        save_checkpoint(path, small())
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.complex64, torch.int32, torch.bool]
)
def test_weights_that_are_no_floats_are_named(path, dtype):
    save_checkpoint(path, small())
    save_file({name: x.to(dtype) for name, x in load_file(path).items()}, path)
    seal(path)
    for model in (None, small()):
        with pytest.raises(ValueError, match=r"is of \w+, not one of F16, BF16, F32"):
            load_checkpoint(path, model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 10**7}, r"num_layers \(10000000\) cannot be: there are \d\d"),
        ({"num_layers": 21}, r"model\.safetensors lacks stack\.layers\.10\."),
        ({"vocab_size": 10**12}, r"is \(61, 15\) .* model has \(1000000000000, 15\)"),
        ({"max_len": 10**15}, r"model has \(1000000000000000, 15\)"),
        ({"d_ff": 10**30}, "no model can have these sizes: "),
        ({"d_model": 3 * 10**12}, "no model can have these sizes: Storage size"),
    ],
)
def test_sizes_are_held_to_the_file_before_memory_is_taken(
    path, changes, message, monkeypatch
):
    save_checkpoint(path, small())
    config_with(**changes)(path)
    monkeypatch.setattr("safetensors.torch.load_file", None)  # not even the weights
    began = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path)
    assert time.perf_counter() - began < 5


def test_experts_are_held_to_the_file_too(path):
    parts = {"experts": {"num_experts": 2}}
    sizes = {"vocab_size": 13, "d_model": 8, "num_heads": 2, "num_layers": 1}
    config = CausalLMConfig(**sizes, max_len=7, parts=parts)
    save_checkpoint(path, CausalLM(config))
    config_with(parts={"experts": {"num_experts": 10**7}})(path)
    began = time.perf_counter()
    with pytest.raises(ValueError, match=r"num_experts \(10000000\) cannot be"):
        load_checkpoint(path)
    assert time.perf_counter() - began < 5


def test_a_table_that_no_file_holds_is_not_made_as_long_as_the_file_says(path):
    model = make_model()
    save_checkpoint(path, model)
    config_with(max_len=10**12)(path)
    loaded = load_checkpoint(path).model
    assert loaded.config.max_len == 10**12
    assert len(loaded.src_positions.table) <= 4096
    src, tgt = torch.randint(3, 13, (2, 1, 5000))
    with torch.no_grad():
        ours, theirs = (m.eval()(src, tgt) for m in (loaded, model))
    torch.testing.assert_close(ours, theirs)


OLD = {"stacks.encoder.a": 1, "stack.b": 2, "src.stacks.c": 3, "stacks.d": 4}


def test_names_of_older_versions_become_those_of_today():
    today = {"encoder.a": 1, "stack.b": 2, "src.stacks.c": 3, "d": 4}
    assert modern_names(OLD, today) == today
    assert modern_names(today, today) == today
    assert modern_names(OLD, OLD) == OLD
    for before in ("model.", "optimizer.state."):
        old, new = ({before + name: x for name, x in s.items()} for s in (OLD, today))
        assert modern_names(old, new) == new
    # Where both are there, one of them is too many, and none gets lost.
    both = {"stacks.d": 1, "d": 2}
    assert modern_names(both, ["d"]) == both


def test_a_checkpoint_with_names_of_older_versions_is_loaded(path):
    model = make_model()
    save_checkpoint(path, model)
    names = [name.removeprefix("stacks.") for name in load_file(path)]
    tensors = dict(zip(names, load_file(path).values(), strict=True))
    parts = ("encoder.", "decoder.")
    old = {f"stacks.{n}" if n.startswith(parts) else n: x for n, x in tensors.items()}
    assert sum(name.startswith("stacks.") for name in old) > 50
    save_file(old, path)
    seal(path)
    assert same(load_checkpoint(path).model, model)
    other = make_model(1)
    load_checkpoint(path, other)
    assert same(other, model)


def test_looking_at_sizes_does_not_wait_for_the_compiler(fresh):
    """On the device "meta" torch would load it to draw random numbers: a second."""
    code = """
import sys
from tformer import GPT, BERT, GPTConfig, BERTConfig, load_pretrained
from tformer.training.weights import loadable
load_pretrained("dates")
for model in (GPT(GPTConfig.tiny()), BERT(BERTConfig.tiny())):
    loadable(model)
print("torch._dynamo" in sys.modules)
"""
    assert fresh(code) == "False"


def old_names(state: dict) -> dict:
    """The names of a training's state as they were, when there were `stacks`."""
    put = r"\g<0>stacks."
    start = r"^(model|optimizer\.state)\.(?=encoder\.|decoder\.)"
    return {re.sub(start, put, name): x for name, x in state.items()}


@pytest.mark.parametrize("sharded", [False, True])
def test_the_state_of_a_training_with_names_of_older_versions(
    path, monkeypatch, sharded
):
    def trained(seed: int):
        model = make_model(seed)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.tensor([[3, 4]]), torch.tensor([[1, 5]])).sum().backward()
        optimizer.step()
        return model, optimizer

    before, after = trained(0), trained(1)
    now = shards._state
    with monkeypatch.context() as patch:
        patch.setattr(shards, "_state", lambda *a, **k: old_names(now(*a, **k)))
        saved = shards.full_state(*before)
        shards.save_shards(path.parent / "shards", *before)
    assert (
        "optimizer.state.stacks.encoder.layers.0.self_attn.q_proj.weight.exp_avg"
        in saved
    )
    if sharded:
        shards.load_shards(path.parent / "shards", *after)
    else:
        shards.load_full_state(after[0], saved, after[1])
    ours, theirs = shards.full_state(*after), shards.full_state(*before)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
