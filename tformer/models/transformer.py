"""The whole Transformer: embeddings, encoder, decoder, and logits from the same matrix.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from typing import Any, NamedTuple

from torch import Tensor, nn

from tformer.fast.linear import Linear
from tformer.models.config import TransformerConfig
from tformer.nn.cache import ModelCache
from tformer.nn.decoder import Decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import Encoder
from tformer.nn.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)


class AttentionWeights(NamedTuple):
    """The attention weights of a whole Transformer, one tensor for each layer."""

    encoder: tuple[Tensor, ...]  # each (B, H, S, S)
    decoder: tuple[Tensor, ...]  # each (B, H, T, T)
    cross: tuple[Tensor, ...]  # each (B, H, T, S)


class EncoderDecoder(nn.Module):
    """The two stacks without embeddings, from vectors to vectors: `nn.Transformer`.

    Args:
        encoder: makes the memory from the source.
        decoder: reads it.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        src_mask: Tensor | None = None,
        src_key_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Encode src and decode tgt against it.

        Args:
            src: (B, S, D).
            tgt: (B, T, D).
            attn_mask: bool, broadcastable to (B, H, T, T), target to target.
            key_mask: bool (B, T), True = a real token of the target.
            src_mask: bool, broadcastable to (B, H, S, S), source to source.
            src_key_mask: bool (B, S), True = a real token of the source.
            memory_mask: bool, broadcastable to (B, H, T, S), target to source.
            is_causal: hide later positions of the target.
            return_weights: also return the attention weights of every layer.

        Returns:
            (B, T, D), or with `return_weights` a pair of it and `AttentionWeights`.
        """
        memory = self.encoder(
            src, src_mask, key_mask=src_key_mask, return_weights=return_weights
        )
        of_encoder = ()
        if return_weights:
            memory, of_encoder = memory
        output = self.decoder(
            tgt,
            memory,
            attn_mask,
            key_mask=key_mask,
            memory_mask=memory_mask,
            memory_key_mask=src_key_mask,
            is_causal=is_causal,
            return_weights=return_weights,
        )
        if not return_weights:
            return output  # (B, T, D)
        output, of_decoder, across = output
        return output, AttentionWeights(of_encoder, of_decoder, across)


class Transformer(nn.Module):
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        c = self.config = config
        layer: dict[str, Any] = {
            "dropout": c.dropout,
            "num_kv_heads": c.num_kv_heads,
            "activation": c.activation,
            "norm_first": c.norm_first,
            "eps": c.eps,
            "bias": c.bias,
        }
        sizes = (c.d_model, c.num_heads, c.d_ff)
        self.stacks = EncoderDecoder(
            Encoder(*sizes, c.num_encoder_layers, **layer),
            Decoder(*sizes, c.num_decoder_layers, **layer),
        )
        # Glorot's uniform for the matrices, as in torch; the paper does not say.
        # Biases 0, gains 1; the embeddings draw their own.
        for parameter in self.stacks.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
        for name, parameter in self.stacks.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

        self.src_embedding = TokenEmbedding(c.vocab_size, c.d_model)
        self.tgt_embedding = self.src_embedding
        if c.tgt_vocab_size is not None:
            self.tgt_embedding = TokenEmbedding(c.tgt_vocab_size, c.d_model)
        self.output = None
        if not c.tie_embeddings:
            self.output = Linear(c.d_model, self.tgt_embedding.vocab_size, bias=False)

        self.src_positions = self._positions()
        # Sinusoids are alike on both sides; learned positions are each side's own.
        self.tgt_positions = self._positions()
        self.dropout = nn.Dropout(c.dropout)

    def _positions(self) -> SinusoidalPositionalEncoding | LearnedPositionalEmbedding:
        c = self.config
        if c.positions == "learned":
            return LearnedPositionalEmbedding(c.max_len, c.d_model)
        return SinusoidalPositionalEncoding(c.d_model, max_len=c.max_len)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        *,
        src_key_mask: Tensor | None = None,
        tgt_key_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Score the next token at every position of the target.

        Args:
            src: ids (B, S).
            tgt: ids (B, T), beginning with the start token. Position t sees
                tgt[:, : t + 1].
            src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
            tgt_key_mask: bool (B, T). Padding after the target's tokens needs none: it
                is in their future, which is hidden. Give one if padding comes before.
            return_weights: also return the attention weights of every layer.

        Returns:
            logits (B, T, V), or with `return_weights` a pair of them and
            `AttentionWeights`.

        Raises:
            TypeError: ids are not integers, or a mask is not boolean.
            ValueError: an id is outside the vocabulary, shapes do not match, a sequence
                is empty, or longer than learned positions reach.
        """
        if src.shape[:1] != tgt.shape[:1]:
            raise ValueError(
                f"src and tgt must have one batch size: src is {tuple(src.shape)}, "
                f"tgt is {tuple(tgt.shape)}"
            )
        output = self.stacks(
            self.embed_source(src),
            self.embed_target(tgt),
            key_mask=tgt_key_mask,
            src_key_mask=self.source_mask(src, src_key_mask),
            is_causal=True,
            return_weights=return_weights,
        )
        if not return_weights:
            return self.logits(output)  # (B, T, V)
        output, weights = output
        return self.logits(output), weights

    def embed_source(self, src: Tensor) -> Tensor:
        """Turn ids (B, S) into vectors with positions (B, S, D)."""
        return self.dropout(self.src_positions(self.src_embedding(src)))

    def embed_target(self, tgt: Tensor, *, start: int = 0) -> Tensor:
        """Turn ids (B, T) into vectors (B, T, D), with positions from `start` on."""
        return self.dropout(self.tgt_positions(self.tgt_embedding(tgt), start=start))

    def source_mask(self, src: Tensor, key_mask: Tensor | None = None) -> Tensor | None:
        """Return `key_mask`, or if None the ids (B, S) that are not padding."""
        if key_mask is None and self.config.pad_id is not None:
            return src != self.config.pad_id
        return key_mask

    def encode(self, src: Tensor, *, src_key_mask: Tensor | None = None) -> Tensor:
        """Read the source once, before decoding: ids (B, S) to the memory (B, S, D)."""
        mask = self.source_mask(src, src_key_mask)
        return self.stacks.encoder(self.embed_source(src), key_mask=mask)

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
        positions start at cache.length. `tgt_key_mask` speaks of all so far.
        """
        x = self.stacks.decoder(
            self.embed_target(tgt, start=0 if cache is None else cache.length),
            memory,
            key_mask=tgt_key_mask,
            memory_key_mask=memory_key_mask,
            is_causal=True,
            caches=None if cache is None else cache.layers,
        )
        return self.logits(x)

    def new_cache(self, batch_size: int, max_len: int) -> ModelCache:
        """Make an empty cache for so many targets, of so many tokens each."""
        layers: Any = self.stacks.decoder.layers
        return ModelCache([layer.new_cache(batch_size, max_len) for layer in layers])

    def logits(self, x: Tensor) -> Tensor:
        """Score every token of the target's vocabulary: (B, T, D) to (B, T, V)."""
        return self.tgt_embedding.logits(x) if self.output is None else self.output(x)
