"""GPT: what its configuration takes, and what it refuses."""

import dataclasses

import pytest
import torch

from small_models import SIZES, V, small_gpt
from tformer import GPTConfig

B, T = 2, 7
D, H, N = (SIZES[name] for name in ("d_model", "num_heads", "num_layers"))


@pytest.fixture
def ids():
    return torch.randint(V, (B, T))


class TestConfig:
    def test_is_frozen_checked_and_by_name_only(self):
        config = GPTConfig.tiny()
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.d_model = 3
        with pytest.raises(TypeError, match="takes 1 positional argument"):
            GPTConfig(65)
        assert hash(config) == hash(GPTConfig.tiny())
        changed = dataclasses.replace(config, d_model=32, pad_id=0)
        assert changed == GPTConfig.tiny(d_model=32, pad_id=0)

    @pytest.mark.parametrize(
        "preset",
        ["tiny", "shakespeare_cpu", "shakespeare", "gpt2", "gpt2_medium", "gpt2_large",
         "gpt2_xl"],
    )  # fmt: skip
    def test_presets_take_changes(self, preset):
        sizes = {"d_model": 30, "num_heads": 5, "num_layers": 3, "vocab_size": 7}
        changes = {**sizes, "max_len": 9, "dropout": 0.3, "bias": False}
        config = getattr(GPTConfig, preset)(**changes)
        assert {name: getattr(config, name) for name in changes} == changes

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"d_model": 30}, "d_model (30) must be divisible by num_heads (4)"),
            ({"num_kv_heads": 3},
             "num_heads (4) must be divisible by num_kv_heads (3)"),
            ({"num_kv_heads": 0}, "num_kv_heads (0) must be at least 1"),
            ({"vocab_size": 0}, "vocab_size (0) must be at least 1"),
            ({"d_model": 0}, "d_model (0) must be at least 1"),
            ({"num_heads": 0}, "num_heads (0) must be at least 1"),
            ({"num_layers": 0}, "num_layers (0) must be at least 1"),
            ({"d_ff": 0}, "d_ff (0) must be at least 1"),
            ({"max_len": 0}, "max_len (0) must be at least 1"),
            ({"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
            ({"activation": "silu"},
             "activation ('silu') must be one of relu, gelu, gelu_tanh, relu2"),
            ({"eps": 0.0}, "eps (0.0) must be above 0 and finite"),
            ({"pad_id": 256}, "pad_id (256) must be in [0, vocab_size = 256)"),
        ],
    )  # fmt: skip
    def test_bad_values(self, raises, changes, message):
        with raises(ValueError, message):
            GPTConfig.tiny(**changes)
        with raises(ValueError, message):
            dataclasses.replace(GPTConfig.tiny(), **changes)

    def test_sizes_are_whole_numbers(self, raises):
        with raises(TypeError, "num_layers must be an int, not float"):
            GPTConfig.tiny(num_layers=2.0)


class TestBadInput:
    def test_too_long(self, raises):
        message = (
            "x needs positions up to 12 but max_len is 11: x is (2, 12, 15), start is 0"
        )
        with raises(ValueError, message):
            small_gpt()(torch.zeros(B, 12, dtype=torch.long))

    def test_empty(self, raises):
        message = "ids must be (batch, length) and not empty, not (2, 0)"
        with raises(ValueError, message):
            small_gpt()(torch.zeros(B, 0, dtype=torch.long))

    def test_ids(self, raises, ids):
        with raises(TypeError, "ids must be int64 or int32, not torch.float32"):
            small_gpt()(ids.float())
        message = "ids must be in [0, vocab_size = 61), but they reach from 5 to 61"
        with raises(ValueError, message):
            small_gpt()(torch.tensor([[5, V]]))
