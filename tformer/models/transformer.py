"""The paper's Transformer: sinusoids, post-norm, and logits from the same matrix.

D d_model · V vocabulary
"""

from torch import nn

from tformer.models.config import TransformerConfig
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.decoder import transformer_decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import transformer_encoder
from tformer.nn.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)


class Transformer(Seq2SeqLM):
    """Predict each next token of a target from the source and the target so far.

    Vaswani et al. 2017, section 3.

    Args:
        config: sizes and choices.
    """

    config: TransformerConfig
    src_positions: nn.Module
    tgt_positions: nn.Module

    def __init__(self, config: TransformerConfig) -> None:
        c, D = config, config.d_model
        names = ("dropout", "num_kv_heads", "activation", "norm_first", "eps", "bias")
        options = {name: getattr(c, name) for name in names}
        sizes = D, c.num_heads, c.d_ff
        encoder = transformer_encoder(*sizes, c.num_encoder_layers, **options)
        decoder = transformer_decoder(*sizes, c.num_decoder_layers, **options)
        # Glorot's uniform for the matrices, as in torch; the paper does not say.
        # Biases 0, gains 1; the embeddings draw their own.
        for name, parameter in nn.ModuleList([encoder, decoder]).named_parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

        source, target, output = TokenEmbedding(c.vocab_size, D), None, None
        if c.tgt_vocab_size is not None:
            target = TokenEmbedding(c.tgt_vocab_size, D)
        if not c.tie_embeddings:  # drawn as torch draws: uniform within 1 / √D
            output = nn.Linear(D, c.tgt_vocab_size or c.vocab_size, bias=False)
        super().__init__(
            encoder,
            decoder,
            source,
            tgt_embedding=target,
            # Sinusoids are alike on both sides; learned positions are each side's own.
            src_positions=make_positions(c),
            tgt_positions=make_positions(c),
            output=output,
            dropout=c.dropout,
            max_len=c.max_len,
            pad_id=c.pad_id,
        )
        self.config = config


def make_positions(
    c: TransformerConfig,
) -> SinusoidalPositionalEncoding | LearnedPositionalEmbedding:
    """Make what is added to the embedded tokens of one side."""
    if c.positions == "learned":
        return LearnedPositionalEmbedding(c.max_len, c.d_model)
    # The table grows when a longer sequence comes, whatever a config promises.
    return SinusoidalPositionalEncoding(c.d_model, max_len=min(c.max_len, 4096))
