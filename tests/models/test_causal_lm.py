"""CausalLM: equal to GPT with GPT's parts; cached, compiled, saved with every part."""

import dataclasses
import json
import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from pieces import in_pieces, splits
from small_models import SIZES, V, small_gpt
from tformer import GPT, greedy, record_weights, sample
from tformer.files import SEAL, sealed
from tformer.models.attention_parts import LatentParts, RotaryParts
from tformer.models.by_name import make_config
from tformer.models.causal_config import CausalLMConfig, Parts
from tformer.models.causal_lm import CausalLM
from tformer.models.expert_parts import ExpertParts
from tformer.nn.experts import active_parameters
from tformer.training.checkpoint import load_checkpoint, save_checkpoint

B, T = 2, 6
# Odd sizes, but that heads of 8 can be turned.
SMALL = {"vocab_size": V, "d_model": 20, "num_heads": 4, "num_layers": 3, "max_len": 11}
GPTS = {"positions": "learned", "norm": "layer", "feed_forward": "gelu_tanh"}
ALL = {
    "today": {},
    "GPT's": GPTS,
    "nothing added": {"positions": "none"},
    "sinusoidal": {"positions": "sinusoidal"},
    "ALiBi": {"positions": "alibi", "window": 4, "global_every": 2},
    "T5": {"positions": "t5", "score_scale": 1.0, "feed_forward": "relu"},
    "Qwen 3": {"qk_norm": True, "rotary": RotaryParts(base=1e6)},
    "Gemma 2": {
        "norm": "rms_plus_one",
        "placement": "sandwich",
        "feed_forward": "geglu_tanh",
        "window": 2,
        "global_every": 2,
        "softcap": 5.0,
        "score_scale": 0.3,
        "logit_cap": 3.0,
        "scale_embedding": True,
    },
    "Llama 3.1": {
        "rotary": RotaryParts(
            base=5e5, scaling="llama3", scale=8, trained_len=5, low=0.5, high=2
        )
    },
    "Gemma 3": {
        "rotary": RotaryParts(base=1e6, local_base=1e4, scaling="linear", scale=8.0),
        "norm": "rms_plus_one",
        "placement": "sandwich",
        "qk_norm": True,
        "window": 2,
        "global_every": 2,
    },
    "YaRN": {"rotary": RotaryParts(scaling="yarn", scale=4, trained_len=8, high=2)},
    "latent": {"latent": LatentParts(kv_rank=6, q_rank=5, rotary_dim=4, value_dim=7)},
    "gpt-oss": {"window": 3, "global_every": 2, "sinks": True},
    "post-norm": {"placement": "post", "feed_forward": "relu2"},
    "Mixtral": {"experts": ExpertParts(num_experts=5)},
    "DeepSeek": {"experts": ExpertParts(num_experts=4, num_shared=2, scores="sigmoid")},
}
every_kind = pytest.mark.parametrize("parts", ALL.values(), ids=ALL)


def small(parts=None, **changes) -> CausalLM:
    kv_heads = None if "latent" in (parts or {}) else 2
    sizes = {**SMALL, "num_kv_heads": kv_heads, "head_dim": 8, **changes}
    return CausalLM(CausalLMConfig(**sizes, parts=Parts(**(parts or {})))).eval()


@pytest.fixture
def ids():
    return torch.randint(V, (B, T))


def gpt_and_its_copy(randomised, **changes) -> tuple[GPT, CausalLM]:
    """A GPT, and a CausalLM of GPT's parts with its weights under their new names."""
    theirs = randomised(small_gpt(**changes))
    values = dataclasses.asdict(theirs.config)
    parts = Parts(**GPTS | {"feed_forward": values.pop("activation")})
    ours = CausalLM(CausalLMConfig(**values, parts=parts))
    names = {
        "stack.layers.": "blocks.",
        "self_attn.": "attention.",
        "self_attn_residual.norm": "attention_norm",
        "feed_forward_residual.norm": "feed_forward_norm",
        "stack.norm": "norm",
    }
    state = {}
    for name, tensor in theirs.state_dict().items():
        for old, new in names.items():
            name = name.replace(old, new)
        state[name] = tensor
    ours.load_state_dict(state)
    return theirs, ours


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bias": False},
        {"num_kv_heads": 1},
        {"activation": "relu", "tie_embeddings": False},
    ],
)
@pytest.mark.usefixtures("float64")
def test_with_gpts_parts_it_is_gpt(changes, randomised, ids):
    theirs, ours = gpt_and_its_copy(randomised, **changes)
    assert torch.equal(ours(ids), theirs(ids))
    for model in (theirs, ours):
        model(ids).pow(2).sum().backward()
    theirs_by_order = [p.grad.norm() for p in theirs.parameters()]
    assert_close(
        sorted(theirs_by_order), sorted(p.grad.norm() for p in ours.parameters())
    )


