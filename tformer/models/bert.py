"""BERT: an encoder alone, which guesses hidden tokens from both sides.

B batch · S length · D d_model · V vocabulary · H heads · N layers
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_key_mask
from tformer.models.config import check_model
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import transformer_encoder
from tformer.nn.feed_forward import ACTIVATIONS
from tformer.nn.norm import LayerNorm
from tformer.nn.positions import LearnedPositionalEmbedding


@dataclass(frozen=True, kw_only=True)
class BERTConfig:
    """The sizes and choices of a BERT. The defaults are BERT-base's.

    Devlin et al. 2019, section 3 (arXiv:1810.04805). The others are as in
    `TransformerConfig`.

    Args:
        vocab_size: tokens V, the mask among them.
        num_layers: number of layers N.
        d_ff: inner width of the feed-forward networks; 4 · D if None.
        max_len: the longest text that the model can see.
        num_segments: kinds of text in one input, such as a question and its answer.
        dropout: probability in [0, 1): of the embedded text, of the attention weights
            and of each sub-layer's output.
        pad_id: the token that fills up short texts. As a target it means that nothing
            is asked.
        head: score the tokens of hidden places; without it the model has vectors only.
        pooler: have a layer that reads the first token, for the text as a whole.
    """

    vocab_size: int = 30_522
    d_model: int = 768
    num_heads: int = 12
    num_kv_heads: int | None = None
    num_layers: int = 12
    d_ff: int | None = None
    max_len: int = 512
    num_segments: int = 2
    dropout: float = 0.1
    activation: str = "gelu"
    eps: float = 1e-12
    bias: bool = True
    tie_embeddings: bool = True
    pad_id: int = 0
    head: bool = True
    pooler: bool = False

    def __post_init__(self) -> None:
        check_model(vars(self))
        if self.pad_id is None:
            raise ValueError("pad_id (None) must be an id: it marks what is not asked")

    @classmethod
    def tiny(cls, **changes: Any) -> "BERTConfig":
        """2 layers of width 64: learns a small text on a CPU in seconds."""
        sizes = {"vocab_size": 256, "d_model": 64, "num_heads": 4, "num_layers": 2}
        return cls(**{**sizes, "max_len": 64, "dropout": 0.0, **changes})

    @classmethod
    def base(cls, **changes: Any) -> "BERTConfig":
        """110 million parameters, the head included."""
        return cls(**changes)


class BERT(nn.Module):
    """Guess what stood in hidden places of a text, from both sides of each.

    Devlin et al. 2019: the encoder of the Transformer with learned positions, GELU, a
    norm after the embeddings, and a head for masked tokens. Left out is the guess
    whether two sentences belong together: RoBERTa (arXiv:1907.11692, section 4.2)
    does as well or better without on most of its tasks.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = TokenEmbedding(c.vocab_size, c.d_model, scale=False)
        self.positions = LearnedPositionalEmbedding(c.max_len, c.d_model)
        self.segments = TokenEmbedding(c.num_segments, c.d_model, scale=False)
        self.norm = LayerNorm(c.d_model, c.eps, bias=c.bias)
        self.dropout = nn.Dropout(c.dropout) if c.dropout else nn.Identity()
        self.vocab_size, self.d_model = c.vocab_size, c.d_model
        self.max_len, self.pad_id = c.max_len, c.pad_id
        self.encoder = transformer_encoder(
            c.d_model,
            c.num_heads,
            4 * c.d_model if c.d_ff is None else c.d_ff,
            c.num_layers,
            num_kv_heads=c.num_kv_heads,
            dropout=c.dropout,
            ff_dropout=0.0,
            activation=c.activation,
            eps=c.eps,
            bias=c.bias,
        )
        D, V, head = c.d_model, c.vocab_size, c.head
        self.head = nn.Linear(D, D, bias=c.bias) if head else None
        self.head_norm = LayerNorm(D, c.eps, bias=c.bias) if head else None
        own = head and not c.tie_embeddings
        self.output = nn.Linear(D, V, bias=False) if own else None
        self.output_bias = nn.Parameter(torch.empty(V)) if head and c.bias else None
        self.pooler = nn.Linear(D, D, bias=c.bias) if c.pooler else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights: standard deviation 0.02 (BERT cuts at 0.04), biases 0."""
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)

    def forward(
        self,
        ids: Tensor,
        *,
        key_mask: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Score what stands at every position, given all that can be seen.

        Args:
            ids: (B, S), some of them hidden by `mask_tokens`.
            key_mask: bool (B, S), True = a real token; ids != pad_id if not given.
            segments: (B, S), the number of each token's segment; 0 if not given.

        Returns:
            logits (B, S, V).
        """
        return self.logits(self.states(ids, key_mask=key_mask, segments=segments))

    def states(
        self,
        ids: Tensor,
        *,
        key_mask: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Compute that from which `logits` are made: (B, S) to (B, S, D)."""
        key_mask = ids != self.pad_id if key_mask is None else key_mask
        x = self.embed(ids, segments)  # (B, S, D)
        mask = check_key_mask(key_mask, *ids.shape[:2], name="key_mask")
        return self.encoder(x, mask)  # (B, S, D)

    def embed(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Turn ids (B, S), and each one's segment, into vectors (B, S, D)."""
        x = self.positions(self.embedding(ids))  # (B, S, D)
        if segments is None:
            return self.dropout(self.norm(x + self.segments.weight[0]))
        if segments.shape != ids.shape:
            raise ValueError(
                f"segments must have the shape of ids, {tuple(ids.shape)}, "
                f"not {tuple(segments.shape)}"
            )
        return self.dropout(self.norm(x + self.segments(segments)))

    def logits(self, x: Tensor) -> Tensor:
        """Score every token for vectors of the encoder: (..., D) to (..., V)."""
        if self.head is None or self.head_norm is None:
            raise ValueError("head is False: this model has no scores, only `states`")
        x = self.head_norm(ACTIVATIONS[self.config.activation](self.head(x)))
        matrix = (self.embedding if self.output is None else self.output).weight
        return F.linear(x, matrix, self.output_bias)

    def pooled(self, x: Tensor) -> Tensor:
        """Make one vector of a text from that of its first token: tanh(W x₁ + b).

        Devlin et al. 2019, section 3.1, and their code.

        Args:
            x: (B, S, D), of `states`.

        Returns:
            (B, D).
        """
        if self.pooler is None:
            raise ValueError("pooler is False: this model has none")
        return torch.tanh(self.pooler(x[:, 0]))
