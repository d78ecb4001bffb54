"""Layers that share keys and values, and are told their token again, in NumPy.

B batch · T length · D d_model · G key/value heads · S keys · Dh width of a head
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tformer.reference.causal_lm import CausalLM
from tformer.reference.heads import KeysValues, Map, MultiHeadAttention
from tformer.reference.linear import Linear


@dataclass(eq=False)
class SharedKeysAttention(MultiHeadAttention):
    """Multi-head attention with fewer keys and values of its own."""

    k_proj: Linear | None  # type: ignore[assignment] # None: of another layer
    v_proj: Linear | None  # type: ignore[assignment] # None: keys are values too
    v_norm: Map | None = None  # of each value (Dh,)

    def project(self, key: np.ndarray, value: np.ndarray) -> KeysValues:
        """Make keys and values (B, G, S, Dh) of `key` and `value`, both (B, S, D)."""
        if self.k_proj is None:
            raise ValueError("keys_values must be given without k_proj")
        if self.v_proj is None:
            return replace(self, v_proj=self.k_proj).project(key, key)
        k, v = super().project(key, value)
        return k, v if self.v_norm is None else self.v_norm(v)


@dataclass(eq=False)
class SharedLayersLM(CausalLM):
    """A language model in which layers read the keys and values of earlier ones."""

    per_layer: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    kv_sources: dict[int, int] = field(default_factory=dict)

    def states(self, ids: np.ndarray) -> np.ndarray:
        """Compute that from which the logits are made: (B, T) to (B, T, D)."""
        x = self.embedding(ids)  # (B, T, D)
        given = None if self.per_layer is None else self.per_layer(ids, x)
        kept: dict[int, list[KeysValues]] = {i: [] for i in self.kv_sources.values()}
        for i, block in enumerate(self.blocks):
            options: dict[str, Any] = {"keep": kept[i]} if i in kept else {}
            if i in self.kv_sources:
                options["keys_values"] = kept[self.kv_sources[i]][0]
            if given is not None:
                options["given"] = given[:, :, i]
            x = block(x, is_causal=True, **options)  # (B, T, D)
        return x if self.norm is None else self.norm(x)
