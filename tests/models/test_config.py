import dataclasses
import math

import pytest

from tformer import BERTConfig, TransformerConfig


def test_the_papers_models():
    base, big = TransformerConfig.base(), TransformerConfig.big()
    assert base == TransformerConfig()
    sizes = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
    assert [getattr(base, name) for name in sizes] == [512, 2048, 8, 6, 6]
    assert [getattr(big, name) for name in sizes] == [1024, 4096, 16, 6, 6]
    assert (base.dropout, big.dropout) == (0.1, 0.3)
    for config in (base, big):
        assert config.vocab_size == 37_000
        assert config.activation == "relu"
        assert config.positions == "sinusoidal"
        assert config.tie_embeddings
        assert not config.norm_first
        assert config.bias
        assert config.eps == 1e-5
        assert config.pad_id == 0


@pytest.mark.parametrize(
    "make",
    [
        *(TransformerConfig.tiny, TransformerConfig.base, TransformerConfig.big),
        *(BERTConfig.tiny, BERTConfig.base),
    ],
)
def test_presets_take_changes(make):
    changes = {"d_model": 30, "num_heads": 5, "d_ff": 77, "vocab_size": 7}
    config = make(**changes, dropout=0.3, bias=False, max_len=9)
    assert {name: getattr(config, name) for name in changes} == changes
    assert (config.dropout, config.bias, config.max_len) == (0.3, False, 9)
    assert dataclasses.replace(config, d_ff=88).d_ff == 88
    assert make() != config


def test_is_frozen_and_by_name_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig.tiny().d_model = 3
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        TransformerConfig(37_000)
    assert hash(TransformerConfig.tiny()) == hash(TransformerConfig.tiny())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 30, "num_heads": 4},
         "d_model (30) must be divisible by num_heads (4)"),
        ({"num_heads": 8, "num_kv_heads": 3},
         "num_heads (8) must be divisible by num_kv_heads (3)"),
        ({"num_kv_heads": 0}, "num_kv_heads (0) must be at least 1"),
        ({"vocab_size": 0}, "vocab_size (0) must be at least 1"),
        ({"tgt_vocab_size": 0}, "tgt_vocab_size (0) must be at least 1"),
        ({"d_model": 0}, "d_model (0) must be at least 1"),
        ({"num_heads": 0}, "num_heads (0) must be at least 1"),
        ({"d_ff": -1}, "d_ff (-1) must be at least 1"),
        ({"max_len": 0}, "max_len (0) must be at least 1"),
        ({"num_encoder_layers": 0}, "num_encoder_layers (0) must be at least 1"),
        ({"num_decoder_layers": 0}, "num_decoder_layers (0) must be at least 1"),
        ({"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
        ({"dropout": -0.5}, "dropout (-0.5) must be in [0, 1)"),
        ({"activation": "silu"},
         "activation ('silu') must be one of relu, gelu, gelu_tanh, relu2"),
        ({"positions": "rotary"},
         "positions ('rotary') must be 'sinusoidal' or 'learned'"),
        ({"d_model": 33, "num_heads": 3}, "d_model (33) must be even for sinusoids"),
        ({"eps": 0.0}, "eps (0.0) must be above 0 and finite"),
        ({"eps": math.inf}, "eps (inf) must be above 0 and finite"),
        ({"eps": math.nan}, "eps (nan) must be above 0 and finite"),
        ({"pad_id": -1}, "pad_id (-1) must be in [0, vocab_size = 256)"),
        ({"pad_id": 256}, "pad_id (256) must be in [0, vocab_size = 256)"),
    ],
)  # fmt: skip
def test_bad_values(raises, changes, message):
    with raises(ValueError, message):
        dataclasses.replace(TransformerConfig.tiny(), **changes)


@pytest.mark.parametrize("name", ["d_model", "vocab_size", "num_encoder_layers"])
def test_sizes_are_whole_numbers(raises, name):
    with raises(TypeError, f"{name} must be an int, not float"):
        TransformerConfig(**{name: 8.0})


@pytest.mark.parametrize("kind", [TransformerConfig, BERTConfig])
@pytest.mark.parametrize("value", ["false", 0, 1, None, 0.0, []])
def test_flags_are_true_or_false(raises, kind, value):
    """Whoever writes "false" would get true."""
    names = {"norm_first", "bias", "tie_embeddings"}
    for name in names & set(kind.__dataclass_fields__):
        with raises(TypeError, f"{name} must be a bool, not {type(value).__name__}"):
            kind(**{name: value})


@pytest.mark.parametrize("pad_id", [1.0, True, "0"])
def test_pad_id_is_an_int(raises, pad_id):
    kind = type(pad_id).__name__
    with raises(TypeError, f"pad_id must be an int, not {kind}"):
        TransformerConfig.tiny(pad_id=pad_id)


def test_the_inner_width_is_not_optional(raises):
    with raises(TypeError, "d_ff must be an int, not NoneType"):
        TransformerConfig.tiny(d_ff=None)
