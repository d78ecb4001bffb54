"""Small models of Hugging Face with random weights, one or more of each family."""

import torch
from torch.testing import assert_close

from theirs_sparse import MODELS as SPARSE
from theirs_sparse import YARN

V = 37
SIZES = {
    "hidden_size": 24,
    "intermediate_size": 42,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 20.0, "factor": 8.0}
LLAMA3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 40}  # so that some pairs are mixed
LINEAR = {"rope_type": "linear", "rope_theta": 5.0, "factor": 2.0}
NEAR = {"rope_type": "default", "rope_theta": 7.0}
PARTLY = {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5}
BY_TYPE = {"sliding_attention": NEAR, "full_attention": LINEAR}
TYPES = ["sliding_attention", "full_attention"]
GROWING = {"original_max_position_embeddings": 4, "llama_4_scaling_beta": 0.5}
LONG = {"rope_type": "longrope", "rope_theta": 50.0, "partial_rotary_factor": 1.0}
LONG |= {"short_factor": [1.1, 1.2], "long_factor": [1.5, 3.0]}
NTK = {"rope_type": "dynamic", "rope_theta": 20.0, "alpha": 5.0, "factor": 1.0}
L40 = {"original_max_position_embeddings": 40}
L8 = {"original_max_position_embeddings": 8}
MODELS = {
    "GPT-2": ("gpt2", GPT2),
    "GPT-2, untied": (
        "gpt2",
        {**GPT2, "tie_word_embeddings": False, "n_inner": 50}
        | {"activation_function": "relu", "layer_norm_epsilon": 0.01},
    ),
    "Llama 2": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "Llama 3": ("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "Llama, linear": ("llama", {"rope_parameters": LINEAR}),
    "Llama, YaRN": ("llama", {"rope_parameters": YARN, "head_dim": 16}),
    "Llama, YaRN, a ramp": (
        "llama",
        {"rope_parameters": {**YARN, "attention_factor": 1.3, "truncate": False}}
        | {"head_dim": 16},
    ),
    "Llama, YaRN, two mscales": (
        "llama",
        {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.1}},
    ),
    "Mistral": ("mistral", {"head_dim": 10, "sliding_window": 5, "rms_norm_eps": 0.1}),
    "Qwen2": ("qwen2", {"rms_norm_eps": 0.1}),
    "Qwen2, windows, tied": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2}
        | {"tie_word_embeddings": True},
    ),
    "Qwen3": ("qwen3", {"head_dim": 10, "rms_norm_eps": 0.1}),
    "Qwen3, windows": (
        "qwen3",
        {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2},
    ),
    "OLMo 2": ("olmo2", {"rms_norm_eps": 0.1}),
    "OLMo 2, tied": ("olmo2", {"attention_bias": True, "tie_word_embeddings": True}),
    "OLMo 3": ("olmo3", {"sliding_window": 3}),
    "OLMo 3, YaRN": (
        "olmo3",
        {"sliding_window": 3, "layer_types": 2 * TYPES, "rope_parameters": BY_TYPE},
    ),
    "SmolLM3": ("smollm3", {"no_rope_layer_interval": 2}),
    "SmolLM3, windows": (
        "smollm3",
        {"no_rope_layers": [1, 0, 0, 1], "use_sliding_window": True}
        | {"sliding_window": 3, "tie_word_embeddings": False},
    ),
    "EXAONE 4": (
        "exaone4",
        {"sliding_window": 3, "sliding_window_pattern": 2, "rms_norm_eps": 0.1},
    ),
    "EXAONE 4, no window": (
        "exaone4",
        {"sliding_window": None, "sliding_window_pattern": None}
        | {"layer_types": 4 * TYPES[1:], "rope_parameters": LLAMA3}
        | {"head_dim": 10, "tie_word_embeddings": True},
    ),
    "Granite": (
        "granite",
        {"embedding_multiplier": 3.0, "attention_multiplier": 0.3}
        | {"residual_multiplier": 0.4, "logits_scaling": 0.5},
    ),
    "Cohere2": ("cohere2", {"sliding_window": 3, "layer_norm_eps": 0.1}),
    "Cohere2, other layers": (
        "cohere2",
        {"sliding_window": 3, "layer_types": 2 * TYPES, "logit_scale": 2.0}
        | {"tie_word_embeddings": False, "attention_bias": True},
    ),
    "Gemma 2": (
        "gemma2",
        {"head_dim": 10, "query_pre_attn_scalar": 5, "sliding_window": 3}
        | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    ),
    "Gemma 2, uncapped": (
        "gemma2",
        {"head_dim": 10, "attn_logit_softcapping": None, "attention_bias": True}
        | {"final_logit_softcapping": None, "tie_word_embeddings": False},
    ),
    "Gemma 3": (
        "gemma3_text",
        {"head_dim": 10, "sliding_window": 3, "layer_types": 2 * TYPES},
    ),
    "Gemma 3, scaled": (
        "gemma3_text",
        {"head_dim": 10, "sliding_window": 3, "layer_types": 2 * TYPES}
        | {"rope_parameters": BY_TYPE, "final_logit_softcapping": 3.0},
    ),
    "Gemma 4": (
        "gemma4_text",
        {"head_dim": 10, "global_head_dim": 16, "sliding_window": 3}
        | {"layer_types": 2 * TYPES, "num_kv_shared_layers": 2}
        | {"use_double_wide_mlp": True, "final_logit_softcapping": 3.0}
        | {"hidden_size_per_layer_input": 5, "vocab_size_per_layer_input": V},
    ),
    "Gemma 4, keys for values": (
        "gemma4_text",
        {"head_dim": 10, "global_head_dim": 12, "sliding_window": 3}
        | {"num_hidden_layers": 7, "attention_k_eq_v": True, "rms_norm_eps": 0.1}
        | {"num_global_key_value_heads": 1, "hidden_size_per_layer_input": 0}
        | {"tie_word_embeddings": False},
    ),
    "Phi-3": ("phi3", {"sliding_window": 5, "rms_norm_eps": 0.1}),
    "Phi-3, short": ("phi3", {"rope_parameters": LONG, **L40}),
    "Phi-3, long": ("phi3", {"rope_parameters": LONG, **L8}),
    "Ministral 3": (
        "ministral3",
        {"head_dim": 16, "rope_parameters": {**YARN, **GROWING}},
    ),
    "Hunyuan": (
        "hunyuan_v1_dense",
        {"head_dim": 10, "rms_norm_eps": 0.1, "tie_word_embeddings": True},
    ),
    "Hunyuan, NTK": (
        "hunyuan_v1_dense",
        {"head_dim": 8, "rope_parameters": NTK, "attention_bias": True},
    ),
    "nanochat": ("nanochat", {"rms_norm_eps": 0.1}),
    "nanochat, tied": (
        "nanochat",
        {"attention_bias": True, "tie_word_embeddings": True}
        | {"final_logit_softcapping": 2.0, "rope_parameters": LINEAR},
    ),
    "GPT-NeoX": ("gpt_neox", {"rope_parameters": PARTLY, "layer_norm_eps": 0.1}),
    "GPT-NeoX, not parallel": (
        "gpt_neox",
        {"use_parallel_residual": False, "hidden_act": "gelu_new"}
        | {"hidden_size": 48, "tie_word_embeddings": True},
    ),
    **SPARSE,
}


