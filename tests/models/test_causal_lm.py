"""CausalLM: what it computes, first weights; with each part cached and recorded."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from every_module import LANGUAGE_MODELS, D, H, V, language_model
from pieces import in_pieces
from tformer import greedy, sample
from tformer.interop import from_torch
from tformer.nn.experts import active_parameters

B, T, N = 2, 10, 2
every_kind = pytest.mark.parametrize("name", LANGUAGE_MODELS)


def small(name=None, **parts):
    return (LANGUAGE_MODELS[name] if name else language_model(**parts))()


@pytest.fixture
def ids():
    return torch.randint(V, (B, T))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_encoder_between_two_embeddings(randomised, ids, bias):
    layer = nn.TransformerEncoderLayer(
        D, H, 4 * D, 0.0, nn.GELU("tanh"), 1e-3, True, True, bias=bias
    )
    norm = nn.LayerNorm(D, 1e-3, bias=bias)
    theirs = nn.TransformerEncoder(layer, N, norm, enable_nested_tensor=False)
    theirs = randomised(theirs)
    model = small(bias=bias, tie_embeddings=bias, eps=1e-3)
    stack = from_torch(theirs)
    model.blocks.load_state_dict(stack.blocks.state_dict())
    model.norm.load_state_dict(stack.norm.state_dict())
    tokens, positions = model.embedding.weight, model.positions.weight
    mask = nn.Transformer.generate_square_subsequent_mask(T)
    x = theirs(tokens[ids] + positions[:T], mask)
    wanted = x @ (tokens if bias else model.output.weight).T
    assert wanted.shape == (B, T, V)
    assert_close(model(ids), wanted)
    gradients = [
        torch.autograd.grad(y.square().sum(), (tokens, positions))
        for y in (model(ids), wanted)
    ]
    assert_close(*gradients)


def test_logits_are_scaled_and_then_capped(ids):
    plain, model = small(), small(logit_scale=0.2, logit_cap=0.01)
    model.load_state_dict(plain.state_dict())
    assert_close(model(ids), 0.01 * torch.tanh(0.2 * plain(ids) / 0.01))


@pytest.mark.parametrize(
    "parts", [{}, {"feed_forward": "swiglu", "d_ff": 100, "experts": 8}]
)
def test_the_last_matrices_of_each_sub_layer_are_smaller(parts):
    model = small(d_model=152, vocab_size=501, max_len=211, num_layers=8, **parts)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
            continue
        last = name.endswith(("out_proj.weight", "linear2.weight", "down_proj.weight"))
        wanted = 0.02 / 4 if last else 0.02  # √(2 · 8) = 4
        assert parameter.std().item() == pytest.approx(wanted, rel=0.1), name
        assert abs(parameter.mean().item()) < wanted / 8, name


@every_kind
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_a_cache_changes_no_number(name, randomised, ids):
    model = randomised(small(name)).eval()
    whole = model(ids)
    for pieces in ((T,), (1,) * T, (3, 1, 4, 2), (1, 9)):
        cache = model.new_cache(T)
        logits = in_pieces(
            lambda begin, end, cache=cache: model(ids[:, begin:end], cache=cache),
            pieces,
        )
        assert_close(logits, whole, atol=1e-12, rtol=0)
        assert cache.length == T
    cache = model.new_cache(T)
    model(ids[:, :4], cache=cache)
    cache.reorder(torch.tensor([1, 1]))
    last = model(ids[:, 4:], cache=cache, last_only=True)
    text = torch.cat((ids[[1, 1], :4], ids[:, 4:]), dim=1)
    assert last.shape == (B, 1, V)
    assert_close(last, model(text)[:, -1:], atol=1e-12, rtol=0)


@every_kind
@torch.no_grad()
def test_it_writes_after_prompts_of_two_lengths(name, ids):
    model = small(name).eval()
    rows = [ids[0, :6].tolist(), ids[1, :2].tolist()]
    both = greedy(model, rows, max_len=4)
    for row, written in zip(rows, both, strict=True):
        assert torch.equal(greedy(model, [row], max_len=4)[0], written)


def test_writing_beyond_max_len(ids):
    """Only learned positions end there; with a window the text is read anew."""
    free, ends, ids = small(positions="rotary"), small(), ids[:, :6]
    assert greedy(free, ids, max_len=20).shape == (B, 20)
    with pytest.raises(ValueError, match=r"max_len \(20\) must be at most 5"):
        greedy(ends, ids, max_len=20)
    for model in (free, ends):
        assert greedy(model, ids, max_len=20, window=5).shape == (B, 20)
    generator = torch.Generator().manual_seed(0)
    assert sample(free, ids, max_len=15, generator=generator).shape == (B, 15)


def test_all_layers_share_what_is_relative(ids):
    model = small("T5").eval()
    [table] = {block.attention.relative.table for block in model.blocks}
    names = [name for name, _ in model.named_parameters() if "relative" in name]
    assert names == ["blocks.0.attention.relative.table"]
    model(ids).pow(2).sum().backward()
    learned = table.grad.abs().sum(1) > 0
    assert learned.tolist() == [True] * T + [False] * (32 - T)  # one distance each


def test_experts_stand_where_the_network_stood(ids):
    parts = {"feed_forward": "relu2", "d_ff": 13}
    model, dense = small(experts=5, **parts), small(**parts)
    network = sum(p.numel() for p in dense.blocks[0].feed_forward.parameters())
    more = active_parameters(model) - active_parameters(dense)
    assert more == N * (network + 5 * D + 5)  # one more of 2, and the router
    model.eval()(ids)
    routers = [block.feed_forward.router for block in model.blocks]
    assert not any(router.selection_bias.any() for router in routers)
    model.train()(ids).sum().backward()
    assert all(router.selection_bias.abs().max() == 0.001 for router in routers)
