"""The configs of Transformer and BERT: presets, and what is refused."""

import dataclasses
import math

import pytest

from tformer import BERTConfig, TransformerConfig


@pytest.mark.parametrize(
    "make",
    [
        *(TransformerConfig.tiny, TransformerConfig.base, TransformerConfig.big),
        *(BERTConfig.tiny, BERTConfig.base),
    ],
)
def test_presets_take_changes(make):
    changes = {"d_model": 30, "num_heads": 5, "d_ff": 77, "vocab_size": 7}
    changes |= {"dropout": 0.3, "bias": False, "max_len": 9}
    config = make(**changes)
    assert {name: getattr(config, name) for name in changes} == changes
    assert make() != config
    assert hash(config) == hash(make(**changes))


def test_is_frozen_and_by_name_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig.tiny().d_model = 3
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        TransformerConfig(37_000)


SIZES = ("vocab_size", "d_model", "num_heads", "num_kv_heads", "d_ff", "max_len")
OF_ONE = ("tgt_vocab_size", "num_encoder_layers", "num_decoder_layers")
FLAGS = {"norm_first", "bias", "tie_embeddings"}
REFUSED = [
    *(({name: 0}, f"{name} (0) must be at least 1") for name in (*SIZES, *OF_ONE)),
    ({"d_model": 30}, "d_model (30) must be divisible by num_heads (4)"),
    ({"num_kv_heads": 3}, "num_heads (4) must be divisible by num_kv_heads (3)"),
    ({"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
    ({"activation": "tanh"}, "activation ('tanh') must be one of relu, gelu, gelu_ta"),
    ({"positions": "rotary"}, "positions ('rotary') must be 'sinusoidal' or 'learned'"),
    ({"d_model": 33, "num_heads": 3}, "d_model (33) must be even for sinusoids"),
    ({"eps": math.nan}, "eps (nan) must be above 0 and finite"),
    ({"pad_id": -1}, "pad_id (-1) must be in [0, vocab_size = 256)"),
    ({"pad_id": 256}, "pad_id (256) must be in [0, vocab_size = 256)"),
    ({"pad_id": True}, "pad_id must be an int, not bool"),
    ({"d_ff": None}, "d_ff must be an int, not NoneType"),
    ({"vocab_size": 8.0}, "vocab_size must be an int, not float"),
    *(({name: "false"}, f"{name} must be a bool, not str") for name in sorted(FLAGS)),
]
OF_BERT = [
    *(({name: 0}, f"{name} (0) must be at least 1") for name in SIZES),
    ({"num_segments": 0}, "num_segments (0) must be at least 1"),
    ({"num_layers": 0}, "num_layers (0) must be at least 1"),
    ({"pad_id": None}, "pad_id (None) must be an id: it marks what is not asked"),
    ({"bias": 0}, "bias must be a bool, not int"),
]


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        *((TransformerConfig, *row) for row in REFUSED),
        *((BERTConfig, *row) for row in OF_BERT),
    ],
)
def test_what_is_refused(kind, changes, message):
    with pytest.raises((TypeError, ValueError)) as error:
        kind.tiny(**changes)
    assert str(error.value).startswith(message)
