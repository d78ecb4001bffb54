"""The whole Transformer in NumPy: embeddings, encoder, decoder and logits.

B batch · S length of the source · T length of the target · D d_model · V vocabulary
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tformer.reference.decoder import Decoder
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.encoder import Encoder
from tformer.reference.linear import Linear
from tformer.reference.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from tformer.reference.weights import Weights, check_shape, parts

if TYPE_CHECKING:
    from tformer.models.config import TransformerConfig


class AttentionWeights(NamedTuple):
    """The attention weights of a whole Transformer, one array for each layer."""

    encoder: tuple[np.ndarray, ...]  # each (B, H, S, S)
    decoder: tuple[np.ndarray, ...]  # each (B, H, T, T)
    cross: tuple[np.ndarray, ...]  # each (B, H, T, S)


class EncoderDecoder:
    """The two stacks without embeddings, from vectors to vectors.

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
        key_mask: np.ndarray | None = None,
        src_mask: np.ndarray | None = None,
        src_key_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
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


class Transformer:
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, figure 1. The twin of `tformer.Transformer`, as it computes in
    `eval()`.

    Args:
        weights: the arrays of the torch module's `state_dict`, by name.
        config: sizes and choices, a `tformer.TransformerConfig`.

    Raises:
        ValueError: the weights are not those of a model with this config.
    """

    def __init__(self, weights: Weights, config: "TransformerConfig") -> None:
        c = self.config = config
        of = _share_out(weights, c)
        layer: dict[str, Any] = {
            "num_heads": c.num_heads,
            "num_kv_heads": c.num_kv_heads,
            "activation": c.activation,
            "norm_first": c.norm_first,
            "eps": c.eps,
        }
        stacks = parts(of["stacks"], "encoder", "decoder")
        self.stacks = EncoderDecoder(
            Encoder(stacks["encoder"], **layer), Decoder(stacks["decoder"], **layer)
        )
        self.src_embedding = TokenEmbedding(of["src_embedding"])
        self.tgt_embedding = self.src_embedding
        if c.tgt_vocab_size is not None:
            self.tgt_embedding = TokenEmbedding(of["tgt_embedding"])
        self.output = None if c.tie_embeddings else Linear(of["output"])
        self.src_positions, self.tgt_positions = (
            LearnedPositionalEmbedding(of[side])
            if c.positions == "learned"
            else SinusoidalPositionalEncoding(c.d_model)
            for side in ("src_positions", "tgt_positions")
        )
        _check_sizes(self)

    def __call__(
        self,
        src: np.ndarray,
        tgt: np.ndarray,
        *,
        src_key_mask: np.ndarray | None = None,
        tgt_key_mask: np.ndarray | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Score the next token at every position of the target.

        Args:
            src: ids (B, S).
            tgt: ids (B, T), beginning with the start token. Position t sees
                tgt[:, : t + 1].
            src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
            tgt_key_mask: bool (B, T), needed only if padding comes before tokens.
            return_weights: also return the attention weights of every layer.

        Returns:
            logits (B, T, V), or with `return_weights` a pair of them and
            `AttentionWeights`.

        Raises:
            TypeError: ids are not integers, or a mask is not boolean.
            ValueError: an id is outside the vocabulary, shapes do not match, a sequence
                is empty, or longer than learned positions reach.
        """
        source, target = self.embed_source(src), self.embed_target(tgt)
        if len(src) != len(tgt):
            raise ValueError(
                f"src and tgt must have one batch size: src is {src.shape}, "
                f"tgt is {tgt.shape}"
            )
        output = self.stacks(
            source,
            target,
            key_mask=tgt_key_mask,
            src_key_mask=self.source_mask(src, src_key_mask),
            is_causal=True,
            return_weights=return_weights,
        )
        if not return_weights:
            return self.logits(output)  # (B, T, V)
        output, weights = output
        return self.logits(output), weights

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
        mask = self.source_mask(src, src_key_mask)
        return self.stacks.encoder(self.embed_source(src), key_mask=mask)

    def decode(
        self,
        tgt: np.ndarray,
        memory: np.ndarray,
        *,
        memory_key_mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Score what follows tgt, ids (B, T), given the memory (B, S, D): (B, T, V)."""
        x = self.stacks.decoder(
            self.embed_target(tgt),
            memory,
            memory_key_mask=memory_key_mask,
            is_causal=True,
        )
        return self.logits(x)

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Score every token of the target's vocabulary: (B, T, D) to (B, T, V)."""
        return self.tgt_embedding.logits(x) if self.output is None else self.output(x)


def _share_out(weights: Weights, c: "TransformerConfig") -> dict[str, Weights]:
    """Share weights out to the parts that a model with this config has."""
    names = ["stacks", "src_embedding"]
    names += [] if c.tgt_vocab_size is None else ["tgt_embedding"]
    names += [] if c.tie_embeddings else ["output"]
    names += ["src_positions", "tgt_positions"] if c.positions == "learned" else []
    # A shared embedding is in a state_dict under both its names, or under one.
    shared = ("tgt_embedding",) if c.tgt_vocab_size is None else ()
    return dict(parts(weights, *names, optional=shared))


def _check_sizes(model: Transformer) -> None:
    """Hold the weights to the config where nothing else does."""
    c = model.config
    tgt_vocab_size = c.vocab_size if c.tgt_vocab_size is None else c.tgt_vocab_size
    for name, part, rows in (
        ("src_embedding", model.src_embedding, c.vocab_size),
        ("tgt_embedding", model.tgt_embedding, tgt_vocab_size),
        ("output", model.output, tgt_vocab_size),
    ):
        if part is not None:
            check_shape(f"{name}.weight", part.weight, (rows, c.d_model))
    for name, layers, count in (
        ("encoder", model.stacks.encoder.layers, c.num_encoder_layers),
        ("decoder", model.stacks.decoder.layers, c.num_decoder_layers),
    ):
        if len(layers) != count:
            raise ValueError(
                f"weights have {len(layers)} {name} layers "
                f"but num_{name}_layers is {count}"
            )