def loops(name):
    """Ask for the forms in plain torch, which compute in float64."""
    experts = {"experts_implementation": "eager"} if name in SPARSE else {}
    return {"attn_implementation": "eager", **experts}


def make(name):
    """Make a model of transformers with random numbers, gains and biases too."""
    import transformers

    kind, options = MODELS[name]
    sizes = {} if kind == "gpt2" else dict(SIZES)
    if kind == "gpt_neox":
        del sizes["num_key_value_heads"]
    nothing = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=V, **{**sizes, **options, **nothing}
    )
    model = transformers.AutoModelForCausalLM.from_config(config, **loops(name))
    saved = model.state_dict()  # of a tied matrix twice
    for of, x in [*model.named_parameters(), *model.named_buffers()]:
        if of not in saved:
            continue
        if x.ndim == 1:
            torch.nn.init.normal_(x, mean=float(of.endswith("weight")), std=0.25)
        else:  # with these large the text does not stop at one token
            large = "wpe" in of or ("embed" in of and not config.tie_word_embeddings)
            torch.nn.init.normal_(x, std=2 if large else x.shape[-1] ** -0.5)
    return model.eval()


def equal(ours, wanted):
    """Hold logits to theirs, within 1e-12 of the largest."""
    assert wanted.dtype == torch.float64
    assert_close(ours, wanted, atol=1e-12 * wanted.abs().max().item(), rtol=0)
