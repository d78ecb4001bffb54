"""Llama 2 and 3: what changed since GPT-2 is RMSNorm, RoPE, groups, SwiGLU.

Touvron et al. 2023 (arXiv:2302.13971); Grattafiori et al. 2024 (arXiv:2407.21783).
"""

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, one_of, replace_parts, with_defaults
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.linear import Linear
from tformer.nn.norm import RMSNorm
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies
from tformer.nn.rotary_scaling import (
    scale_linear,
    scale_llama3,
    scale_yarn,
    yarn_factor,
)

DEFAULTS: Config = {
    "model_type": "llama",
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,  # as many as heads
    "head_dim": None,  # hidden_size / num_attention_heads
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    "rope_theta": 10_000.0,
    "rope_scaling": None,  # of transformers 4
    "rope_parameters": None,  # of transformers 5: rope_theta too
}
NAMES = (
    ("model.", ""),
    ("embed_tokens.", "embedding."),
    ("lm_head.", "output."),
    ("layers.", "blocks."),
    ("self_attn.", "attention."),
    ("o_proj.", "out_proj."),
    ("mlp.", "feed_forward."),
    ("input_layernorm.", "attention_norm."),
    ("post_attention_layernorm.", "feed_forward_norm."),
)


def build(config: Config, defaults: Config = DEFAULTS) -> CausalLM:
    """Build a Llama with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, defaults)
    one_of("hidden_act", c["hidden_act"], ["silu"])
    D, V, H = c["hidden_size"], c["vocab_size"], c["num_attention_heads"]
    check_positive(hidden_size=D, num_attention_heads=H)
    head_dim = c["head_dim"] or D // H
    norm = partial(RMSNorm, D, c["rms_norm_eps"], cast_first=True)
    per_head = partial(RMSNorm, head_dim, c["rms_norm_eps"], cast_first=True)
    rotary = rotary_of(c, head_dim)
    blocks = [
        Block(
            MultiHeadAttention(
                D,
                H,
                num_kv_heads=c["num_key_value_heads"],
                head_dim=head_dim,
                bias=c["attention_bias"],
                dropout=c["attention_dropout"],
                q_norm=per_head() if c.get("qk_norm") else None,
                k_norm=per_head() if c.get("qk_norm") else None,
                rotary=rotary,
                window=window,
            ),
            GatedFeedForward(D, c["intermediate_size"], bias=c["mlp_bias"]),
            norm,
        )
        for window in windows_of(c)
    ]
    model = CausalLM(
        TokenEmbedding(V, D, scale=False),
        blocks,
        norm(),
        output=None if c["tie_word_embeddings"] else Linear(D, V, bias=False),
        max_len=c["max_position_embeddings"],
        pad_id=c["pad_token_id"],
        config=c,
    )
    model.reset_parameters()
    return model


def windows_of(c: Config) -> list[int | None]:
    """Return the window of each layer: `layer_types` says which have one."""
    layers, kinds = c["num_hidden_layers"], c.get("layer_types")
    window = c["sliding_window"] if c.get("use_sliding_window", True) else None
    if kinds is None:
        whole = c.get("max_window_layers", 0)  # so many layers come first, without one
        return [window if i >= whole else None for i in range(layers)]
    if len(kinds) != layers:
        raise ValueError(f"layer_types are {len(kinds)}, num_hidden_layers is {layers}")
    for kind in kinds:
        one_of("layer_types", kind, ["full_attention", "sliding_attention"])
    return [window if kind == "sliding_attention" else None for kind in kinds]


def rotary_of(c: Config, head_dim: int) -> RotaryEmbedding:
    """Build what rotates queries and keys, scaled as the config says."""
    rope = {**(c["rope_scaling"] or {}), **(c["rope_parameters"] or {})}
    base = rope.pop("rope_theta", c["rope_theta"])
    kind = rope.pop("rope_type", rope.pop("type", "default"))
    one_of("rope_type", kind, ["default", "linear", "llama3", "yarn"])
    trained = rope.pop("original_max_position_embeddings", c["max_position_embeddings"])
    frequencies, factor = rotary_frequencies(head_dim, base=base), 1.0
    try:
        if kind == "linear":
            frequencies = scale_linear(frequencies, rope.pop("factor"))
        elif kind == "llama3":
            frequencies = scale_llama3(
                frequencies,
                rope.pop("factor"),
                trained_len=trained,
                low=rope.pop("low_freq_factor"),
                high=rope.pop("high_freq_factor"),
            )
        elif kind == "yarn":
            scale = rope.pop("factor")
            factor = rope.pop("attention_factor", None) or yarn_factor(scale)
            frequencies = scale_yarn(
                frequencies,
                scale,
                trained_len=trained,
                low=rope.pop("beta_slow", None) or 1,
                high=rope.pop("beta_fast", None) or 32,
                truncate=rope.pop("truncate", True),
            )
    except KeyError as error:
        raise ValueError(f"rope_type ({kind!r}) needs {error.args[0]}") from error
    for name, value in rope.items():
        raise ValueError(f"rope_type ({kind!r}) has {name} ({value!r}), unknown here")
    return RotaryEmbedding(frequencies, factor=factor, layout="halves")


def rename(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Name Hugging Face's weights as ours."""
    return {
        replace_parts(name, NAMES): x
        for name, x in state.items()
        if not name.endswith("rotary_emb.inv_freq")
    }