def test_in_training_it_drops_what_gpt_drops(randomised, ids):
    theirs, ours = gpt_and_its_copy(randomised, dropout=0.3)
    outputs = []
    for model in (theirs, ours):
        torch.manual_seed(3)
        outputs.append(model.train()(ids))
    assert torch.equal(*outputs)
    assert not torch.equal(ours(ids), ours(ids))


def test_first_weights_are_those_of_gpt():
    """From the same seed: the last matrices smaller, biases 0, gains 1."""
    model = small(GPTS, d_model=152, vocab_size=501, num_layers=8, bias=True)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
            continue
        last = name.endswith(("out_proj.weight", "linear2.weight"))
        wanted = 0.02 / 4 if last else 0.02  # √(2 · 8) = 4
        assert parameter.std().item() == pytest.approx(wanted, rel=0.1), name
    gated = small({"norm": "rms_plus_one", "sinks": True}, d_model=152, num_layers=8)
    for name, parameter in gated.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == 0).all(), name
        elif name.endswith("down_proj.weight"):
            assert parameter.std().item() == pytest.approx(0.02 / 4, rel=0.1), name
    with torch.no_grad():
        gated.norm.weight.fill_(2)
    gated.reset_parameters()
    assert (gated.norm.weight == 2).all()  # a gain is left to its norm


@every_kind
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_every_split(parts, randomised, ids):
    model = randomised(small(parts))
    whole = model(ids)
    assert whole.shape == (B, T, V)
    for pieces in splits(T):
        cache = model.new_cache(T)
        logits = in_pieces(
            lambda begin, end, cache=cache: model(ids[:, begin:end], cache=cache),
            pieces,
        )
        assert_close(logits, whole, atol=1e-12, rtol=0)
        assert cache.length == T
        # Of 2 heads of 8 in 3 layers; with a window a layer keeps two windows at most.
        windows = [model.config.parts.window_of(layer) or T for layer in range(3)]
        tokens = sum(min(T, 2 * window) for window in windows)
        kept = 6 + 4 if "latent" in parts else 2 * 2 * 8  # numbers of a token
        assert cache.nbytes == 8 * B * tokens * kept


@every_kind
@torch.no_grad()
def test_reorder_and_last_only(parts, randomised, ids):
    model = randomised(small(parts))
    cache = model.new_cache(T)
    model(ids[:, :4], cache=cache)
    cache.reorder(torch.tensor([1, 1]))
    last = model(ids[:, 4:], cache=cache, last_only=True)
    text = torch.cat((ids[[1, 1], :4], ids[:, 4:]), dim=1)
    assert last.shape == (B, 1, V)
    assert_close(last, model(text)[:, -1:])


@every_kind
def test_the_future_leaves_the_past_alone(parts, randomised, ids):
    model = randomised(small(parts))
    later = ids.clone()
    later[:, 4] = (later[:, 4] + 1) % V
    before, after = model(ids), model(later)
    # An expert's product has as many rows as tokens: another shape rounds otherwise.
    rounding = 0 if model.config.parts.experts is None else 1e-6
    assert_close(before[:, :4], after[:, :4], atol=rounding, rtol=0)
    assert not torch.allclose(before[:, 4], after[:, 4])


@every_kind
@pytest.mark.usefixtures("float64")
def test_compiled_whole(parts, randomised, ids):
    model = randomised(small(parts))
    torch.compiler.reset()
    fast = torch.compile(model, fullgraph=True, backend="eager")
    assert_close(fast(ids), model(ids))


