"""GPT: a decoder alone, which predicts the next token of a text.

B batch · T length · D d_model · V vocabulary · H heads · N layers
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.models.config import check_model
from tformer.models.initialisation import depth_scaled_normal_
from tformer.nn.decoder import Decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.model_cache import DecoderCache
from tformer.nn.positions import LearnedPositionalEmbedding


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """The sizes and choices of a GPT. The defaults are those of the smallest GPT-2.

    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2.

    Args:
        vocab_size: tokens V.
        d_model: width D.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads; divides H. H if None.
        num_layers: number of layers N.
        d_ff: inner width of the feed-forward networks; 4 · D if None.
        max_len: the context: the longest text that the model can see.
        dropout: probability in [0, 1): of the embedded text, of the attention weights
            and of each sub-layer's output.
        activation: "relu", "gelu", "gelu_tanh" or "relu2".
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
        tie_embeddings: make logits with the embedding matrix.
        pad_id: the token after a short text, which a loss leaves out; None if there is
            none. It is in the future of the text: no mask need hide it.

    Raises:
        TypeError: a size is not an int, or a flag not a bool.
        ValueError: a value is out of its range.
    """

    vocab_size: int = 50_257
    d_model: int = 768
    num_heads: int = 12
    num_kv_heads: int | None = None
    num_layers: int = 12
    d_ff: int | None = None
    max_len: int = 1024
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    eps: float = 1e-5
    bias: bool = True
    tie_embeddings: bool = True
    pad_id: int | None = None

    def __post_init__(self) -> None:
        check_model(self)

    @classmethod
    def tiny(cls, **changes: Any) -> "GPTConfig":
        """2 layers of width 64: learns a small text on a CPU in seconds."""
        sizes = {"vocab_size": 256, "d_model": 64, "num_heads": 4, "num_layers": 2}
        return cls(**{**sizes, "max_len": 64, "dropout": 0.0, **changes})

    @classmethod
    def shakespeare_cpu(cls, **changes: Any) -> "GPTConfig":
        """Shakespeare's characters, as nanoGPT for a CPU: 0.8 million."""
        sizes = {"vocab_size": 65, "d_model": 128, "num_heads": 4, "num_layers": 4}
        choices = {"max_len": 64, "dropout": 0.0, "bias": False}
        return cls(**{**sizes, **choices, **changes})

    @classmethod
    def shakespeare(cls, **changes: Any) -> "GPTConfig":
        """Shakespeare's characters, as nanoGPT for a GPU: 10.7 million."""
        sizes = {"vocab_size": 65, "d_model": 384, "num_heads": 6, "num_layers": 6}
        choices = {"max_len": 256, "dropout": 0.2, "bias": False}
        return cls(**{**sizes, **choices, **changes})

    @classmethod
    def gpt2(cls, **changes: Any) -> "GPTConfig":
        """124 million parameters."""
        return cls(**changes)

    @classmethod
    def gpt2_medium(cls, **changes: Any) -> "GPTConfig":
        """355 million parameters."""
        return cls(**{"d_model": 1024, "num_heads": 16, "num_layers": 24, **changes})

    @classmethod
    def gpt2_large(cls, **changes: Any) -> "GPTConfig":
        """774 million parameters."""
        return cls(**{"d_model": 1280, "num_heads": 20, "num_layers": 36, **changes})

    @classmethod
    def gpt2_xl(cls, **changes: Any) -> "GPTConfig":
        """1,558 million parameters: the model that is called GPT-2."""
        return cls(**{"d_model": 1600, "num_heads": 25, "num_layers": 48, **changes})


class GPT(nn.Module):
    """Predict each next token of a text from the tokens up to it.

    Radford et al. 2018 and 2019: the decoder without cross-attention, with pre-norm,
    learned positions and no factor √D.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = TokenEmbedding(c.vocab_size, c.d_model, scale=False)
        self.positions = LearnedPositionalEmbedding(c.max_len, c.d_model)
        self.dropout = Dropout(c.dropout)
        self.stack = Decoder(
            c.d_model,
            c.num_heads,
            4 * c.d_model if c.d_ff is None else c.d_ff,
            c.num_layers,
            cross_attention=False,
            num_kv_heads=c.num_kv_heads,
            dropout=c.dropout,
            ff_dropout=0.0,
            activation=c.activation,
            norm_first=True,
            eps=c.eps,
            bias=c.bias,
        )
        self.output = None
        if not c.tie_embeddings:
            self.output = Linear(c.d_model, c.vocab_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights as GPT-2; the gains of the norms are 1."""
        depth_scaled_normal_(self, self.config.num_layers)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1 and not name.endswith("bias"):
                nn.init.ones_(parameter)

    def forward(
        self,
        ids: Tensor,
        *,
        cache: DecoderCache | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Score the next token at every position.

        Args:
            ids: (B, T). Position t sees ids[:, : t + 1].
            cache: of `new_cache`. The ids are then only what is new since its last use.
            last_only: score what follows the last position only: (B, 1, V).

        Returns:
            logits (B, T, V).

        Raises:
            TypeError: the ids are not integers.
            ValueError: an id is unknown, or the text is empty or beyond `max_len`.
        """
        x = self.states(ids, cache=cache)  # (B, T, D)
        return self.logits(x[:, -1:] if last_only else x)

    def states(self, ids: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Compute that from which `logits` are made: (B, T) to (B, T, D)."""
        start = 0 if cache is None else cache.length
        x = self.dropout(self.positions(self.embedding(ids), start=start))  # (B, T, D)
        return self.stack(x, is_causal=True, cache=cache)

    def logits(self, x: Tensor) -> Tensor:
        """Score every token of the vocabulary: (B, T, D) to (B, T, V)."""
        return self.embedding.logits(x) if self.output is None else self.output(x)

    def new_cache(self, max_len: int) -> DecoderCache:
        """Make an empty cache for texts of so many tokens."""
        return DecoderCache(self.config.num_layers, max_len)
