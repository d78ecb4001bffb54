"""Small configs of Hugging Face's families with experts and with linear attention."""

YARN = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "beta_fast": 2}
YARN |= {"beta_slow": 0.5, "original_max_position_embeddings": 64}
MSCALES = {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 10}
LATENT = {"kv_lora_rank": 7, "q_lora_rank": 9, "qk_rope_head_dim": 8}
LATENT |= {"v_head_dim": 6, "qk_nope_head_dim": 5, "num_key_value_heads": 6}
GROUPS = {"n_routed_experts": 12, "n_group": 4, "topk_group": 2}
DEEPSEEK = {**LATENT, **GROUPS, **MOE, "num_experts_per_tok": 3}
DEEPSEEK |= {"first_k_dense_replace": 1, "n_shared_experts": 2}
GLM = {**GROUPS, **MOE, "attention_bias": True, "head_dim": 8}
DELTA = {"linear_key_head_dim": 4, "linear_value_head_dim": 6, "head_dim": 8}
DELTA |= {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
NEXT = {**DELTA, **MOE, "num_experts": 5, "shared_expert_intermediate_size": 9}
KIMI = {**LATENT, "q_lora_rank": None, "moe_intermediate_size": 10, "num_experts": 12}
KIMI |= {"num_experts_per_token": 3, "num_expert_group": 4, "topk_group": 2}
KIMI |= {"num_shared_experts": 2, "linear_head_dim": 4, "linear_num_heads": 3}
TIED = {"tie_word_embeddings": True}
MODELS = {
    "Mixtral": ("mixtral", {"num_local_experts": 5}),
    "Mixtral, a window": (
        "mixtral",
        {"num_local_experts": 3, "sliding_window": 5, "head_dim": 10, **TIED},
    ),
    "Qwen3-MoE": ("qwen3_moe", {**MOE, "num_experts": 5, "head_dim": 10}),
    "Qwen3-MoE, dense layers": (
        "qwen3_moe",
        {**MOE, "num_experts": 5, "norm_topk_prob": True, "attention_bias": True}
        | {"mlp_only_layers": [1], "decoder_sparse_step": 2, "sliding_window": 3}
        | {"use_sliding_window": True},
    ),
    "gpt-oss": (
        "gpt_oss",
        {"num_local_experts": 5, "num_experts_per_tok": 3, "sliding_window": 4}
        | {"head_dim": 16, "swiglu_limit": 0.5, "rope_parameters": YARN},
    ),
    "gpt-oss, other layers": (
        "gpt_oss",
        {"num_local_experts": 5, "num_experts_per_tok": 1, "attention_bias": False}
        | {"layer_types": 2 * ["full_attention", "sliding_attention"]}
        | {"head_dim": 16, "sliding_window": 2, "swiglu_alpha": 1.1, **TIED},
    ),
    "DeepSeek-V3": ("deepseek_v3", DEEPSEEK),
    "DeepSeek-V3, YaRN": (
        "deepseek_v3",
        {**DEEPSEEK, "rope_parameters": MSCALES, "rope_interleave": False, **TIED},
    ),
    "DeepSeek-V3, queries of x": (
        "deepseek_v3",
        {**DEEPSEEK, "q_lora_rank": None, "norm_topk_prob": False, "topk_group": 4}
        | {"rope_parameters": {**YARN, "attention_factor": 1.2}},
    ),
    "GLM-4.5": ("glm4_moe", {**GLM, "use_qk_norm": True}),
    "GLM-4.5, all rotated": (
        "glm4_moe",
        {**GLM, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 2}
        | {"rope_parameters": {"rope_theta": 50.0, "partial_rotary_factor": 1.0}},
    ),
    "MiniMax-M2": (
        "minimax_m2",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 8}
        | {"rotary_dim": 4},
    ),
    "Qwen3-Next": ("qwen3_next", NEXT),
    "Qwen3-Next, other layers": (
        "qwen3_next",
        {**NEXT, "mlp_only_layers": [2], "norm_topk_prob": False, **TIED}
        | {"linear_conv_kernel_dim": 3, "attention_bias": True}
        | {"layer_types": 2 * ["full_attention", "linear_attention"]},
    ),
    "Qwen3.5": ("qwen3_5_text", DELTA),
    "Qwen3.5, as many heads": (
        "qwen3_5_text",
        {**DELTA, "linear_num_key_heads": 4, "rms_norm_eps": 0.1, **TIED},
    ),
    "Kimi Linear": ("kimi_linear", {**KIMI, "num_hidden_layers": 5}),
    "Kimi Linear, other layers": (
        "kimi_linear",
        {**KIMI, "q_lora_rank": 9, "moe_renormalize": False}
        | {"layer_types": 2 * ["full_attention", "linear_attention"]}
        | {"mlp_layer_types": ["sparse", "dense", "sparse", "sparse"]}
        | {"linear_conv_kernel_dim": 3},
    ),
}
