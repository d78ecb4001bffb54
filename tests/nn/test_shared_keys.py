"""Attention to keys and values of another layer, and to keys as values."""

import pytest
import torch
from torch.testing import assert_close

from tformer import MultiHeadAttention, RMSNorm, RotaryEmbedding
from tformer.interop import to_torch
from tformer.nn import (
    Passing,
    Reading,
    SharedKeysAttention,
    cache_of,
    rotary_frequencies,
)
from tformer.reference import from_torch

B, T, D, H, Dh = 2, 6, 20, 6, 4


def turning():
    return RotaryEmbedding(rotary_frequencies(Dh))


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_keys_and_values_of_another_layer(randomised, window):
    """As if it had the other's projections, and read what the other reads."""
    options = {"head_dim": Dh, "num_kv_heads": 2, "bias": False, "window": window}

    def made():
        norms = {"q_norm": RMSNorm(Dh), "k_norm": RMSNorm(Dh), "rotary": turning()}
        return randomised(MultiHeadAttention(D, H, **norms, **options).eval())

    source, own = made(), made()
    options |= {"q_norm": own.q_norm, "rotary": turning(), "shared_kv": True}
    reads = SharedKeysAttention(D, H, **options).eval()
    reads.load_state_dict(own.state_dict(), strict=False)
    assert reads.k_proj is reads.v_proj is None
    for name in ("k_proj", "v_proj", "k_norm"):
        getattr(own, name).load_state_dict(getattr(source, name).state_dict())
    x, y = torch.randn(2, B, T, D)
    wanted = own(y, x, is_causal=True)
    cache, read = cache_of(source, T), []
    assert cache_of(reads, T).nbytes == 0
    for begin, end in ((0, 4), (4, 5), (5, T)):
        passing = Passing(cache)
        source(x[:, begin:end], is_causal=True, cache=passing)
        read.append(reads(y[:, begin:end], is_causal=True, cache=Reading(passing)))
    assert_close(torch.cat(read, dim=1), wanted, atol=1e-13, rtol=0)
    kept = []
    from_torch(source)(x.numpy(), is_causal=True, keep=kept)
    of_twin = from_torch(reads)(y.numpy(), is_causal=True, keys_values=kept[0])
    assert_close(torch.from_numpy(of_twin), wanted)


def test_what_shared_keys_and_values_refuse():
    with pytest.raises(ValueError, match="shared_kv leaves nothing to k_norm"):
        SharedKeysAttention(D, H, head_dim=Dh, shared_kv=True, k_eq_v=True)
    x = torch.randn(B, T, D)
    with pytest.raises(ValueError, match="cache must be a Reading"):
        SharedKeysAttention(D, H, head_dim=Dh, shared_kv=True)(x)
    with pytest.raises(ValueError, match="source holds nothing"):
        Reading(Passing())
    with pytest.raises(ValueError, match="value must be key, or not given"):
        SharedKeysAttention(D, H, head_dim=Dh, k_eq_v=True)(x, x, 2 * x)


@pytest.mark.parametrize("name", ["k_eq_v", "shared_kv"])
def test_torch_has_neither(name):
    with pytest.raises(ValueError, match=f"module has {name}, which torch's has not"):
        to_torch(SharedKeysAttention(D, 5, **{name: True}))
