"""Small models of Hugging Face, from a folder and from memory: the same numbers."""

import json

import pytest
import torch

from double_everywhere import DoubleEverywhere
from published_sizes import COUNTS
from tformer import greedy
from tformer.interop import from_huggingface, to_huggingface
from tformer.models.families import FAMILIES, family_of
from theirs import MODELS, V, equal, loops, make

transformers = pytest.importorskip("transformers")

B, T, NEW = 2, 11, 9
FIRST = 9  # so many tokens at once, then one by one: beyond where LongRoPE changes
KINDS = sorted({*FAMILIES} - {"tformer", *COUNTS})  # those are in test_parity_sparse


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


@pytest.mark.parametrize("name", MODELS)
def test_the_same_logits_and_the_same_text(name, tmp_path):
    theirs, ids = make(name), torch.randint(V, (B, T))
    theirs.save_pretrained(tmp_path)
    ours = from_huggingface(tmp_path)
    wanted = theirs(ids).logits
    assert wanted.std() > 0.05
    equal(ours(ids), wanted)
    cache = ours.new_cache(T)
    parts = [ours(ids[:, :FIRST], cache=cache)]
    parts += [ours(ids[:, t : t + 1], cache=cache) for t in range(FIRST, T)]
    equal(torch.cat(parts, dim=1), wanted)
    for prompt in (ids, ids[:, :6]):
        text = theirs.generate(prompt, max_new_tokens=NEW, do_sample=False)
        text = text[:, prompt.shape[1] :]
        assert text.shape == (B, NEW)
        assert torch.equal(greedy(ours, prompt, max_len=NEW), text)
    assert len(text.unique()) > 1
    equal(from_huggingface(theirs)(ids), wanted)


@pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n][0] != "kimi_linear"])
def test_what_we_write_is_theirs_again(name, tmp_path):
    theirs, ids = make(name), torch.randint(V, (B, T))
    to_huggingface(from_huggingface(theirs), tmp_path)
    again, told = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, output_loading_info=True, **loops(name)
    )
    assert not any(told.values()), told
    equal(again.eval()(ids).logits, theirs(ids).logits)


