"""From sequence to sequence in NumPy: embeddings, encoder, decoder and logits.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.checks import check_key_mask
from tformer.reference.block import Decoder, Encoder
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.linear import Linear


@dataclass(eq=False)
class Seq2SeqLM:
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1. It is the twin of the paper's `Transformer` too.
    """

    encoder: Encoder
    decoder: Decoder
    src_embedding: TokenEmbedding
    tgt_embedding: TokenEmbedding  # makes logits too, without `output`
    src_positions: Callable[[np.ndarray], np.ndarray] | None = None
    tgt_positions: Callable[[np.ndarray], np.ndarray] | None = None
    src_norm: Callable[[np.ndarray], np.ndarray] | None = (
        None  # of what is embedded: BART's
    )
    tgt_norm: Callable[[np.ndarray], np.ndarray] | None = None
    output: Linear | None = None
    logit_scale: float = 1.0
    logit_bias: np.ndarray | None = None  # (V,), added to the logits
    pad_id: int | None = None  # the token of padding

    def __call__(
        self,
        src: np.ndarray,
        tgt: np.ndarray,
        *,
        src_key_mask: np.ndarray | None = None,
        tgt_key_mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Score the next token at every position of the target: logits (B, T, V).

        From ids (B, S) and (B, T), which begin with the start token. The masks are True
        at real tokens; of the source it is src != pad_id, if not given.
        """
        mask = self.source_mask(src, src_key_mask)
        memory = self.encode(src, src_key_mask=mask)  # (B, S, D)
        return self.decode(
            tgt, memory, tgt_key_mask=tgt_key_mask, memory_key_mask=mask
        )  # (B, T, V)

    def embed_source(self, src: np.ndarray) -> np.ndarray:
        """Turn ids (B, S) into vectors with positions (B, S, D)."""
        x = self.src_embedding(src)  # (B, S, D)
        x = x if self.src_positions is None else self.src_positions(x)
        return x if self.src_norm is None else self.src_norm(x)

    def embed_target(self, tgt: np.ndarray) -> np.ndarray:
        """Turn ids (B, T) into vectors with positions (B, T, D)."""
        x = self.tgt_embedding(tgt)  # (B, T, D)
        x = x if self.tgt_positions is None else self.tgt_positions(x)
        return x if self.tgt_norm is None else self.tgt_norm(x)

    def source_mask(
        self, src: np.ndarray, key_mask: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return `key_mask`, or if None the ids (B, S) that are not padding."""
        if key_mask is None and self.pad_id is not None:
            return src != self.pad_id
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
        make = self.tgt_embedding.logits if self.output is None else self.output
        logits = make(self.logit_scale * x)
        return logits if self.logit_bias is None else logits + self.logit_bias
