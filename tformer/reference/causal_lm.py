"""A language model in NumPy: embedding, blocks, a last norm, logits.

B batch · T length · D d_model · V vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tformer.reference.block import Block
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.heads import KeysValues
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(eq=False)
class CausalLM:
    """Predict each next token of a sequence from the tokens up to it."""

    embedding: TokenEmbedding  # makes logits too, without `output`
    blocks: list[Block]
    embedding_norm: Map | None = None
    positions: Map | None = None  # added to the tokens
    norm: Map | None = None  # the last
    output: Linear | None = None
    logit_scale: float = 1.0
    logit_cap: float | None = None  # c
    per_layer: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    kv_sources: dict[int, int] = field(default_factory=dict)

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Score the next token at every position: ids (B, T) to logits (B, T, V)."""
        x = self.embedding(ids)  # (B, T, D)
        given = None if self.per_layer is None else self.per_layer(ids, x)
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        x = x if self.positions is None else self.positions(x)
        kept: dict[int, list[KeysValues]] = {i: [] for i in self.kv_sources.values()}
        for i, block in enumerate(self.blocks):
            options: dict[str, Any] = {"keep": kept[i]} if i in kept else {}
            if i in self.kv_sources:
                options["keys_values"] = kept[self.kv_sources[i]][0]
            if given is not None:
                options["given"] = given[:, :, i]
            x = block(x, is_causal=True, **options)  # (B, T, D)
        x = x if self.norm is None else self.norm(x)
        logits = self.embedding.logits(x) if self.output is None else self.output(x)
        logits, c = self.logit_scale * logits, self.logit_cap
        return logits if c is None else c * np.tanh(logits / c)