def test_what_is_not_written_is_refused(tmp_path):
    ours = from_huggingface(make("Kimi Linear"))
    with pytest.raises(ValueError, match="kimi_linear is read and not written: a mat"):
        to_huggingface(ours, tmp_path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", MODELS)
def test_a_padded_batch(name, tmp_path):
    """Padding comes last, and no mask is needed; prompts may have any lengths.

    Theirs are told where it is, and for writing it comes first.
    """
    theirs = make(name)
    theirs.save_pretrained(tmp_path)
    ours = from_huggingface(tmp_path)
    ids, lengths = torch.randint(1, V, (3, T)), torch.tensor([T, T - 4, T - 7])
    real = torch.arange(T) < lengths[:, None]
    wanted = theirs(ids, attention_mask=real.long()).logits
    equal(ours(ids)[real], wanted[real])
    prompts = [row[:n] for row, n in zip(ids, lengths, strict=True)]
    if "long" in name:  # theirs count padding as text; ours do not
        prompts = [row[:FIRST] for row in prompts if len(row) > FIRST]
    first = [torch.cat((torch.zeros(T, dtype=int), row))[-T:] for row in prompts]
    mask = [torch.arange(T) >= T - len(row) for row in prompts]
    text = theirs.generate(
        torch.stack(first),
        attention_mask=torch.stack(mask).long(),
        max_new_tokens=NEW,
        do_sample=False,
        pad_token_id=0,
    )
    assert torch.equal(greedy(ours, prompts, max_len=NEW), text[:, T:])


@pytest.mark.parametrize("name", MODELS)
def test_from_shards_in_half_precision_and_a_config_of_transformers_4(name, tmp_path):
    theirs = make(name)
    for x in theirs.state_dict(keep_vars=True).values():
        x.data = x.bfloat16()
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    file = tmp_path / "config.json"
    config = of_transformers_4(json.loads(file.read_text()))
    for word in {"layer_types", "no_rope_layers"} - MODELS[name][1].keys():
        config.pop(word, None)  # which 4 computed, and did not write
    file.write_text(json.dumps(config))
    ours = from_huggingface(tmp_path)
    assert {p.dtype for p in ours.parameters()} == {torch.bfloat16}
    ids = torch.randint(V, (B, T))
    equal(ours.double()(ids), theirs.double()(ids).logits)


def of_transformers_4(config):
    """Write a config as transformers 4 did: the words of the rotation beside others."""
    config = dict(config)
    config["torch_dtype"] = config.pop("dtype")
    rope, kind = config.pop("rope_parameters", None), config["model_type"]
    if rope is None or kind == "ministral3":  # which 4 has not
        return config | ({} if rope is None else {"rope_parameters": rope})
    if "full_attention" in rope:
        near, rope = rope["sliding_attention"], rope["full_attention"]
        if kind == "gemma3_text":
            config["rope_local_base_freq"] = near["rope_theta"]
        elif near["rope_theta"] != rope["rope_theta"]:  # 4 has one base for both
            return config | {
                "rope_parameters": {"sliding_attention": near, "full_attention": rope}
            }
    rope = dict(rope)
    base, part = rope.pop("rope_theta"), rope.pop("partial_rotary_factor", 1.0)
    if kind == "gpt_neox":
        config |= {"rotary_emb_base": base, "rotary_pct": part}
    else:
        config |= {"rope_theta": base, "partial_rotary_factor": part}
    rope["type"] = rope.pop("rope_type", "default")
    if kind == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    return config | {"rope_scaling": None if rope["type"] == "default" else rope}


def filled(ours):
    """Fill in what a family computes of a word that is missing, as theirs do."""
    words = dict(ours)
    heads = words.get("num_attention_heads")
    if "num_key_value_heads" in words:
        words["num_key_value_heads"] = words["num_key_value_heads"] or heads
        if words["model_type"] != "hunyuan_v1_dense":  # whose class needs the word
            words["head_dim"] = words["head_dim"] or words["hidden_size"] // heads
    if words["model_type"] == "t5":
        words |= {"num_decoder_layers": 6, "scale_decoder_outputs": True}
        words |= {"is_gated_act": False, "dense_act_fn": "relu"}
    if words["model_type"] == "marian":
        words["decoder_vocab_size"] = words["vocab_size"]
    if not words.get("use_sliding_window", True):
        words["sliding_window"] = None
    if words.get("layer_types", True) is None:
        small = {**words, "sliding_window": words["sliding_window"]}
        family = family_of(words)
        words["layer_types"] = [*family.PARTS.layer_types(small)]
    if words.get("no_rope_layers", True) is None:
        words["no_rope_layers"] = [int(x > 0) for x in family_of(words).rotates(ours)]
    if "per_layer_config" in words:
        far = [i for i, kind in enumerate(words["layer_types"]) if kind[0] == "f"]
        wide = {"head_dim": words["global_head_dim"]}
        words["per_layer_config"] = {f"{i:02}": wide for i in far}
    return words


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_config_leaves_out_is_as_theirs(kind):
    theirs = transformers.AutoConfig.for_model(kind).to_dict()
    ours = dict(family_of({"model_type": kind}).DEFAULTS)
    words = filled(ours)
    written = theirs.pop("rope_parameters", None)
    if kind == "ministral3":
        asked = words.pop("rope_parameters")
        rest = {"type": "yarn", "rope_type": "yarn", "max_position_embeddings": 262_144}
        assert written == asked | rest
    elif written is not None:
        assert rope_of(kind, words) == written
    same = words.keys() & theirs
    assert len(same) > 8
    for word in same:
        assert words[word] == theirs[word], word


def rope_of(kind, words):
    """Write the rotation of a family's defaults as transformers 5 does."""
    if kind == "gemma4_text":
        return words["rope_parameters"]
    theta = words.get("rotary_emb_base", words["rope_theta"])
    rope = {"rope_theta": theta, "rope_type": "default"}
    if kind in ("olmo3", "gemma3_text"):
        near = words.get("rope_local_base_freq", theta)
        near = {"rope_theta": near, "rope_type": "default"}
        return {"sliding_attention": near, "full_attention": rope}
    if kind in ("gpt_neox", "phi3"):
        part = words.get("rotary_pct", words["partial_rotary_factor"])
        rope["partial_rotary_factor"] = part
    return rope