def test_compiled_by_inductor(ids):
    """Forward and backward by torch's own compiler, once, with the parts of Gemma 2."""
    model = small(ALL["Gemma 2"])
    torch.compiler.reset()
    fast = torch.compile(model, fullgraph=True)
    gradients = []
    for each in (model, fast):
        loss = F.cross_entropy(each(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-3)


@every_kind
@torch.no_grad()
def test_recorded_weights(parts, randomised, ids):
    model = randomised(small(parts))
    with record_weights(model) as weights:
        recorded = model(ids)
    assert_close(recorded, model(ids))
    assert list(weights.by_name()) == [f"blocks.{i}.attention" for i in range(3)]
    for i, kept in enumerate(weights.values()):
        assert_close(kept.sum(-1), torch.ones(B, 4, T))
        window = model.config.parts.window_of(i) or T
        seen = torch.arange(1, T + 1).clamp(max=window)  # of each query
        assert ((kept[..., -T:] > 0).sum(-1) == seen).all()


@every_kind
def test_saved_and_loaded(parts, tmp_path, ids):
    model = small(parts)
    path = tmp_path / "model.safetensors"
    manifest = save_checkpoint(path, model)
    assert manifest["architecture"] == "CausalLM"
    again = load_checkpoint(path).model
    assert again.config == model.config
    assert isinstance(again.config.parts, Parts)
    assert torch.equal(again(ids), model(ids))


def test_the_config_goes_through_json():
    parts = Parts(**ALL["Gemma 2"], experts=ExpertParts(num_experts=4))
    config = CausalLMConfig.tiny(parts=parts)
    values = json.loads(json.dumps(dataclasses.asdict(config)))
    assert make_config("CausalLM", values) == config
    del values["parts"]["sinks"]  # as in a checkpoint that is older than the part
    assert make_config("CausalLM", values) == config
    with pytest.raises(ValueError, match="parts has an unknown 'memory'"):
        make_config("CausalLM", {**values, "parts": {"memory": 3}})
    with pytest.raises(TypeError, match="parts must be Parts, not list"):
        make_config("CausalLM", {**values, "parts": []})


@pytest.mark.parametrize("changes", [{"head_dim": 10**11}, {"d_model": 10**11}])
def test_a_config_of_heads_that_no_memory_holds(changes, tmp_path):
    """Said before anything of that size is made."""
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, small(head_dim=None, d_model=24))
    manifest = json.loads(path.with_suffix(".json").read_text())
    del manifest[SEAL]
    manifest["config"] |= changes
    path.with_suffix(".json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(ValueError, match=r"heads of a width of \d+ cannot be"):
        load_checkpoint(path)


def test_a_long_table_of_sinusoids_is_not_computed_beforehand():
    model = small({"positions": "sinusoidal"}, max_len=10**12)
    assert len(model.positions.table) == 4096


@every_kind
@torch.no_grad()
def test_it_writes(parts, ids):
    model = small(parts)
    text, cached = ids, greedy(model, ids, max_len=4)
    for _ in range(4):
        text = torch.cat((text, model(text)[:, -1:].argmax(-1)), dim=1)
    assert torch.equal(text[:, T:], cached)
    # prompts of two lengths, side by side
    rows = [ids[0].tolist(), ids[1, :2].tolist()]
    both = greedy(model, rows, max_len=4)
    for row, written in zip(rows, both, strict=True):
        assert torch.equal(greedy(model, [row], max_len=4)[0], written)


def test_writing_beyond_max_len(ids):
    """Only learned positions end there; with a window the text is read anew."""
    free = small({"positions": "rotary"})
    assert greedy(free, ids, max_len=20).shape == (B, 20)
    ends = small({"positions": "learned"})
    with pytest.raises(ValueError, match=r"max_len \(20\) must be at most 6"):
        greedy(ends, ids, max_len=20)
    for model in (free, ends):
        assert greedy(model, ids, max_len=20, window=5).shape == (B, 20)
    lengths = []
    hook = free.register_forward_pre_hook(
        lambda _, __, kwargs: lengths.append(kwargs["cache"].length), with_kwargs=True
    )
    greedy(free, ids, max_len=20, window=5)
    hook.remove()
    assert max(lengths) == SMALL["max_len"] - 1
    generator = torch.Generator().manual_seed(0)
    assert sample(free, ids, max_len=15, generator=generator).shape == (B, 15)


def test_all_layers_share_what_is_relative(ids):
    model = small({"positions": "t5"})
    [table] = {block.attention.relative.table for block in model.blocks}
    names = [name for name, _ in model.named_parameters() if "relative" in name]
    assert names == ["blocks.0.attention.relative.table"]
    assert table.shape == (32, 4)
    assert table.std().item() == pytest.approx(0.02, rel=0.3)
    model(ids).pow(2).sum().backward()
    learned = table.grad.abs().sum(1) > 0
    assert learned.tolist() == [True] * T + [False] * (32 - T)  # one distance each
    alibi = small({"positions": "alibi"})
    assert len({block.attention.relative for block in alibi.blocks}) == 1
    plain = small({"positions": "none"})
    assert alibi.state_dict().keys() == plain.state_dict().keys()


def test_experts(ids):
    """They stand where the network stood, of its kind and width, and are balanced."""
    parts = {"feed_forward": "relu2", "experts": ExpertParts(num_experts=5)}
    model = small(parts, d_ff=13)
    for block in model.blocks:
        experts = block.feed_forward
        assert (experts.router.top_k, len(experts.experts)) == (2, 5)
        assert experts.shared is None
        assert {each.activation for each in experts.experts} == {"relu2"}
        assert {each.linear1.weight.shape for each in experts.experts} == {(13, 20)}
    network = 2 * 20 * 13
    dense = small({"feed_forward": "relu2"}, d_ff=13)
    more = active_parameters(model) - active_parameters(dense)
    assert more == 3 * (network + 5 * 20 + 5)  # one more of 2, and the router
    model(ids)
    assert not any(b.feed_forward.router.selection_bias.any() for b in model.blocks)
    model.train()(ids).sum().backward()
    for block in model.blocks:
        assert block.feed_forward.router.selection_bias.abs().max() == 0.001
    shared = small({"experts": ExpertParts(num_experts=3, num_shared=2)}, d_ff=13)
    assert shared.blocks[0].feed_forward.shared.up_proj.weight.shape == (26, 20)


def test_bad_experts(raises):
    with raises(ValueError, "top_k (3) must be in [1, num_experts = 2]"):
        ExpertParts(num_experts=2, top_k=3)
    with raises(ValueError, "scores ('relu') must be one of softmax, sigmoid"):
        ExpertParts(num_experts=2, scores="relu")
    with raises(ValueError, "balance_rate (-1) must be in [0, 1)"):
        ExpertParts(num_experts=2, balance_rate=-1)
    with raises(ValueError, "num_shared (-1) must be at least 0"):
        ExpertParts(num_experts=2, num_shared=-1)
    with raises(TypeError, "renormalise must be a bool, not int"):
        ExpertParts(num_experts=2, renormalise=1)
    with raises(TypeError, "experts must be ExpertParts, not int"):
        Parts(experts=8)
    with raises(ValueError, "experts has an unknown 'count'"):
        Parts(experts={"count": 8})


def test_parameters_of_the_presets():
    def count(config):
        return sum(p.numel() for p in CausalLM(config).parameters())

    # 2 layers of: 64² · 2 + 2 · 64 · 32 (attention), 3 · 64 · 170, two gains
    layer = 2 * 64**2 + 2 * 64 * 32 + 3 * 64 * 170 + 2 * 64
    assert count(CausalLMConfig.tiny()) == 256 * 64 + 2 * layer + 64
    layer = 4 * 128**2 + 3 * 128 * 341 + 2 * 128
    assert count(CausalLMConfig.shakespeare_cpu()) == 65 * 128 + 4 * layer + 128


def test_the_logits_are_capped(ids):
    free, capped = small(), small({"logit_cap": 0.01})
    capped.load_state_dict(free.state_dict())
    assert_close(capped(ids), 0.01 * torch.tanh(free(ids) / 0.01))
    assert capped(ids).abs().max() <= 0.01


def test_the_logits_are_scaled_before_they_are_capped(ids):
    free, scaled = small(), small({"logit_cap": 0.01}, logit_scale=0.2)
    scaled.load_state_dict(free.state_dict())
    assert_close(scaled(ids), 0.01 * torch.tanh(0.2 * free(ids) / 0.01))


class TestConfig:
    def test_what_is_not_given(self):
        config = CausalLMConfig.tiny()
        assert config.parts == Parts()
        assert (config.width_of_head, config.inner_width) == (16, 170)
        plain = CausalLMConfig.tiny(parts=Parts(feed_forward="relu"))
        assert plain.inner_width == 256
        assert CausalLMConfig.tiny(d_ff=7, head_dim=6).inner_width == 7
        assert CausalLMConfig.tiny(head_dim=6).width_of_head == 6

    def test_few_fields(self):
        assert len(dataclasses.fields(CausalLMConfig)) <= 15
        assert len(dataclasses.fields(Parts)) <= 15

    def test_which_layers_have_a_window(self):
        parts = Parts(window=5, global_every=3)
        assert [parts.window_of(i) for i in range(6)] == [5, 5, None, 5, 5, None]
        assert [Parts(window=5).window_of(i) for i in range(2)] == [5, 5]
        assert Parts().window_of(0) is None

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                {"positions": "alibis"},
                "positions ('alibis') must be one of rotary, learned, sinusoidal, "
                "alibi, t5, none",
            ),
            (
                {"norm": "batch"},
                "norm ('batch') must be one of rms, rms_plus_one, layer",
            ),
            (
                {"placement": "first"},
                "placement ('first') must be one of pre, sandwich, post",
            ),
            (
                {"feed_forward": "silu"},
                "feed_forward ('silu') must be one of relu, gelu, gelu_tanh, relu2, "
                "glu, reglu, geglu, geglu_tanh, swiglu",
            ),
            ({"window": 0}, "window (0) must be at least 1"),
            ({"softcap": 0.0}, "softcap (0.0) must be above 0 and finite"),
            ({"logit_cap": math.inf}, "logit_cap (inf) must be above 0 and finite"),
            ({"score_scale": -1.0}, "score_scale (-1.0) must be above 0 and finite"),
            (
                {"global_every": 2},
                "global_every (2) needs a window, which the other layers have",
            ),
        ],
    )
    def test_bad_parts(self, values, message, raises):
        with raises(ValueError, message):
            Parts(**values)

    def test_bad_types(self, raises):
        with raises(TypeError, "qk_norm must be a bool, not str"):
            Parts(qk_norm="false")
        with raises(TypeError, "window must be an int, not float"):
            Parts(window=2.0)
        with raises(TypeError, "bias must be a bool, not int"):
            CausalLMConfig.tiny(bias=1)
        with raises(TypeError, "head_dim must be an int, not str"):
            CausalLMConfig.tiny(head_dim="8")

    def test_bad_sizes(self, raises):
        with raises(ValueError, "logit_scale (0.0) must be above 0 and finite"):
            CausalLMConfig.tiny(logit_scale=0.0)
        with raises(ValueError, "d_model (30) must be divisible by num_heads (4)"):
            CausalLMConfig.tiny(d_model=30)
        message = (
            "head_dim (15) must be even for rotary positions: two numbers make a pair"
        )
        with raises(ValueError, message):
            CausalLMConfig.tiny(d_model=60)
        CausalLMConfig.tiny(d_model=60, parts=Parts(positions="none"))
        with raises(ValueError, "d_model (31) must be even for sinusoids"):
            parts = Parts(positions="sinusoidal")
            CausalLMConfig.tiny(d_model=31, head_dim=8, parts=parts)
        with raises(ValueError, "num_heads (4) must be divisible by num_kv_heads (3)"):
            CausalLMConfig.tiny(num_kv_heads=3)


def test_the_names_in_the_state(ids):
    model = CausalLM(CausalLMConfig(**{**SIZES, "d_model": 18, "num_layers": 1}))
    layer = [f"attention.{x}_proj" for x in ("q", "k", "v", "out")]
    layer += [f"feed_forward.{x}_proj" for x in ("gate", "up", "down")]
    layer += ["attention_norm", "feed_forward_norm"]
    wanted = [f"blocks.0.{part}.weight" for part in layer]
    assert list(model.state_dict()) == ["embedding.weight", *wanted, "norm.weight"]
