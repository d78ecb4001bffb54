"""Models by name: each is made again from what its config says."""

import dataclasses

import pytest
import torch

from tformer import BERTConfig, GPTConfig, TransformerConfig
from tformer.models.by_name import ARCHITECTURES, make_config, make_model
from tformer.models.causal_config import CausalLMConfig
from tformer.training.checkpoint import load_checkpoint, save_checkpoint

CONFIGS = {
    "Transformer": TransformerConfig.tiny(vocab_size=13),
    "GPT": GPTConfig.tiny(vocab_size=13),
    "BERT": BERTConfig.tiny(vocab_size=13),
    "CausalLM": CausalLMConfig.tiny(vocab_size=13),
}


def test_all_architectures_are_tested():
    assert CONFIGS.keys() == ARCHITECTURES.keys()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_comes_back_from_its_checkpoint(name, tmp_path):
    config = CONFIGS[name]
    assert make_config(name, dataclasses.asdict(config)) == config
    model = make_model(config)
    assert type(model).__name__ == name
    manifest = save_checkpoint(tmp_path / "model.safetensors", model)
    assert manifest["architecture"] == name
    again = load_checkpoint(tmp_path / "model.safetensors").model
    assert type(again) is type(model)
    assert again.config == config
    for one, two in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)


def test_a_checkpoint_of_another_architecture_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, make_model(CONFIGS["GPT"]))
    with pytest.raises(ValueError, match="another model: architecture GPT, not BERT"):
        load_checkpoint(path, make_model(CONFIGS["BERT"]))


def test_bad_names():
    with pytest.raises(ValueError, match=r"architecture \('RNN'\) must be one of Tr"):
        make_config("RNN", {})
    values = dataclasses.asdict(CONFIGS["GPT"])
    with pytest.raises(ValueError, match="config has an unknown 'depth'"):
        make_config("GPT", {**values, "depth": 3})
    del values["d_model"]
    with pytest.raises(ValueError, match="config lacks 'd_model'"):
        make_config("GPT", values)
    with pytest.raises(TypeError, match="must be of a model of tformer"):
        make_model(object())
