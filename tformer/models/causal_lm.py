"""A language model: embedding, blocks, a norm, logits.

B batch · T length · D d_model · V vocabulary · N blocks
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tformer.checks import check_above_0, check_id
from tformer.nn.block import Block
from tformer.nn.cache import ModelCache
from tformer.nn.embedding import TokenEmbedding


class CausalLM(nn.Module):
    """Predict each next token of a sequence from the tokens up to it.

    `tformer.models.families` builds GPT-2, Qwen3 and others; any parts will do.

    Args:
        embedding: its matrix (V, D) makes the logits too, if there is no `output`.
        blocks: N of them.
        norm: before the logits; None after post-norm, which ends with one.
        embedding_norm: of the embedded tokens.
        positions: added to them, from a `start` on.
        output: maps (B, T, D) to logits.
        dropout: probability in [0, 1), of the embedded tokens.
        logit_scale: factor of the logits.
        logit_cap: c > 0 bounds each logit: c · tanh(logit / c).
        max_len: the longest sequence that the model is for.
        pad_id: the token after a short sequence, which a loss leaves out.
        config: what a family was built from, so that it can be saved.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        blocks: Iterable[Block],
        norm: nn.Module | None,
        *,
        max_len: int,
        embedding_norm: nn.Module | None = None,
        positions: nn.Module | None = None,
        output: nn.Linear | None = None,
        dropout: float = 0.0,
        logit_scale: float = 1.0,
        logit_cap: float | None = None,
        pad_id: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.embedding, self.positions = embedding, positions
        self.embedding_norm = embedding_norm
        self.dropout = nn.Dropout(dropout) if dropout else None
        self.blocks, self.norm, self.output = nn.ModuleList(blocks), norm, output
        if not self.blocks:
            raise ValueError("blocks (none) must be at least 1")
        self.logit_scale, self.logit_cap = logit_scale, logit_cap
        self.vocab_size, self.d_model = embedding.vocab_size, embedding.d_model
        self.max_len, self.pad_id = max_len, pad_id
        self.config = dict(config or {})
        check_above_0(logit_cap=logit_cap)
        if pad_id is not None:
            check_id("pad_id", pad_id, self.vocab_size)

    def reset_parameters(self, std: float = 0.02) -> None:
        """Draw matrices from N(0, std²), the last of each sub-layer with std / √(2N).

        Radford et al. 2019, section 2.3. Each of the 2N sub-layers adds to one sum, the
        residual stream: 2N independent terms with the variance s² / (2N) sum to s².
        Biases become 0. Other vectors, such as the gains of norms, stay as they are.
        """
        for name, parameter in self.named_parameters():
            last = "out_proj.weight", "linear2.weight", "down_proj.weight"
            if parameter.ndim > 1:
                shrink = math.sqrt(2 * len(self.blocks)) if name.endswith(last) else 1.0
                nn.init.normal_(parameter, std=std / shrink)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self, ids: Tensor, *, cache: ModelCache | None = None, last_only: bool = False
    ) -> Tensor:
        """Score the next token at every position.

        Args:
            ids: (B, T). Position t sees ids[:, : t + 1], or the window of it.
            cache: of `new_cache`. The ids are then only what is new since the last
                call: their positions start at cache.length.
            last_only: score what follows the last position only: (B, 1, V).

        Returns:
            logits (B, T, V).
        """
        x = self.states(ids, cache=cache)  # (B, T, D)
        return self.logits(x[:, -1:] if last_only else x)

    def states(
        self,
        ids: Tensor,
        *,
        cache: ModelCache | None = None,
        positions: Tensor | None = None,
        attn_mask: Tensor | None = None,
    ) -> Tensor:
        """Compute that from which `logits` are made: (B, T) to (B, T, D).

        Tokens that do not follow each other, as in a tree of drafts, are given their
        `positions`, (T,) or (B, T), and in `attn_mask` what each sees of all before it.
        """
        x = self.embedding(ids)  # (B, T, D)
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        start = {"start": 0 if cache is None else cache.length}
        at = {} if positions is None else {"positions": positions}
        x = x if self.positions is None else self.positions(x, **(at or start))
        x = x if self.dropout is None else self.dropout(x)
        for i, block in enumerate(self.blocks):
            own = None if cache is None else cache.blocks[i]
            x = block(x, None, attn_mask, is_causal=True, cache=own, **at)  # (B, T, D)
        return x if self.norm is None else self.norm(x)

    def logits(self, x: Tensor) -> Tensor:
        """Score every token of the vocabulary: (B, T, D) to (B, T, V)."""
        make = self.embedding.logits if self.output is None else self.output
        logits = make(x)
        logits = logits if self.logit_scale == 1 else self.logit_scale * logits
        cap = self.logit_cap
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def new_cache(self, max_len: int) -> ModelCache:
        """Make an empty cache for sequences of so many tokens."""
        blocks: Iterable[Any] = self.blocks
        return ModelCache(block.new_cache(max_len) for block in blocks)
