"""A language model whose layers share keys, and are told their token again.

B batch · T length · D d_model · N layers · P width of what one layer is told
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from tformer.models.causal_lm import CausalLM
from tformer.nn.cache import BlockCache, ModelCache
from tformer.nn.shared_keys import Passing, Reading


class SharedLayersLM(CausalLM):
    """A language model in which layers read the keys and values of earlier ones.

    Gemma 3n and Gemma 4; Brandon et al. 2024 (arXiv:2405.12981), section 2.

    Args:
        per_layer: maps ids (B, T) and embedded tokens (B, T, D) to what each block is
            given (B, T, N, P): `PerLayerEmbedding`. None without.
        kv_sources: the earlier block whose keys and values a block attends to, by the
            numbers of both from 0; its attention has `shared_kv`.
        parts: of `CausalLM`.
        options: the same.
    """

    def __init__(
        self,
        *parts: Any,
        per_layer: nn.Module | None = None,
        kv_sources: Mapping[int, int] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*parts, **options)
        self.per_layer, self.kv_sources = per_layer, dict(kv_sources or {})
        for i, source in self.kv_sources.items():
            if source in self.kv_sources or not 0 <= source < i < len(self.blocks):
                rule = "must be an earlier one, with keys and values of its own"
                raise ValueError(f"kv_sources[{i}] ({source}) {rule}")

    def states(
        self, ids: Tensor, *, cache: ModelCache | None = None, **options: object
    ) -> Tensor:
        """Compute that from which `logits` are made: (B, T) to (B, T, D).

        `options` are those of `CausalLM.states`.
        """
        x = self.embedding(ids)  # (B, T, D)
        given = None if self.per_layer is None else self.per_layer(ids, x)
        x = x if self.dropout is None else self.dropout(x)
        passing: dict[int, Passing] = {}
        for i, block in enumerate(self.blocks):
            own: Any = None if cache is None else cache.blocks[i].sequence
            if i in self.kv_sources:
                own = Reading(passing[self.kv_sources[i]])
            elif i in self.kv_sources.values():
                own = passing[i] = Passing(own)
            options |= {} if given is None else {"given": given[:, :, i]}
            own = None if own is None else BlockCache(own)
            x = block(x, is_causal=True, cache=own, **options)  # (B, T, D)
        return x if self.norm is None else self.norm(x)
