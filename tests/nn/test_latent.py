"""Latent attention: both forms by the definition, cached in every split."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import RotaryEmbedding, record_weights
from tformer.nn import (
    KeyValueCache,
    LatentAttention,
    cache_of,
    rotary_frequencies,
)

B, T, D, H, R, Dh, Dr, Dv = 2, 6, 15, 3, 7, 5, 4, 2
WIDTH = R + Dr  # what a token keeps
OPTIONS = {
    "plain": {},
    "latent queries": {"q_rank": 8},
    "as wide values": {"value_dim": None},
    "scale": {"scale": 0.9},
    "halves": {"layout": "halves"},
    "YaRN": {"factor": 1.3, "q_rank": 8, "scale": 0.6},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
both_forms = pytest.mark.parametrize("absorbed", [False, True])


def built(randomised, layout="pairs", factor=1.0, **options):
    rotary = RotaryEmbedding(rotary_frequencies(Dr), layout=layout, factor=factor)
    options = {"kv_rank": R, "head_dim": Dh, "value_dim": Dv, **options}
    return randomised(LatentAttention(D, H, rotary=rotary, **options)).eval()


def slowly(module, x):
    """The definition, one head and one query at a time, from the matrices alone."""
    Dv = module.value_dim
    ask = x if module.q_norm is None else module.q_norm(x @ module.q_down.weight.T)
    down = x @ module.kv_down.weight.T
    latent = module.kv_norm(down[..., :R])
    turned = module.rotary(down[..., R:][:, None])[:, 0]  # one for all heads
    scale = module.scale
    heads = []
    for h in range(H):
        rows = slice(h * (Dh + Dr), (h + 1) * (Dh + Dr))
        query = ask @ module.q_proj.weight[rows].T
        query_turned = module.rotary(query[..., Dh:][:, None])[:, 0]
        up = module.kv_up.weight[h * (Dh + Dv) : (h + 1) * (Dh + Dv)]
        key, value = latent @ up[:Dh].T, latent @ up[Dh:].T
        rows = []
        for i in range(T):
            plain = (key[:, : i + 1] * query[:, i, None, :Dh]).sum(-1)
            by_place = (turned[:, : i + 1] * query_turned[:, i, None]).sum(-1)
            weights = (scale * (plain + by_place)).softmax(-1)  # (B, i + 1)
            rows.append((weights[..., None] * value[:, : i + 1]).sum(1))
        heads.append(torch.stack(rows, dim=1))
    return torch.cat(heads, dim=-1) @ module.out_proj.weight.T


@every_option
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_every_split(options, randomised):
    """Each form is taken, and both compute the definition."""
    module, x = built(randomised, **options), torch.randn(B, T, D)
    whole = module(x)
    for pieces in splits(T):
        cache = cache_of(module, T)
        parts = in_pieces(
            lambda begin, end, cache=cache: module(x[:, begin:end], cache=cache), pieces
        )
        assert_close(parts, whole, atol=1e-13, rtol=0)
        assert cache.length == T


@pytest.mark.parametrize("heads", [1, 3, 8])
@torch.no_grad()
def test_a_token_keeps_so_many_numbers_whatever_the_heads(heads):
    rotary = RotaryEmbedding(rotary_frequencies(Dr))
    module = LatentAttention(D, heads, kv_rank=R, head_dim=Dh, rotary=rotary)
    cache = cache_of(module, 11)
    assert cache.nbytes == 0
    module(torch.randn(B, T, D), cache=cache)
    assert cache.nbytes == B * 11 * (R + Dr) * 4


@both_forms
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_a_layer_without_positions_is_one_that_turns_nothing(absorbed, randomised):
    options = {"kv_rank": R, "head_dim": Dh, "value_dim": Dv, "absorbed": absorbed}
    module = LatentAttention(D, H, rotary=None, rotary_dim=Dr, **options)
    still = LatentAttention(
        D, H, rotary=RotaryEmbedding(torch.zeros(Dr // 2)), **options
    )
    still.load_state_dict(randomised(module).state_dict(), strict=False)
    x = torch.randn(B, T, D)
    assert_close(module(x), still(x), rtol=0, atol=1e-13)
    parts = [
        module(part, cache=cache)
        for cache in [cache_of(module, T)]
        for part in x.split(2, dim=1)
    ]
    assert_close(torch.cat(parts, dim=1), module(x), rtol=0, atol=1e-13)


def test_rotary_or_its_width_is_given(raises):
    with raises(ValueError, "either rotary or rotary_dim must be given, not both"):
        LatentAttention(D, H, kv_rank=R, head_dim=Dh, rotary=None)
    with raises(ValueError, "rotary_dim (0) must be at least 1"):
        LatentAttention(D, H, kv_rank=R, head_dim=Dh, rotary=None, rotary_dim=0)


class TestTheForm:
    """Which form runs, seen by the width of the values that attention gets."""

    def widths(self, module, x, cache=None):
        widths, attended = [], module.attended
        module.attended = lambda q, k, v, *options: (
            widths.append((k.shape[1], v.shape[-1])) or attended(q, k, v, *options)
        )
        module(x, cache=cache)
        return widths

    @both_forms
    def test_as_asked(self, absorbed, randomised):
        module = built(randomised, absorbed=absorbed)
        wanted = (1, R) if absorbed else (H, Dv)
        assert self.widths(module, torch.randn(B, T, D)) == [wanted]

    @torch.no_grad()
    def test_the_cheaper_one(self, randomised):
        module, cache = built(randomised), KeyValueCache(T)
        x = torch.randn(B, T, D)
        assert self.widths(module, x[:, :-1], cache) == [(H, Dv)]
        module = built(randomised)
        assert self.widths(module, x[:, -1:], cache) == [(1, R)]

    def test_the_count(self, randomised):
        """By the shapes of every product of two tensors; the scale is one for both."""
        module = built(randomised)
        assert module.scale == built(randomised, absorbed=True).scale == 1 / 3
        for new, so_far in ((1, 9), (4, 9), (9, 9)):
            absorbed = [(new, Dh, R), (new, R + Dr, so_far), (new, so_far, R)]
            absorbed += [(new, R, Dv)]
            naive = [(so_far, R, Dh + Dv), (new, Dh + Dr, so_far), (new, so_far, Dv)]
            for form, products in ((True, absorbed), (False, naive)):
                count = module.multiplications(new, so_far, absorbed=form)
                assert count == H * sum(math.prod(each) for each in products)


@every_option
@both_forms
@pytest.mark.usefixtures("float64")
def test_the_definition_and_its_weights(options, absorbed, randomised):
    module, x = built(randomised, absorbed=absorbed, **options), torch.randn(B, T, D)
    wanted, weights = slowly(module, x), [*module.parameters()]
    assert_close(module(x), wanted, atol=1e-13, rtol=0)
    both = [torch.autograd.grad(y.pow(3).sum(), weights) for y in (module(x), wanted)]
    assert_close(*both, atol=1e-10, rtol=1e-10)
    assert all(gradient.abs().max() > 1e-12 for gradient in both[0])
    with record_weights(module) as weights:
        assert_close(module(x), wanted)
    kept = weights[module]
    assert kept.shape == (B, H, T, T)
    assert_close(kept.sum(-1), torch.ones(B, H, T))
    assert (kept.triu(1) == 0).all()
    module.absorbed = not absorbed
    with record_weights(module) as others:
        module(x)
    assert_close(others[module], kept)


def halved(linear):
    class Halved(nn.Linear):
        def forward(self, x):
            return super().forward(x) / 2

    linear.__class__ = Halved


def patched(linear):
    linear.forward = lambda x: nn.functional.linear(x, linear.weight) / 2


@pytest.mark.parametrize("change", [halved, patched])
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_what_kv_up_does_beside_its_matrix_is_honoured_or_refused(change, randomised):
    module, x, cache = built(randomised), torch.randn(B, T, D), KeyValueCache(T)
    module(x[:, :-1], cache=cache)
    kept = cache.copy(T)
    change(module.kv_up)
    module.absorbed = False
    wanted = module(x[:, -1:], cache=cache)
    module.absorbed = None  # of itself it would take the absorbed form
    assert_close(module(x[:, -1:], cache=kept), wanted)
    module.absorbed = True
    with pytest.raises(ValueError, match=r"^the absorbed form reads kv_up\.weight and"):
        module(x)
