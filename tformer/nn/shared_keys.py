"""Attention whose keys and values are another layer's, or whose values are its keys.

B batch · T new tokens · S all tokens so far · D d_model · H heads · G key/value heads ·
Dh width of a head
"""

from typing import Any

from torch import Tensor, nn

from tformer.nn.cache import Cache, KeysValues, KeyValueCache
from tformer.nn.heads import MultiHeadAttention, split_heads


class Passing:
    """What stands in the place of a cache, and holds what one call attends to.

    Args:
        cache: which keeps it; None where nothing is kept.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache
        self.length = 0 if cache is None else cache.length
        self.held: KeysValues | None = None  # each (B, G, S, Dh)

    def append(self, key: Tensor, value: Tensor) -> KeysValues:
        """Keep new keys and values; return all that the newest may see."""
        new = key, value
        self.held = new if self.cache is None else self.cache.append(*new)
        return self.held


class Reading:
    """What stands in the place of a cache, and gives the keys of another layer.

    Args:
        source: of the other layer, which has been called.
    """

    def __init__(self, source: Passing) -> None:
        if source.held is None:
            raise ValueError("source holds nothing: its layer must be called first")
        self.length, self.held = source.length, source.held

    def append(self, *_: Tensor) -> KeysValues:
        """Return the keys and values of the other layer."""
        return self.held


class NoCache:
    """The place of a layer that keeps nothing: it attends to keys of another one."""

    length = nbytes = 0

    def append(self, key: Tensor, value: Tensor) -> KeysValues:  # noqa: ARG002
        """Raise: the other layer keeps them."""
        raise ValueError("a layer with shared_kv has no keys and values to keep")

    def reorder(self, rows: Tensor) -> None:
        """Change nothing."""

    def truncate(self, length: int) -> None:
        """Change nothing."""

    def copy(self, max_len: int) -> "NoCache":  # noqa: ARG002
        """Return another one."""
        return NoCache()


class SharedKeysAttention(MultiHeadAttention):
    """Multi-head attention with fewer keys and values of its own, as in Gemma 4.

    Args:
        d_model: width D.
        num_heads: heads H.
        v_norm: maps values (B, G, S, Dh) to the same, such as `RMSNorm(Dh)`.
        k_eq_v: keys, before their norm and rotation, are values too: there is no
            `v_proj` (Gemma 4's 31B, where a layer sees all tokens).
        shared_kv: keys and values are another layer's, whose `Reading` stands in the
            place of the cache: there is no `k_proj` either (Brandon et al. 2024,
            arXiv:2405.12981, section 2).
        options: further ones of `MultiHeadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        v_norm: nn.Module | None = None,
        k_eq_v: bool = False,
        shared_kv: bool = False,
        **options: Any,
    ) -> None:
        norms = (options.get("k_norm"), v_norm)
        if shared_kv and (k_eq_v or norms != (None, None)):
            raise ValueError("shared_kv leaves nothing to k_norm, v_norm and k_eq_v")
        super().__init__(d_model, num_heads, **options)
        self.v_norm, self.k_eq_v, self.shared_kv = v_norm, k_eq_v, shared_kv
        for name in ("k_proj", "v_proj")[0 if shared_kv else 1 if k_eq_v else 2 :]:
            setattr(self, name, None)

    def reset_parameters(self) -> None:
        """Draw new weights as `MultiHeadAttention` does, when all are there."""
        if self.k_proj is not None and self.v_proj is not None:
            super().reset_parameters()

    def project(self, key: Tensor, value: Tensor, **at: object) -> KeysValues:
        """Make keys and values (B, G, S, Dh) of `key` and `value`, both (B, S, D)."""
        if self.shared_kv:
            return key, value  # which a `Reading` puts its own in the place of
        if self.k_eq_v and value is not key:
            raise ValueError("value must be key, or not given, with k_eq_v")
        if not self.k_eq_v:
            k, v = super().project(key, value, **at)
        else:
            v = split_heads(self.k_proj(key), self.num_kv_heads)
            k = self.place(v, self.k_norm, **at)
        return k, v if self.v_norm is None else self.v_norm(v).to(v.dtype)

    def forward(
        self,
        query: Tensor,
        *inputs: Tensor | None,
        cache: Any = None,
        **options: Any,
    ) -> Tensor:
        """Attend as `MultiHeadAttention` does; `shared_kv` needs a `Reading`."""
        given = isinstance(cache, Reading) or options.get("keys_values") is not None
        if self.shared_kv and not given:
            raise ValueError("cache must be a Reading of another layer with shared_kv")
        return super().forward(query, *inputs, cache=cache, **options)

    def new_cache(self, max_len: int) -> Cache:
        """Make the empty cache: of keys and values, or of nothing."""
        if self.shared_kv:
            return NoCache()
        return KeyValueCache(max_len, window=self.window)
