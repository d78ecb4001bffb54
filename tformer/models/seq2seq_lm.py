"""A model from sequence to sequence: embeddings, encoder, decoder, logits.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_id, check_key_mask
from tformer.nn.cache import ModelCache
from tformer.nn.decoder import Decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import Encoder


class Seq2SeqLM(nn.Module):
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1. The paper's model is `Transformer`;
    `tformer.models.families` builds T5, BART and Marian; any parts will do.

    Args:
        encoder: makes the memory from the source.
        decoder: reads it, and the target so far.
        src_embedding: of the source's tokens.
        tgt_embedding: of the target's; the source's if not given. Its matrix (V, D)
            makes the logits too, if there is no `output`.
        src_positions: added to the embedded source.
        tgt_positions: added to the embedded target, from a `start` on.
        src_norm: of the embedded source; None without one, as in the paper.
        tgt_norm: of the embedded target.
        output: maps (B, T, D) to logits.
        dropout: probability in [0, 1), of what the stacks read.
        logit_scale: factor of the logits.
        logit_bias: (V,), added to the logits; a buffer, which training leaves.
        max_len: the longest sequence that the model is for.
        pad_id: the token after a short source, which no token attends to.
        config: what a family was built from, so that it can be saved.
    """

    config: Any  # of a family the words of its config, of the paper's model its own

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        src_embedding: TokenEmbedding,
        *,
        max_len: int,
        tgt_embedding: TokenEmbedding | None = None,
        src_positions: nn.Module | None = None,
        tgt_positions: nn.Module | None = None,
        src_norm: nn.Module | None = None,
        tgt_norm: nn.Module | None = None,
        output: nn.Linear | None = None,
        dropout: float = 0.0,
        logit_scale: float = 1.0,
        logit_bias: Tensor | None = None,
        pad_id: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.src_embedding = src_embedding
        if tgt_embedding is not None:
            self.tgt_embedding = tgt_embedding  # type: ignore[misc] # torch keeps it
        self.output = output
        self.src_positions, self.tgt_positions = src_positions, tgt_positions
        self.src_norm, self.tgt_norm = src_norm, tgt_norm
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.logit_scale = logit_scale
        self.register_buffer("logit_bias", logit_bias)
        self.logit_bias: Tensor | None
        self.vocab_size = (tgt_embedding or src_embedding).vocab_size
        self.d_model = src_embedding.d_model
        self.max_len, self.pad_id = max_len, pad_id
        self.config = dict(config or {})
        if pad_id is not None:
            check_id("pad_id", pad_id, src_embedding.vocab_size)

    @property
    def tgt_embedding(self) -> Any:
        """The target's embedding; with one vocabulary the source's, whatever it is."""
        return dict(self.named_children()).get("tgt_embedding", self.src_embedding)

    def reset_parameters(self, std: float = 0.02) -> None:
        """Draw matrices from N(0, std²), as BART and Marian do; biases become 0."""
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        *,
        src_key_mask: Tensor | None = None,
        tgt_key_mask: Tensor | None = None,
    ) -> Tensor:
        """Score the next token at every position of the target.

        Args:
            src: ids (B, S).
            tgt: ids (B, T), beginning with the start token. Position t sees
                tgt[:, : t + 1].
            src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
            tgt_key_mask: bool (B, T). Padding after the target's tokens needs none: it
                is in their future, which is hidden. Give one if padding comes before.

        Returns:
            logits (B, T, V).
        """
        if src.shape[:1] != tgt.shape[:1]:
            raise ValueError(
                f"src and tgt must have one batch size: src is {tuple(src.shape)}, "
                f"tgt is {tuple(tgt.shape)}"
            )
        mask = self.source_mask(src, src_key_mask)
        memory = self.encode(src, src_key_mask=mask)  # (B, S, D)
        return self.decode(
            tgt, memory, tgt_key_mask=tgt_key_mask, memory_key_mask=mask
        )  # (B, T, V)

    def embed_source(self, src: Tensor) -> Tensor:
        """Turn ids (B, S) into vectors with positions (B, S, D)."""
        x = self.src_embedding(src)  # (B, S, D)
        x = x if self.src_positions is None else self.src_positions(x)
        return self.dropout(x if self.src_norm is None else self.src_norm(x))

    def embed_target(self, tgt: Tensor, *, start: int = 0) -> Tensor:
        """Turn ids (B, T) into vectors (B, T, D), with positions from `start` on."""
        x = self.tgt_embedding(tgt)  # (B, T, D)
        x = x if self.tgt_positions is None else self.tgt_positions(x, start=start)
        return self.dropout(x if self.tgt_norm is None else self.tgt_norm(x))

    def source_mask(self, src: Tensor, key_mask: Tensor | None = None) -> Tensor | None:
        """Return `key_mask`, or if None the ids (B, S) that are not padding."""
        if key_mask is None and self.pad_id is not None:
            return src != self.pad_id
        return key_mask

    def encode(
        self, src: Tensor, *, src_key_mask: Tensor | None = None, pack: bool = False
    ) -> Tensor:
        """Read the source once, before decoding: ids (B, S) to the memory (B, S, D).

        With `pack` padding is not computed: see `Encoder`.
        """
        x = self.embed_source(src)  # (B, S, D)
        key_mask = self.source_mask(src, src_key_mask)
        attn_mask = check_key_mask(key_mask, *src.shape, name="src_key_mask")
        if pack and key_mask is not None:
            return self.encoder(x, key_mask=key_mask)
        return self.encoder(x, attn_mask)

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        *,
        tgt_key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        cache: ModelCache | None = None,
    ) -> Tensor:
        """Score what follows tgt, ids (B, T), given the memory (B, S, D): (B, T, V).

        With a `cache` of `new_cache`, tgt is only what is new since the last call: its
        positions start at cache.length. `tgt_key_mask` covers all so far.
        """
        start = 0 if cache is None else cache.length
        x = self.embed_target(tgt, start=start)  # (B, T, D)
        (B, T), (rows, S) = tgt.shape, memory.shape[:2]
        attn_mask = check_key_mask(tgt_key_mask, B, start + T, name="tgt_key_mask")
        memory_mask = check_key_mask(memory_key_mask, rows, S, name="memory_key_mask")
        x = self.decoder(
            x, memory, attn_mask, memory_mask, is_causal=True, cache=cache
        )  # (B, T, D)
        return self.logits(x)

    def new_cache(self, max_len: int) -> ModelCache:
        """Make an empty cache for targets of so many tokens."""
        return self.decoder.new_cache(max_len)

    def logits(self, x: Tensor) -> Tensor:
        """Score every token of the target's vocabulary: (B, T, D) to (B, T, V)."""
        # The vectors and not the logits are scaled: there are fewer of them.
        x = x if self.logit_scale == 1 else self.logit_scale * x
        make = self.tgt_embedding.logits if self.output is None else self.output
        logits = make(x)
        return logits if self.logit_bias is None else logits + self.logit_bias
