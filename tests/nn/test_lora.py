"""LoRA: beside any linear layer of the package, merged and taken out again."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import CausalLM, GatedFeedForward, MultiHeadAttention, RotaryEmbedding
from tformer.models.families import gpt2
from tformer.nn import (
    LatentAttention,
    LoRALinear,
    add_lora,
    load_lora,
    lora_state,
    merge_lora,
    quantize_linears,
    remove_lora,
    rotary_frequencies,
    unmerge_lora,
)

D, T, RANK = 12, 5, 3
EXACT = {"rtol": 1e-12, "atol": 1e-12}
PARTS = {
    "heads": (lambda: MultiHeadAttention(D, 4, num_kv_heads=2), ("k_proj", "out_proj")),
    "gated": (lambda: GatedFeedForward(D, 17), ("gate_proj", "up_proj", "down_proj")),
    "latent": (lambda: latent(), ("q_proj", "kv_up", "out_proj")),
    "absorbed": (lambda: latent(absorbed=True), ("kv_down", "kv_up")),
}


def latent(**options) -> LatentAttention:
    rotary = RotaryEmbedding(rotary_frequencies(4))
    sizes = {"kv_rank": 7, "head_dim": 6, "value_dim": 5}
    return LatentAttention(D, 3, rotary=rotary, **sizes, **options)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def trained(model: nn.Module) -> nn.Module:
    """Give every adapter a B that is not zero."""
    for i, layer in enumerate(m for m in model.modules() if isinstance(m, LoRALinear)):
        layer.up.data = numbers(*layer.up.shape, seed=i + 1).to(layer.up)
    return model


def call(part: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return part(x, x, x) if isinstance(part, MultiHeadAttention) else part(x)


def small_gpt() -> CausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "n_embd": D, "n_head": 3, "n_layer": 2}
    return gpt2.build({**gpt2.SIZES["tiny"], **sizes}).double().eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("root", "s"), [(False, 5 / 3), (True, 5 / 3**0.5)])
def test_it_is_the_formula(root, s, bias):
    base = nn.Linear(7, 11, bias=bias).double()
    layer = trained(LoRALinear(base, 3, alpha=5.0, root=root))
    x = numbers(2, 4, 7)
    matrix = base.weight + s * layer.up @ layer.down
    assert_close(layer(x), nn.functional.linear(x, matrix, base.bias), **EXACT)
    assert_close(layer.weight, matrix, **EXACT)
    assert layer.bias is base.bias
    assert layer.scale.item() == pytest.approx(s, rel=1e-15)
    assert LoRALinear(base, 3).scale == 2


@pytest.mark.parametrize("name", PARTS)
def test_beside_merged_taken_out_and_removed(name):
    torch.manual_seed(0)
    make, targets = PARTS[name]
    plain = make().double().eval()
    part, x, before = copy.deepcopy(plain), numbers(2, T, D), plain.state_dict()
    add_lora(part, RANK, targets=targets, alpha=5.0)
    assert torch.equal(call(part, x), call(plain, x))
    part = trained(part)
    beside = call(part, x)
    assert (beside - call(plain, x)).abs().max() > 0.1
    beside.square().sum().backward()
    for key, p in part.named_parameters():
        ours = key.endswith((".up", ".down"))
        assert p.requires_grad == (p.grad is not None) == ours
        assert not ours or p.grad.abs().max() > 1e-6
    for _ in range(2):  # a second time is none
        merge_lora(part)
        assert_close(call(part, x), beside, **EXACT)
    merged = copy.deepcopy(part)
    unmerge_lora(part)
    assert torch.equal(call(part, x), beside)
    for each in (part, merged):
        remove_lora(each)
        assert each.state_dict().keys() == before.keys()
    assert all(torch.equal(w, before[n]) for n, w in part.state_dict().items())
    plain.load_state_dict(merged.state_dict())
    assert_close(call(plain, x), beside, **EXACT)


def test_a_model_with_tied_embeddings():
    model, ids = small_gpt(), torch.tensor([[3, 4, 5, 6]])
    before = copy.deepcopy(model)
    names = add_lora(model, 2, targets=("q_proj", "linear1"))
    assert names == [
        *(f"blocks.{i}.attention.q_proj" for i in range(2)),
        *(f"blocks.{i}.feed_forward.linear1" for i in range(2)),
    ]
    learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
    wide = model.blocks[0].feed_forward.linear1.base.out_features
    assert learned == 2 * 2 * (2 * D + D + wide)
    assert (trained(model)(ids) - before(ids)).abs().max() > 0.01
    remove_lora(model)
    assert torch.equal(model(ids), before(ids))


def test_the_adapter_alone_is_kept(tmp_path):
    model, ids = small_gpt(), torch.tensor([[3, 4, 5, 6]])
    add_lora(model, 2, alpha=7.0)
    model.norm.weight.requires_grad_(True)  # trained as well
    model.norm.weight.data += 0.5
    state = lora_state(trained(model))
    assert len(state) == 3 * 2 * len(model.blocks) + 1
    torch.save(state, tmp_path / "adapter.pt")
    other = small_gpt()
    add_lora(other, 2)  # another alpha: the file has the scale
    other.norm.weight.requires_grad_(True)
    assert not torch.equal(other(ids), model(ids))
    load_lora(other, torch.load(tmp_path / "adapter.pt"))
    assert torch.equal(other(ids), model(ids))


def test_a_state_of_other_adapters_is_refused():
    model, other, wide = small_gpt(), small_gpt(), small_gpt()
    add_lora(model, 2)
    add_lora(other, 2, targets=["v_proj"])
    with pytest.raises(ValueError, match=r"q_proj\.down is missing in the state"):
        load_lora(model, lora_state(other))
    with pytest.raises(ValueError, match=r"q_proj.* missing in the model"):
        load_lora(other, lora_state(model))
    add_lora(wide, 3)
    with pytest.raises(ValueError, match=r"down is \(3, 12\) in the state, \(2, 12"):
        load_lora(model, lora_state(wide))


class TestInAnyOrder:
    """Merged or not, loaded, quantised: the same sum, or a message."""

    x = numbers(5, 12)

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(12, 7), nn.Linear(7, 12)).double()
        add_lora(model, 2, targets=["0", "1"])
        return trained(model)

    @pytest.mark.parametrize("merged", [False, True])
    @pytest.mark.parametrize("into_merged", [False, True])
    @pytest.mark.parametrize("assign", [False, True])
    def test_a_state_says_the_same_however_it_was_taken(
        self, merged, into_merged, assign
    ):
        model, other = self.model(), self.model(seed=1)
        right = model(self.x)
        for each, of in ((model, merged), (other, into_merged)):
            if of:
                merge_lora(each)
        twin, before = copy.deepcopy(other), other(self.x)
        assert not torch.allclose(before, right)
        twin.load_state_dict(copy.deepcopy(model.state_dict()), assign=assign)
        assert_close(twin(self.x), right, **EXACT)
        assert torch.equal(other(self.x), before)  # a copy loads by itself
        for layer in twin:
            layer.up.data *= 1.5
        load_lora(twin, lora_state(model))
        assert_close(twin(self.x), right, **EXACT)

    def test_quantised_then_merged(self, raises):
        model = self.model()
        quantize_linears(model)
        beside = model(self.x)
        merge_lora(model)
        assert_close(model(self.x), beside, **EXACT)
        half = copy.deepcopy(model).float()  # what is merged too
        assert_close(half(self.x.float()), beside.float())
        with raises(ValueError, "0 is merged and quantised: unmerge_lora first"):
            remove_lora(model)
        with raises(ValueError, "0 is merged: remove_lora or unmerge_lora first"):
            quantize_linears(model)
        unmerge_lora(model)
        assert torch.equal(model(self.x), beside)

    def test_adapters_of_adapters_are_refused(self, raises):
        message = "name all targets at once, or remove_lora first"
        for target in ("base", "0"):
            with raises(ValueError, f"the model has adapters, such as 0: {message}"):
                add_lora(self.model(), 2, targets=[target])


def test_dropout_is_of_the_adapters_path_alone():
    torch.manual_seed(0)
    base = nn.Linear(7, 11).double()
    layer, x = LoRALinear(base, 3, dropout=0.5), numbers(5, 7)
    layer.train()
    assert torch.equal(layer(x), base(x))
    trained(layer)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_a_matrix_with_two_names_is_refused():
    model = nn.Module()
    model.embedding, model.output = nn.Embedding(11, 7), nn.Linear(7, 11, bias=False)
    model.output.weight = model.embedding.weight
    with pytest.raises(ValueError, match=r"embedding\.weight = output\.weight"):
        add_lora(model, 2, targets=["output"])
    assert model.embedding.weight.requires_grad  # nothing was changed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 13}, "rank (13) must be in [1, 12]"),
        ({"rank": 2, "targets": ["q"]}, "targets: 'q' names no nn.Linear of the model"),
        ({"rank": 0}, "rank (0) must be in [1, 12]"),
    ],
)
def test_errors(raises, options, message):
    model = small_gpt()
    with raises(ValueError, message):
        add_lora(model, **options)
    assert all(p.requires_grad for p in model.parameters())  # nothing was changed
