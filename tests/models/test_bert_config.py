"""BERT: what its configuration takes, and what it refuses."""

import dataclasses

import pytest
import torch

from small_models import SIZES, V, small_bert
from tformer import BERTConfig

B, S = 2, 7
D, H, N = (SIZES[name] for name in ("d_model", "num_heads", "num_layers"))


@pytest.fixture
def ids():
    return torch.randint(1, V, (B, S))


class TestConfig:
    def test_is_frozen_checked_and_by_name_only(self):
        config = BERTConfig.tiny()
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.d_model = 3
        with pytest.raises(TypeError, match="takes 1 positional argument"):
            BERTConfig(65)
        changed = dataclasses.replace(config, d_model=32, pad_id=1)
        assert changed == BERTConfig.tiny(d_model=32, pad_id=1)

    @pytest.mark.parametrize("preset", ["tiny", "base"])
    def test_presets_take_changes(self, preset):
        sizes = {"d_model": 30, "num_heads": 5, "num_layers": 3, "vocab_size": 7}
        changes = {**sizes, "max_len": 9, "dropout": 0.3, "bias": False}
        config = getattr(BERTConfig, preset)(**changes)
        assert {name: getattr(config, name) for name in changes} == changes

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"d_model": 30}, "d_model (30) must be divisible by num_heads (4)"),
            ({"num_kv_heads": 3},
             "num_heads (4) must be divisible by num_kv_heads (3)"),
            ({"vocab_size": 0}, "vocab_size (0) must be at least 1"),
            ({"num_layers": 0}, "num_layers (0) must be at least 1"),
            ({"num_segments": 0}, "num_segments (0) must be at least 1"),
            ({"d_ff": 0}, "d_ff (0) must be at least 1"),
            ({"max_len": 0}, "max_len (0) must be at least 1"),
            ({"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
            ({"activation": "silu"},
             "activation ('silu') must be one of relu, gelu, gelu_tanh, relu2"),
            ({"eps": 0.0}, "eps (0.0) must be above 0 and finite"),
            ({"pad_id": 256}, "pad_id (256) must be in [0, vocab_size = 256)"),
            ({"pad_id": None},
             "pad_id (None) must be an id: it marks what is not asked"),
        ],
    )  # fmt: skip
    def test_bad_values(self, raises, changes, message):
        with raises(ValueError, message):
            BERTConfig.tiny(**changes)


class TestBadInput:
    def test_segments(self, raises, ids):
        message = "segments must have the shape of ids, (2, 7), not (1, 7)"
        with raises(ValueError, message):
            small_bert()(ids, segments=ids[:1])
        message = "ids must be in [0, vocab_size = 2), but they reach from 2 to 2"
        with raises(ValueError, message):
            small_bert()(ids, segments=torch.full_like(ids, 2))

    def test_length(self, raises):
        message = (
            "x needs positions up to 12 but max_len is 11: x is (2, 12, 15), start is 0"
        )
        with raises(ValueError, message):
            small_bert()(torch.ones(B, 12, dtype=torch.long))

    def test_ids_and_masks(self, raises, ids):
        with raises(TypeError, "ids must be int64 or int32, not torch.float32"):
            small_bert()(ids.float())
        message = "key_mask must be torch.bool (True = a real token), not torch.int64"
        with raises(TypeError, message):
            small_bert()(ids, key_mask=ids)
