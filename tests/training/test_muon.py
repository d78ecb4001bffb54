"""Muon beside AdamW: which of them gets what, and that both are as torch's own."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from small_models import MODERN
from tformer import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.models.families import custom
from tformer.training.muon import Muon, hidden_matrices, muon, orthogonalise
from tformer.training.optimizer import adamw

SIZES = {"vocab_size": 13, "d_model": 14, "num_heads": 7}
MODELS = {
    "gpt": lambda **o: custom.build({**SIZES, **o}),
    "bert": lambda **o: BERT(BERTConfig.tiny(**SIZES, **o)),
    "transformer": lambda **o: Transformer(TransformerConfig.tiny(**SIZES, **o)),
    "modern": lambda **o: custom.build(
        {**SIZES, **MODERN, "kv_heads": 1, "gate": True, **o}
    ),
    "experts": lambda **o: custom.build({**SIZES, "experts": 3, **o}),
}


def make_model(kind: str = "gpt", **options) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[kind](**options)


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=generator).to(p)


def at_rate(optimizer: torch.optim.Optimizer, rate: float = 0.01):
    for group in optimizer.param_groups:
        group["lr"] = rate
    return optimizer


@pytest.mark.parametrize("kind", MODELS)
def test_matrices_inside_the_layers_are_muons_and_each_parameter_has_one(kind):
    model = make_model(kind, tie_embeddings=False)
    learned = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    inside = ("encoder.blocks.", "decoder.blocks.", "blocks.")
    expected = {n: p for n, p in learned if p.ndim == 2 and n.startswith(inside)}
    found = hidden_matrices(model)
    assert found.keys() == expected.keys()
    assert all(found[n] is p for n, p in expected.items())
    assert len(found) > 5
    optimizer = muon(model, weight_decay=0.3)
    matrices, _, other = optimizer.param_groups
    assert [*map(id, matrices["params"])] == [*map(id, found.values())]
    assert [g["weight_decay"] for g in optimizer.param_groups] == [0.3, 0.3, 0.0]
    assert {p.ndim for p in other["params"]} == {1}
    everything = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(everything) == sorted(id(p) for _, p in learned)


def test_what_is_frozen_is_left_out():
    model = make_model()
    frozen = [*hidden_matrices(model).values()][2], model.embedding.weight
    for p in frozen:
        p.requires_grad_(False)
    left = {id(p) for group in muon(model).param_groups for p in group["params"]}
    assert not left & {id(p) for p in frozen}
    assert len(left) == len(list(model.parameters())) - 2


@pytest.fixture
def in_full(monkeypatch):
    """Let torch's Muon compute in the precision of the matrix, as ours does."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)


def test_steps_are_those_of_the_two_optimizers_of_torch(in_full):
    ours, theirs = make_model().double(), make_model().double()
    hidden = [*hidden_matrices(theirs).values()]
    rest = [p for p in theirs.parameters() if all(p is not h for h in hidden)]
    groups = [
        {"params": [p for p in rest if p.ndim == 2], "weight_decay": 0.3},
        {"params": [p for p in rest if p.ndim == 1], "weight_decay": 0.0},
    ]
    options = {"lr": 0.01, "weight_decay": 0.3, "adjust_lr_fn": "match_rms_adamw"}
    of_rest = {"betas": (0.8, 0.95), "eps": 1e-3}
    optimizers = (
        torch.optim.Muon(hidden, momentum=0.9, **options),
        torch.optim.AdamW(groups, lr=0.01, **of_rest),
        at_rate(muon(ours, momentum=0.9, weight_decay=0.3, **of_rest)),
    )
    for step in range(3):
        for model in (ours, theirs):
            give_gradients(model, step)
        for optimizer in optimizers:
            optimizer.step()
    before = make_model().double()
    triples = zip(*(m.parameters() for m in (ours, theirs, before)), strict=True)
    for p, q, start in triples:
        assert_close(p, q, rtol=1e-10, atol=1e-12)
        assert not torch.equal(p, start)


@pytest.mark.parametrize("shape", [(7, 19), (19, 7), (13, 13)])
def test_orthogonalise_changes_singular_values_alone(shape):
    torch.manual_seed(0)
    g = torch.randn(shape, dtype=torch.float64)
    left, values, right = torch.linalg.svd(g, full_matrices=False)
    s = values / values.norm()
    for steps in range(6):
        expected = left @ torch.diag(s) @ right
        assert_close(orthogonalise(g, steps=steps), expected, rtol=1e-10, atol=1e-12)
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5


def test_five_steps_bring_singular_values_near_1():
    s = torch.logspace(-2, 0, 200, dtype=torch.float64)
    found = torch.linalg.svdvals(orthogonalise(torch.diag(s), steps=0))
    assert found.max() < 0.22
    found = torch.linalg.svdvals(orthogonalise(torch.diag(s[100:])))
    assert 0.65 < found.min() < found.max() < 1.25
    assert torch.equal(orthogonalise(torch.zeros(3, 4)), torch.zeros(3, 4))


@pytest.mark.parametrize("way", ["state_dict", "deepcopy"])
def test_it_goes_on_bit_for_bit_and_a_rate_set_later_counts(way):
    model = make_model()
    optimizer = at_rate(muon(model))
    for step in range(2):
        give_gradients(model, step)
        optimizer.step()
    if way == "state_dict":
        other = copy.deepcopy(model)
        again = muon(other)
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    else:
        other, again = copy.deepcopy((model, optimizer))
    for rate in (0.0, 0.02):
        before = [p.detach().clone() for p in other.parameters()]
        for m, o in ((model, at_rate(optimizer, rate)), (other, at_rate(again, rate))):
            give_gradients(m, 7)
            o.step()
        for p, q, old in zip(
            model.parameters(), other.parameters(), before, strict=True
        ):
            assert torch.equal(p, q)
            assert torch.equal(q, old) == (rate == 0)


@pytest.mark.parametrize("make", [muon, lambda m: Muon(hidden_matrices(m).values())])
def test_a_closure_gives_the_loss(make):
    assert make(make_model()).step(lambda: 7.0) == 7.0


def test_matrices_may_be_named():
    model = make_model()
    optimizer = muon(model, matrices=[model.embedding.weight])
    (only,) = optimizer.param_groups[0]["params"]
    assert only is model.embedding.weight
    groups = adamw(model, without=[model.embedding.weight]).param_groups
    assert all(p is not only for g in groups for p in g["params"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrices": [torch.ones(14)]}, r"Muon is for matrices, and one is \(14,\)"),
        ({"matrices": []}, r"no nn\.Linear in an nn\.ModuleList"),
        ({"momentum": 1.0}, r"momentum \(1.0\) must be in \[0, 1\)"),
        ({"weight_decay": -0.1}, r"weight_decay \(-0.1\) must be at least 0"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        muon(make_model(), **options)
    with pytest.raises(ValueError, match=r"lr \(nan\)"):
        Muon([torch.ones(2, 3)], float("nan"))
