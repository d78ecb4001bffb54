"""Families with experts and with linear attention: Hugging Face's classes, whole.

The form is that of test_parity_whole.
"""

import json
import math

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from published_sizes import COUNTS, EACH
from tformer import greedy
from tformer.interop import from_huggingface
from tformer.models.families import family_of

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

B, T, V, NEW = 2, 11, 37, 9
SIZES = {
    "hidden_size": 24,
    "intermediate_size": 14,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
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


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


def make(name):
    """Make a model of transformers with random numbers, also of what is a buffer."""
    kind, options = MODELS[name]
    nothing = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=V, **{**SIZES, **options, **nothing}
    )
    loops = {"attn_implementation": "eager", "experts_implementation": "eager"}
    model = transformers.AutoModelForCausalLM.from_config(config, **loops)
    tied = config.tie_word_embeddings
    for of, x in model.state_dict().items():
        if x.ndim == 1:
            torch.nn.init.normal_(x, mean=float(of.endswith("norm.weight")), std=0.25)
        else:
            large = "embed" in of and not tied
            torch.nn.init.normal_(x, std=2 if large else x.shape[-1] ** -0.5)
    return model.eval()


def hold(ours, wanted):
    assert_close(ours, wanted, rtol=0, atol=1e-12 * float(wanted.abs().max()))


@pytest.mark.parametrize("name", MODELS)
def test_the_same_logits_and_the_same_text(name, tmp_path):
    theirs, ids = make(name), torch.randint(V, (B, T))
    theirs.save_pretrained(tmp_path)
    ours = from_huggingface(tmp_path)
    wanted = theirs(ids).logits
    assert wanted.dtype == torch.float64
    assert wanted.std() > 0.1
    hold(ours(ids), wanted)
    cache = ours.new_cache(T)
    one_by_one = [ours(ids[:, t : t + 1], cache=cache) for t in range(T)]
    hold(torch.cat(one_by_one, dim=1), wanted)
    text = theirs.generate(ids, max_new_tokens=NEW, do_sample=False)[:, T:]
    assert text.shape == (B, NEW)
    assert len(text.unique()) > 2
    assert torch.equal(greedy(ours, ids, max_len=NEW), text)
    hold(from_huggingface(theirs)(ids), wanted)


@pytest.mark.parametrize("name", MODELS)
def test_a_padded_batch(name):
    """Padding comes last, and no mask is needed; prompts may have any lengths.

    Theirs are told where it is, and for writing it comes first.
    """
    theirs = make(name)
    ours = from_huggingface(theirs)
    ids, lengths = torch.randint(1, V, (3, T)), torch.tensor([T, T - 4, T - 9])
    real = torch.arange(T) < lengths[:, None]
    wanted = theirs(ids, attention_mask=real.long()).logits
    hold(ours(ids)[real], wanted[real])
    prompts = [row[:n] for row, n in zip(ids, lengths, strict=True)]
    mask = real.flip(1)
    first = torch.zeros_like(ids).masked_scatter(mask, torch.cat(prompts))
    options = {"max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    text = theirs.generate(first, attention_mask=mask.long(), **options)
    assert torch.equal(greedy(ours, prompts, max_len=NEW), text[:, T:])


@pytest.mark.parametrize("name", ["Mixtral", "DeepSeek-V3", "GLM-4.5", "MiniMax-M2"])
def test_from_shards_and_in_half_precision(name, tmp_path):
    """Routers and their biases stay in float32 where Hugging Face keeps them so."""
    theirs = make(name)
    for x in theirs.state_dict(keep_vars=True).values():
        x.data = x.data.bfloat16()
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 2
    ours = from_huggingface(tmp_path)
    ids = torch.randint(V, (B, T))
    assert ours(ids).isfinite().all()
    hold(ours.double()(ids), theirs.double()(ids).logits)


@pytest.mark.parametrize("name", MODELS)
def test_as_transformers_4_wrote_it_and_experts_in_one_tensor(name, tmp_path):
    theirs, ids = make(name), torch.randint(V, (B, T))
    theirs.save_pretrained(tmp_path)
    [file] = tmp_path.glob("*.safetensors")
    held = {n: x.contiguous() for n, x in theirs.state_dict().items()}
    safetensors.save_file({n: x.clone() for n, x in held.items()}, file)
    config = json.loads((tmp_path / "config.json").read_text())
    rope = config.pop("rope_parameters", {"rope_type": "default"})
    for word in ("rope_theta", "partial_rotary_factor"):
        if word in rope:
            config[word] = rope.pop(word)
    rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = None if rope["type"] == "default" else rope
    if "num_local_experts" in config and MODELS[name][0] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    (tmp_path / "config.json").write_text(json.dumps(config))
    hold(from_huggingface(tmp_path)(ids), theirs(ids).logits)


@pytest.mark.parametrize("kind", COUNTS)
def test_what_a_config_leaves_out_is_as_theirs(kind):
    theirs = transformers.AutoConfig.for_model(kind).to_dict()
    with torch.device("meta"):
        # Half of GLM's head, as it is by default, would be 21: an odd number.
        small = {"num_hidden_layers": 4, "vocab_size": 3, "head_dim": 128}
        ours = family_of({"model_type": kind}).build(small).config
    known = family_of({"model_type": kind}).DEFAULTS
    told = {word: x for word, x in known.items() if x is not None and word in theirs}
    for word, value in told.items():
        if word not in small and word != "sliding_window":
            assert value == theirs[word], word
    rope = {**(ours["rope_parameters"] or {})}
    rope.setdefault("rope_theta", known["rope_theta"])
    rope.setdefault("rope_type", "default")
    if (part := known["partial_rotary_factor"]) != 1:
        rope["partial_rotary_factor"] = part
    assert rope == theirs.get("rope_parameters", rope)  # of Kimi nothing is rotated


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_published_sizes_have_as_many_parameters_as_their_class(kind, name):
    config = transformers.AutoConfig.for_model(
        kind, **family_of({"model_type": kind}).SIZES[name]
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    count = sum(math.prod(x.shape) for x in model.state_dict().values())
    assert count == COUNTS[kind][name]
