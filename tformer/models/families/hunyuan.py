"""Hunyuan, dense: Llama with a norm of each query and each key, after the rotation.

By the code of `transformers` (`hunyuan_v1_dense`), as there is no report. For long
texts the base of the rotation is raised once for all: NTK scaling by `alpha`, which
files call `dynamic`, though no length changes it.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    assemble,
    head_dim_of,
    norms_of_heads,
    only,
    sizes,
)
from tformer.models.families.renaming import Renaming
from tformer.models.families.rope_words import rope_words, rotary_of
from tformer.nn.qk_norm import LateNormAttention
from tformer.nn.rotary_scaling import scale_ntk

SAID: Options = {  # what released files say of every dense one
    "add_classification_head": False,
    "mlp_bias": False,
    "norm_type": "rms",
    "use_cla": False,
    "use_qk_norm": True,
    "use_rotary_pos_emb": True,
}
# What they say too, and no code reads: parts that are off, and numbers of tokens.
UNREAD = """attention_head_dim cla_share_factor class_num dense_list org_vocab_size
pool_type im_end_id im_newline_id im_start_id mask_init_id pad_id
sep_token_id text_end_id text_start_id"""
DEFAULTS: Config = {
    **llama.DEFAULTS,
    **SAID,
    **dict.fromkeys(UNREAD.split()),
    "model_type": "hunyuan_v1_dense",
    "vocab_size": 290_943,
    "rms_norm_eps": 1e-5,
    "pad_token_id": 0,
    "eod_token_id": 3,
}
OWN_WORDS = (*SAID, *UNREAD.split())
NTK: Options = {"type": "dynamic", "alpha": 1000.0}
# Smaller ones are left out: which widths they have no source said that we know.
SIZES: dict[str, Config] = {
    "hunyuan-7b": {
        **sizes(4096, 14_336, 32, 32, 8),
        "head_dim": 128,
        "max_position_embeddings": 262_144,
        "tie_word_embeddings": True,
        "rope_scaling": NTK,
        "vocab_size": 128_167,
    }
}
NAMES = (
    ("query_layernorm.", "q_norm."),
    ("key_layernorm.", "k_norm."),
    *llama.NAMES,
)
rename = Renaming(NAMES)


def attention(c: Config, layer: int) -> Options:
    """Normalise each head of a query and of a key."""
    only(c, **SAID)
    return {**llama.attention(c, layer), **norms_of_heads(c, llama.norm)}


def mixer(c: Config, _: int, options: Options) -> nn.Module:
    """Make attention that rotates before it normalises."""
    return LateNormAttention(c["hidden_size"], c["num_attention_heads"], **options)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate in every layer alike; with `alpha` the slow pairs turn more slowly."""
    words = rope_words(c)
    if words["rope_type"] != "dynamic":
        return llama.PARTS.rotaries(c, kinds)
    if not words.get("alpha"):
        raise ValueError("rope_type ('dynamic') must have alpha")
    plain = {n: words[n] for n in ("rope_theta", "partial_rotary_factor")}
    rotary = rotary_of(c, head_dim_of(c), {**plain, "rope_type": "default"})
    rotary.frequencies = scale_ntk(rotary.frequencies, words["alpha"])
    return [rotary] * len(kinds)


PARTS = llama.PARTS._replace(attention=attention, mixer=mixer, rotaries=rotaries)


def build(config: Config) -> CausalLM:
    """Build a Hunyuan with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
