"""What a user replaces is what runs: cached and uncached, packed and unpacked."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import Block, MultiHeadAttention, transformer_encoder
from tformer.models.families import gpt2
from tformer.nn import heads

D, H, V = 12, 3, 11
LENGTHS = torch.tensor([5, 2, 7])


@pytest.fixture
def encoder(randomised):
    return randomised(transformer_encoder(D, H, 17, 2)).double().eval()


@pytest.fixture
def model(randomised):
    sizes = {"vocab_size": V, "n_embd": D, "n_head": H}
    return randomised(gpt2.build({**gpt2.SIZES["tiny"], **sizes})).double().eval()


def encoded(encoder):
    """The real tokens, with padding hidden and with padding left out."""
    x = torch.linspace(-2, 2, 3 * 7 * D, dtype=torch.float64).sin().view(3, 7, D)
    real = torch.arange(7) < LENGTHS[:, None]
    return encoder(x, real[:, None, None])[real], encoder(x, key_mask=real)[real]


@torch.no_grad()
def logits(model):
    """Of all tokens at once, and one by one with a cache."""
    ids = torch.tensor([[1, 5, 2, 7, 3], [4, 4, 0, 9, 10]])
    cache = model.new_cache(5)
    return model(ids), torch.cat([model(x, cache=cache) for x in ids.split(1, 1)], 1)


def halved(original):
    return lambda *args, **options: 0.5 * original(*args, **options)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (MultiHeadAttention, "forward"),
        (Block, "forward"),
        (nn.Linear, "forward"),
        (heads, "scaled_dot_product_attention"),
        (heads, "split_heads"),
    ],
)
def test_of_a_class_or_a_module(owner, name, monkeypatch, model, encoder):
    plain = logits(model)[0], encoded(encoder)[0]
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, halved(original))
    for before, (whole, other) in zip(
        plain, (logits(model), encoded(encoder)), strict=True
    ):
        assert_close(other, whole)
        if (owner, name) != (Block, "forward"):  # a norm follows, and undoes the half
            assert (whole - before).abs().max() > 1e-5


@pytest.mark.parametrize("part", ["attention", "feed_forward", "attention_norm", ""])
def test_of_an_instance_and_a_wrapper(part, model, encoder):
    class Wrapper(nn.Module):
        """Knows nothing of what it wraps."""

        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *args, **options):
            return 0.5 * self.inner(*args, **options)

    plain = logits(model)[0], encoded(encoder)[0]
    found = []
    for blocks in (model.blocks, encoder.blocks):
        target = blocks[0].get_submodule(part)
        target.forward = halved(target.forward)
    found.append((logits(model), encoded(encoder)))
    for blocks in (model.blocks, encoder.blocks):
        del blocks[0].get_submodule(part).forward
        if part:
            setattr(blocks[0], part, Wrapper(blocks[0].get_submodule(part)))
        else:
            blocks[0].register_forward_hook(lambda *args: 0.5 * args[2])
    found.append((logits(model), encoded(encoder)))
    for each in found:
        for before, (whole, other) in zip(plain, each, strict=True):
            assert_close(other, whole)
            assert (whole - before).abs().max() > 1e-5
    assert_close(found[0], found[1])


def test_hooks_see_what_runs_packed(encoder):
    """Gradients too: of the whole, and of each module that has a backward hook."""
    seen = []
    handle = encoder.blocks[0].attention.v_proj.register_full_backward_pre_hook(
        lambda _, gradients: seen.append(gradients[0]) or (0 * gradients[0],)
    )
    for i in range(2):
        encoder.zero_grad()
        encoded(encoder)[i].pow(2).sum().backward()
        assert not encoder.blocks[0].attention.v_proj.weight.grad.any()
    assert len(seen) == 2
    assert_close(seen[0].pow(2).sum(), seen[1].pow(2).sum())
    handle.remove()
