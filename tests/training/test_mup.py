"""µP: the rows of its table, and that a step changes as much at every width."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from small_models import MODERN
from tformer.models.families import custom
from tformer.training.muon import hidden_matrices
from tformer.training.mup import mup_adamw, mup_config, mup_model
from tformer.training.optimizer import adamw

V, T = 23, 16
SIZES = {"vocab_size": V, "d_model": 32, "num_heads": 2, "d_ff": 64, "max_len": T}
BASE = {**MODERN, **SIZES, "kv_heads": 1}


@pytest.mark.parametrize("positions", ["rotary", "learned", "t5"])
def test_hidden_matrices_are_those_of_which_both_axes_grow(positions):
    parts = {"positions": positions, "qk_norm": True, "sinks": True, "bias": True}
    base = {**BASE, **parts, "tie_embeddings": False}
    narrow, wide = custom.build(base), mup_model(base, 3)
    shapes = {name: p.shape for name, p in narrow.named_parameters()}
    both_grow = {
        name
        for name, p in wide.named_parameters()
        if p.ndim == 2 and p.shape == tuple(3 * n for n in shapes[name])
    }
    assert hidden_matrices(wide).keys() == both_grow
    assert len(both_grow) == 2 * (4 + 3)


@pytest.mark.parametrize("wider_heads", [False, True])
def test_the_config(wider_heads):
    base = {**BASE, "score_scale": 0.3, "logit_scale": 0.5}
    c = mup_config(base, 4, wider_heads=wider_heads)
    heads = (2, 1, 64) if wider_heads else (8, 4, 16)
    assert c == {
        **custom.DEFAULTS,
        **BASE,
        "d_model": 128,
        "d_ff": 256,
        **dict(zip(("num_heads", "kv_heads", "head_dim"), heads, strict=True)),
        "logit_scale": 0.5 / 4,
        "score_scale": 0.3 / 4 if wider_heads else 0.3,
    }
    # The base's own is 1 / √16; with heads of 64 it is √16 / 64.
    c = mup_config(BASE, 4, wider_heads=wider_heads)
    assert c["score_scale"] == (1 / 16 if wider_heads else 1 / 4)


def test_at_the_base_it_is_the_usual_model():
    ids = torch.randint(V, (3, T))
    torch.manual_seed(1)
    ours = mup_model(BASE, 1, std=0.1)
    torch.manual_seed(1)
    usual = custom.build(BASE)
    usual.reset_parameters(0.1)
    for model, make in ((ours, lambda m: mup_adamw(m, 1)), (usual, adamw)):
        take_steps(model, make(model), ids, 0.01, steps=3)
    assert_close(ours(ids), usual(ids))


def test_first_weights():
    base = {**BASE, "d_model": 64, "vocab_size": 401, "tie_embeddings": False}
    model = mup_model(base, 4, std=0.1)
    hidden = hidden_matrices(model)
    for name, p in model.named_parameters():
        if p.ndim == 2:
            wanted = 0.1 / 2 if name in hidden else 0.1  # √4 = 2
            last = name.endswith(("out_proj.weight", "down_proj.weight"))
            wanted = wanted / 2 if last else wanted  # √(2 · 2) = 2
            assert p.std().item() == pytest.approx(wanted, rel=0.05), name


def test_rates_and_decay():
    model = mup_model({**BASE, "bias": True}, 4)
    optimizer = mup_adamw(model, 4, weight_decay=0.1, betas=(0.8, 0.9), eps=1e-7)
    tables, vectors, hidden = optimizer.param_groups
    assert len(hidden["params"]) == 2 * 7
    assert len(tables["params"]) == 1
    ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert ids == {id(p) for p in model.parameters()}
    factors = [group["lr_factor"] for group in optimizer.param_groups]
    assert factors == [1, 1, 1 / 4]
    assert factors == [group["lr"] for group in optimizer.param_groups]
    assert [g["weight_decay"] for g in (hidden, tables, vectors)] == [0.4, 0.1, 0]
    assert {(g["betas"], g["eps"]) for g in optimizer.param_groups} == {
        ((0.8, 0.9), 1e-7)
    }


def usual_model(m, **options):
    """As wide, with the first weights, rates and multipliers of the base."""
    config = mup_config(BASE, m, **options)
    model = custom.build({**config, "score_scale": None, "logit_scale": 1.0})
    model.reset_parameters(0.1)
    return model, adamw(model)


def mup(m, **options):
    model = mup_model(BASE, m, std=0.1, **options)
    return model, mup_adamw(model, m)


def take_steps(model, optimizer, ids, rate, steps):
    for _ in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("lr_factor", 1.0)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def activations(model, ids):
    """What each sub-layer adds to the sum, then the logits."""
    seen = []
    hooks = [
        part.register_forward_hook(lambda _, __, out: seen.append(out))
        for block in model.blocks
        for part in (block.attention, block.feed_forward)
    ]
    logits = model(ids)
    for hook in hooks:
        hook.remove()
    return [*seen, logits]


def changes(make, m, **options):
    """Root mean square of how each activation changes in four steps."""
    torch.manual_seed(m)
    model, optimizer = make(m, **options)
    ids = torch.randint(V, (8, T + 1), generator=torch.Generator().manual_seed(5))
    before = activations(model, ids[:, :-1])
    take_steps(model, optimizer, ids, 0.004, steps=4)
    pairs = zip(activations(model, ids[:, :-1]), before, strict=True)
    return torch.stack([(b - a).square().mean().sqrt() for b, a in pairs])


@pytest.mark.parametrize("wider_heads", [False, True])
def test_coordinate_check(wider_heads):
    """From width 32 to 128 changes stay under µP, and grow without it."""
    grown = {
        make: changes(make, 4, wider_heads=wider_heads) / changes(make, 1)
        for make in (mup, usual_model)
    }
    assert grown[mup].max() < 1.3, grown[mup]
    assert grown[mup].min() > 0.5, grown[mup]
    assert grown[usual_model].min() > 2, grown[usual_model]


def test_parts_without_a_row(raises):
    with raises(ValueError, "experts must be None: µP's table has no router"):
        mup_config({**BASE, "experts": 4}, 2)
    with raises(ValueError, "m (0) must be at least 1"):
        mup_model(BASE, 0)
    with raises(TypeError, "m must be an int, not float"):
        mup_adamw(custom.build(BASE), 1.5)
