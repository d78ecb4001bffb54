"""The whole Transformer: embeddings, encoder, decoder, and logits from the same matrix.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from typing import Any

from torch import Tensor, nn

from tformer.checks import check_key_mask
from tformer.models.config import TransformerConfig
from tformer.nn.cache import ModelCache
from tformer.nn.decoder import transformer_decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import transformer_encoder
from tformer.nn.linear import Linear
from tformer.nn.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)


class Transformer(nn.Module):
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c = self.config = config
        names = ("dropout", "num_kv_heads", "activation", "norm_first", "eps", "bias")
        options = {name: getattr(c, name) for name in names}
        sizes = c.d_model, c.num_heads, c.d_ff
        self.encoder = transformer_encoder(*sizes, c.num_encoder_layers, **options)
        self.decoder = transformer_decoder(*sizes, c.num_decoder_layers, **options)
        # Glorot's uniform for the matrices, as in torch; the paper does not say.
        # Biases 0, gains 1; the embeddings draw their own.
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

        self.src_embedding = TokenEmbedding(c.vocab_size, c.d_model)
        tgt_size = c.tgt_vocab_size or c.vocab_size
        if c.tgt_vocab_size is not None:
            own = TokenEmbedding(tgt_size, c.d_model)
            self.tgt_embedding = own  # type: ignore[misc] # torch keeps it
        self.output = None
        if not c.tie_embeddings:  # drawn as torch draws: uniform within 1 / √D
            self.output = Linear(c.d_model, tgt_size, bias=False)

        self.src_positions = self._positions()
        # Sinusoids are alike on both sides; learned positions are each side's own.
        self.tgt_positions = self._positions()
        self.dropout = nn.Dropout(c.dropout) if c.dropout else nn.Identity()
        self.vocab_size, self.d_model = tgt_size, c.d_model
        self.max_len, self.pad_id = c.max_len, c.pad_id

    @property
    def tgt_embedding(self) -> Any:
        """The target's embedding; with one vocabulary the source's, whatever it is."""
        return dict(self.named_children()).get("tgt_embedding", self.src_embedding)

    def _positions(self) -> SinusoidalPositionalEncoding | LearnedPositionalEmbedding:
        c = self.config
        if c.positions == "learned":
            return LearnedPositionalEmbedding(c.max_len, c.d_model)
        # The table grows when a longer sequence comes, whatever a config promises.
        return SinusoidalPositionalEncoding(c.d_model, max_len=min(c.max_len, 4096))

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
        return self.dropout(self.src_positions(self.src_embedding(src)))

    def embed_target(self, tgt: Tensor, *, start: int = 0) -> Tensor:
        """Turn ids (B, T) into vectors (B, T, D), with positions from `start` on."""
        return self.dropout(self.tgt_positions(self.tgt_embedding(tgt), start=start))

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
        return self.tgt_embedding.logits(x) if self.output is None else self.output(x)
