"""The sizes and choices of a whole Transformer, with the paper's as presets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tformer.checks import (
    check_above_0,
    check_divisible,
    check_id,
    check_one_of,
    check_positive,
    check_probability,
)
from tformer.nn.feed_forward import ACTIVATIONS

# The fields of any model's configuration that are sizes, and those that may be None.
_LAYERS = ("num_layers", "num_encoder_layers", "num_decoder_layers")
_SIZES = ("vocab_size", "d_model", "num_heads", *_LAYERS, "max_len", "num_segments")
_OPTIONAL_SIZES = ("num_kv_heads", "head_dim", "d_ff", "tgt_vocab_size")
_FLAGS = ("norm_first", "bias", "tie_embeddings", "head", "pooler")


def check_model(c: Mapping[str, Any]) -> None:
    """Check the fields that the configurations of Transformer and BERT share."""
    check_shared(c)
    check_divisible(d_model=c["d_model"], num_heads=c["num_heads"])
    if c["num_kv_heads"] is not None:
        check_divisible(num_heads=c["num_heads"], num_kv_heads=c["num_kv_heads"])
    check_one_of("activation", c["activation"], ACTIVATIONS)


def check_shared(c: Mapping[str, Any]) -> None:
    """Check the fields that the configurations of all models share."""
    for name, value in c.items():
        if name in _SIZES or (name in _OPTIONAL_SIZES and value is not None):
            check_positive(**{name: value})
        if name in _FLAGS and not isinstance(value, bool):  # "false" would be true
            raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    check_probability(dropout=c["dropout"])
    check_above_0(eps=c["eps"])
    if c["pad_id"] is not None:
        check_id("pad_id", c["pad_id"], c["vocab_size"])


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a Transformer. The defaults are the paper's base model.

    Vaswani et al. 2017, table 3. `tiny()`, `base()` and `big()` are presets.

    Args:
        vocab_size: tokens V of the source, and of the target if it has no own.
        tgt_vocab_size: tokens of the target, where it has a vocabulary of its own.
        d_model: width D.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads; divides H. H if None.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        d_ff: inner width of the feed-forward networks.
        dropout: probability in [0, 1), everywhere.
        activation: "relu", "gelu", "gelu_tanh", "relu2" or "silu".
        norm_first: pre-norm instead of post-norm.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
        positions: "sinusoidal" or "learned".
        max_len: the longest sequence, for learned positions.
        tie_embeddings: make logits with the target's embedding matrix. With one
            vocabulary that matrix is the source's too, as in the paper.
        pad_id: the token that fills up short sources; None if there is none.
    """

    vocab_size: int = 37_000
    tgt_vocab_size: int | None = None
    d_model: int = 512
    num_heads: int = 8
    num_kv_heads: int | None = None
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    norm_first: bool = False
    eps: float = 1e-5
    bias: bool = True
    positions: str = "sinusoidal"
    max_len: int = 512
    tie_embeddings: bool = True
    pad_id: int | None = 0

    def __post_init__(self) -> None:
        check_model(vars(self))
        check_positive(d_ff=self.d_ff)  # here it is not optional
        if self.positions not in ("sinusoidal", "learned"):
            raise ValueError(
                f"positions ({self.positions!r}) must be 'sinusoidal' or 'learned'"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model ({self.d_model}) must be even for sinusoids")

    @classmethod
    def tiny(cls, **changes: Any) -> "TransformerConfig":
        """2 + 2 layers of width 64: learns to write dates on a CPU in minutes."""
        sizes = {"vocab_size": 256, "d_model": 64, "num_heads": 4, "d_ff": 256}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
        return cls(**{**sizes, **layers, **changes})

    @classmethod
    def base(cls, **changes: Any) -> "TransformerConfig":
        """The paper's base model: 63 million parameters with 37,000 tokens."""
        return cls(**changes)

    @classmethod
    def big(cls, **changes: Any) -> "TransformerConfig":
        """The paper's big model: 214 million parameters with 37,000 tokens."""
        sizes = {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3}
        return cls(**{**sizes, **changes})
