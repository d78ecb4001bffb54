"""Heads for the tokens further on: what each sees, what it predicts, its loss."""

import pytest
import torch
import torch.nn.functional as functional
from torch.testing import assert_close

from brute_force import decisive, tiny_gpt
from small_models import MODERN
from tformer.models import MultiTokenHeads, multi_token_losses
from tformer.models.families import custom

V, D, B, T, N = 11, 6, 3, 7, 2


def small_gpt():
    return tiny_gpt(1, vocab_size=V, d_model=D, num_heads=2).double()


def modern(**changes):
    sizes = {"vocab_size": V, "d_model": D, "num_heads": 3, "max_len": 20}
    return decisive(custom.build({**MODERN, **sizes, **changes})).double()


@pytest.fixture(params=["GPT", "of today", "post-norm", "untied"])
def trunk(request):
    torch.manual_seed(0)
    if request.param == "GPT":
        return small_gpt()
    post, untied = {"placement": "post"}, {"tie_embeddings": False}
    changes = {"of today": {}, "post-norm": post, "untied": untied}
    return modern(**changes[request.param])


@pytest.fixture
def ids():
    torch.manual_seed(1)
    return torch.randint(V, (B, T))


def make(**options):
    torch.manual_seed(2)
    return MultiTokenHeads(D, N, d_ff=5, **options).double()


def test_logits_are_made_from_the_states(trunk, ids):
    assert trunk.states(ids).shape == (B, T, D)
    assert torch.equal(trunk.logits(trunk.states(ids)), trunk(ids))
    cache = trunk.new_cache(T)
    with torch.no_grad():
        pieces = [trunk.states(piece, cache=cache) for piece in ids.split(3, dim=1)]
        assert_close(torch.cat(pieces, dim=1), trunk.states(ids))


@pytest.mark.parametrize("see_tokens", [True, False])
def test_what_each_head_sees(trunk, ids, see_tokens):
    """At position t head k sees t + 1 tokens by the trunk, and k more itself."""
    heads = make(see_tokens=see_tokens)
    before = heads(trunk, ids)
    assert [tuple(logits.shape) for logits in before] == [(B, 6, V), (B, 5, V)]
    for place in range(T):
        changed = ids.clone()
        changed[:, place] = (changed[:, place] + 1) % V
        for k, (a, b) in enumerate(zip(before, heads(trunk, changed), strict=True), 1):
            reach = k if see_tokens else 0
            first = max(0, place - reach)  # the first position that sees it
            assert torch.equal(a[:, :first], b[:, :first])
            assert (a[:, first:] != b[:, first:]).any(dim=-1).all()


def test_a_head_by_its_formula(ids):
    trunk, (head, _) = small_gpt(), make().heads
    h, e = trunk.states(ids), trunk.embedding(ids)

    def norm(x, gain):
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gain

    for gain in (head.token_norm, head.feed_forward_norm, head.norm):
        torch.nn.init.normal_(gain.weight)
    M, ff = head.proj.weight, head.feed_forward
    y = torch.cat((h, norm(e, head.token_norm.weight)), -1) @ M.T
    z = norm(y, head.feed_forward_norm.weight)
    hidden = functional.silu(z @ ff.gate_proj.weight.T) * (z @ ff.up_proj.weight.T)
    wanted = norm(y + hidden @ ff.down_proj.weight.T, head.norm.weight)
    assert_close(head(h, e), wanted, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("pad_id", [None, 4])
def test_the_losses_by_their_definition(ids, pad_id):
    """A loop over heads, rows and positions: −ln of the token k + 1 places further."""
    trunk, heads = modern(pad_id=pad_id), make()
    if pad_id is not None:
        ids[0, 4:] = ids[2, 5:] = pad_id
    assert (ids == 4).any()
    losses = multi_token_losses(trunk, heads, ids)
    for k, logits in enumerate(heads(trunk, ids), start=1):
        each = [
            -logits[b, t].log_softmax(-1)[ids[b, t + k + 1]]
            for b in range(B)
            for t in range(T - k - 1)
            if ids[b, t + k + 1] != pad_id
        ]
        assert_close(losses[k - 1], torch.stack(each).mean())


def test_the_trunk_learns_too_unless_it_is_frozen(ids):
    trunk, heads = small_gpt(), make()
    multi_token_losses(trunk, heads, ids).sum().backward()
    for part in (trunk, heads):
        assert all(p.grad.abs().max() > 0 for p in part.parameters())
    trunk.requires_grad_(False).zero_grad()
    multi_token_losses(trunk, heads, ids).sum().backward()
    assert all(p.grad is None for p in trunk.parameters())


def test_errors(raises, ids):
    trunk, heads = small_gpt(), make()
    with raises(ValueError, "num_ahead (0) must be at least 1"):
        MultiTokenHeads(D, 0)
    with raises(ValueError, "ids (2 tokens) must be longer than 2: 2 heads"):
        heads(trunk, ids[:, :2])
    with raises(ValueError, "ids (3 tokens) must be longer than 3: 2 heads"):
        multi_token_losses(trunk, heads, ids[:, :3])
