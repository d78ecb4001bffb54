"""DeepSeek-V3: latent attention, and experts in groups that a bias balances.

DeepSeek-AI 2024 (arXiv:2412.19437). Keys and values of all heads are made of one short
vector of each token, which alone is kept, beside a rotated key that all heads share.
The router's scores are sigmoids. The first layers are dense; one expert is shared.
Layers that guess further tokens are left out here.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, mixtures, one_of, with_defaults
from tformer.models.families.assembling import Options, assemble, only, sizes
from tformer.models.families.rope_words import rope_words, rotary_of
from tformer.nn.latent import LatentAttention
from tformer.nn.rotary_scaling import yarn_factor

OF_EXPERTS: Config = {
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,  # layers that guess further tokens, left out
    "num_mtp_layers": None,  # the same
}
ONLY: Config = {  # words of the released files, with what is implemented
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "moe_layer_freq": 1,
}
DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    **sizes(7168, 18_432, 61, 128, 128),
    **OF_EXPERTS,
    **ONLY,
    **dict.fromkeys(("aux_loss_alpha", "seq_aux", "ep_size")),  # of training
    "model_type": "deepseek_v3",
    "vocab_size": 129_280,
    "max_position_embeddings": 4096,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "qk_head_dim": None,  # the sum of the two, which Hugging Face writes too
    "v_head_dim": 128,
    "rope_interleave": True,
}
YARN = {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1}
YARN |= {"mscale": 1.0, "mscale_all_dim": 1.0}
YARN |= {"original_max_position_embeddings": 4096}
SIZES: dict[str, Config] = {
    "deepseek-v3": {"max_position_embeddings": 163_840, "rope_scaling": YARN}
}
EXPERT_NAMES = (
    ("mlp.gate.e_score_correction_bias", "mlp.router.selection_bias"),
    ("mlp.shared_experts.", "mlp.shared."),
    *mixtures.NAMES,
)
NAMES = (
    ("q_a_proj.", "q_down."),
    ("q_a_layernorm.", "q_norm."),
    ("q_b_proj.", "q_proj."),
    ("kv_a_proj_with_mqa.", "kv_down."),
    ("kv_a_layernorm.", "kv_norm."),
    ("kv_b_proj.", "kv_up."),
    *EXPERT_NAMES,
)


def absent(c: Config) -> tuple[str, ...]:
    """Say which name the last projection of queries does not have."""
    return (".q_proj.",) if c["q_lora_rank"] else (".q_b_proj.",)


rename = mixtures.rename._replace(names=NAMES, defaults=DEFAULTS, absent=absent)


def latent_sizes(c: Config) -> Options:
    """Say what latent attention has, but for its scale."""
    only(c, attention_bias=False)
    H = c["num_attention_heads"]
    one_of("num_key_value_heads", c["num_key_value_heads"], [H, None])
    return {
        "kv_rank": c["kv_lora_rank"],
        "head_dim": c["qk_nope_head_dim"],
        "value_dim": c["v_head_dim"],
        "q_rank": c["q_lora_rank"],
        "cast_first": True,
        "dropout": c["attention_dropout"],
    }


def attention(c: Config, _: int) -> Options:
    """Say what latent attention has; the scores get YaRN's mscale twice."""
    words = rope_words(c)
    sharper = yarn_factor(words.get("factor") or 1, words.get("mscale_all_dim") or 0)
    width = c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    return {**latent_sizes(c), "scale": width**-0.5 * sharper**2}


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate the part of a head that is for it, pair by pair."""
    layout = "pairs" if c["rope_interleave"] else "halves"
    return [rotary_of(c, c["qk_rope_head_dim"], layout=layout)] * len(kinds)


def latent(c: Config, _: int, options: Options) -> nn.Module:
    """Make latent attention in place of multi-head attention."""
    options.pop("window")
    return LatentAttention(c["hidden_size"], c["num_attention_heads"], **options)


def network(c: Config, layer: int) -> nn.Module:
    """Make the network of a layer: experts, some of them shared, or a dense one."""
    return mixtures.network(
        c,
        layer,
        c["n_routed_experts"],
        c["moe_intermediate_size"],
        shared=c["n_shared_experts"] * c["moe_intermediate_size"],
        scores="sigmoid",
        renormalise=c["norm_topk_prob"],
        scale=c["routed_scaling_factor"],
        groups=c["n_group"],
        top_groups=c["topk_group"],
    )


PARTS = llama.PARTS._replace(
    attention=attention, rotaries=rotaries, mixer=latent, network=network
)


def build(config: Config) -> CausalLM:
    """Build a DeepSeek-V3 with random weights; arguments, errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    only(c, **ONLY, sliding_window=None)
    return assemble(c, PARTS)
