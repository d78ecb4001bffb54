"""Marian, the translators of OPUS-MT: the Transformer as it was in 2017, once more.

Junczys-Dowmunt et al. 2018 (arXiv:1804.00344); Tiedemann and Thottingal 2020. Beside
BART it has sinusoids, all sines before all cosines, and no norm of what is embedded.
From 2017 it differs by SiLU in its networks, and by a bias of the logits.
"""

from collections.abc import Mapping

from torch import Tensor

from tformer.models.families import Config, bart, one_of, with_defaults
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.positions import SinusoidalPositionalEncoding

DEFAULTS: Config = {
    **bart.DEFAULTS,
    "model_type": "marian",
    "vocab_size": 58_101,
    "decoder_vocab_size": None,  # vocab_size
    "share_encoder_decoder_embeddings": True,
    "normalize_embedding": False,
    "static_position_embeddings": True,
    "pad_token_id": 58_100,
}
WIDTH = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
HEADS = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
LENGTH = {"max_position_embeddings": 512, "activation_function": "swish"}
SIZES: dict[str, Config] = {
    "opus-mt-en-de": {**bart.HALF, **WIDTH, **HEADS, **LENGTH, "scale_embedding": True}
}
NAMES = bart.NAMES


def build(config: Config) -> Seq2SeqLM:
    """Build a Marian with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    one_of("normalize_embedding", c["normalize_embedding"], [False])
    one_of("static_position_embeddings", c["static_position_embeddings"], [True])
    shared, size = c["share_encoder_decoder_embeddings"], c["vocab_size"]
    tgt_size = size if shared else c["decoder_vocab_size"] or size
    one_of("decoder_vocab_size", c["decoder_vocab_size"], [None, tgt_size])
    options = {"max_len": c["max_position_embeddings"], "layout": "halves"}
    sides = {
        side: SinusoidalPositionalEncoding(c["d_model"], **options)
        for side in ("src_positions", "tgt_positions")
    }
    own_target = not (shared and c["tie_word_embeddings"])
    return bart.assemble(c, tgt_size, sides, own_target=own_target)


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Name Hugging Face's weights as ours, but the sinusoids, which some files hold."""
    fixed = "embed_positions.weight"
    kept = {n: x for n, x in state.items() if not n.endswith(fixed)}
    return bart.rename(kept, config)
