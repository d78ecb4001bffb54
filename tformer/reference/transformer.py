"""The whole Transformer in NumPy: embeddings, encoder, decoder and logits.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from tformer.reference.decoder import Decoder
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.encoder import Encoder
from tformer.reference.linear import Linear
from tformer.reference.masks import check_key_mask
from tformer.reference.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from tformer.reference.weights import Weights, parts

if TYPE_CHECKING:
    from tformer.models.config import TransformerConfig


class EncoderDecoder:
    """The two stacks without embeddings, from vectors to vectors: `nn.Transformer`.

    Args:
        encoder: makes the memory from the source.
        decoder: reads it.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        self.encoder = encoder
        self.decoder = decoder

    def __call__(
        self,
        src: np.ndarray,
        tgt: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        src_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Encode src (B, S, D) and decode tgt (B, T, D) against it; returns (B, T, D).

        The masks are target to target, source to source and target to source.
        """
        memory = self.encoder(src, src_mask)  # (B, S, D)
        return self.decoder(tgt, memory, attn_mask, memory_mask, is_causal=is_causal)


class Transformer:
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1. The twin of `tformer.Transformer`, as it computes in
    `eval()`.

    Args:
        weights: the arrays of the torch module's `state_dict`, by name. They say how
            many layers there are, and what is shared or learned.
        config: a `tformer.TransformerConfig`, which says the rest.
    """

    def __init__(self, weights: Weights, config: "TransformerConfig") -> None:
        c = self.config = config
        of = parts(
            weights,
            *("encoder", "decoder", "src_embedding"),
            optional=("tgt_embedding", "output", "src_positions", "tgt_positions"),
        )
        layer: dict[str, Any] = {
            "num_heads": c.num_heads,
            "num_kv_heads": c.num_kv_heads,
            "activation": c.activation,
            "norm_first": c.norm_first,
            "eps": c.eps,
        }
        self.encoder = Encoder(of["encoder"], **layer)
        self.decoder = Decoder(of["decoder"], **layer)
        self.src_embedding = TokenEmbedding(of["src_embedding"])
        # Shared ones are in a state_dict under both names, or under one.
        self.tgt_embedding = TokenEmbedding(of["tgt_embedding"] or of["src_embedding"])
        self.output = Linear(of["output"]) if of["output"] else None
        self.src_positions, self.tgt_positions = (
            LearnedPositionalEmbedding(of[name])
            if of[name]
            else SinusoidalPositionalEncoding(c.d_model)
            for name in ("src_positions", "tgt_positions")
        )

    def __call__(
        self,
        src: np.ndarray,
        tgt: np.ndarray,
        *,
        src_key_mask: np.ndarray | None = None,
        tgt_key_mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Score the next token at every position of the target.

        Args:
            src: ids (B, S).
            tgt: ids (B, T), beginning with the start token. Position t sees
                tgt[:, : t + 1].
            src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
            tgt_key_mask: bool (B, T), needed only if padding comes before tokens.

        Returns:
            logits (B, T, V).
        """
        mask = self.source_mask(src, src_key_mask)
        memory = self.encode(src, src_key_mask=mask)  # (B, S, D)
        return self.decode(
            tgt, memory, tgt_key_mask=tgt_key_mask, memory_key_mask=mask
        )  # (B, T, V)

    def embed_source(self, src: np.ndarray) -> np.ndarray:
        """Turn ids (B, S) into vectors with positions (B, S, D)."""
        return self.src_positions(self.src_embedding(src))

    def embed_target(self, tgt: np.ndarray) -> np.ndarray:
        """Turn ids (B, T) into vectors with positions (B, T, D)."""
        return self.tgt_positions(self.tgt_embedding(tgt))

    def source_mask(
        self, src: np.ndarray, key_mask: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return `key_mask`, or if None the ids (B, S) that are not padding."""
        if key_mask is None and self.config.pad_id is not None:
            return src != self.config.pad_id
        return key_mask

    def encode(
        self, src: np.ndarray, *, src_key_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Read the source once, before decoding: ids (B, S) to the memory (B, S, D)."""
        x = self.embed_source(src)  # (B, S, D)
        mask = self.source_mask(src, src_key_mask)
        mask = check_key_mask(mask, *src.shape, name="src_key_mask")
        return self.encoder(x, mask)

    def decode(
        self,
        tgt: np.ndarray,
        memory: np.ndarray,
        *,
        tgt_key_mask: np.ndarray | None = None,
        memory_key_mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Score what follows tgt, ids (B, T), given the memory (B, S, D): (B, T, V)."""
        x = self.decoder(
            self.embed_target(tgt),
            memory,
            check_key_mask(tgt_key_mask, *tgt.shape, name="tgt_key_mask"),
            check_key_mask(memory_key_mask, *memory.shape[:2], name="memory_key_mask"),
            is_causal=True,
        )  # (B, T, D)
        return self.logits(x)

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Score every token of the target's vocabulary: (B, T, D) to (B, T, V)."""
        return self.tgt_embedding.logits(x) if self.output is None else self.output(x)
