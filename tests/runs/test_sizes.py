"""The memory of a cache as `tformer info` tells it, against caches that are full."""

import pytest
import torch
from torch import Tensor

from tformer import (
    BERTConfig,
    CausalLMConfig,
    GPTConfig,
    LatentParts,
    Parts,
    QuantizedCache,
    Transformer,
    TransformerConfig,
)
from tformer.models.by_name import make_model
from tformer.nn.model_cache import StackCache
from tformer.runs.sizes import cache_bytes

V, L = 11, 29
GQA = {"d_model": 24, "num_heads": 6, "num_kv_heads": 2}


def causal(layers: int = 3, *, parts: dict | None = None, **changes) -> CausalLMConfig:
    sizes = {"vocab_size": V, "num_layers": layers, "max_len": L, "d_model": 24}
    parts = {"positions": "rotary", **(parts or {})}
    return CausalLMConfig(**{**sizes, "num_heads": 6, **changes}, parts=Parts(**parts))


def windows(window: int, every: int | None, **others) -> dict:
    return {"window": window, "global_every": every, **others}


LATENT = {"latent": LatentParts(kv_rank=5, rotary_dim=2)}
CONFIGS = {
    "gpt": GPTConfig.tiny(vocab_size=V, max_len=L, d_model=24, num_heads=3),
    "gpt, shared keys": GPTConfig.tiny(vocab_size=V, max_len=L, **GQA),
    "causal": causal(),
    "causal, wide heads": causal(num_kv_heads=3, head_dim=10),
    "latent": causal(parts=LATENT),
    "windows": causal(parts=windows(4, None)),
    "windows, wide": causal(parts=windows(14, None)),
    "windows, wider than half": causal(parts=windows(15, None)),
    "some windows": causal(5, num_kv_heads=2, parts=windows(4, 2)),
    "other windows": causal(7, parts=windows(3, 3)),
    "sinks": causal(parts=windows(4, 2, sinks=True)),
    "encoder-decoder": TransformerConfig.tiny(
        vocab_size=V, num_encoder_layers=1, num_decoder_layers=3, **GQA
    ),
}


@torch.no_grad()
def filled(config, dtype: torch.dtype, length: int = L, cache=None):
    """Write a text, a token after the other, and return the cache."""
    model = make_model(config).to(dtype).eval()
    cache = model.new_cache(length) if cache is None else cache
    tokens = torch.randint(1, V, (1, length))
    if isinstance(model, Transformer):
        memory = model.encode(tokens)
        for token in tokens.split(1, dim=1):
            model.decode(token, memory, cache=cache)
    else:
        for token in tokens.split(1, dim=1):
            model(token, cache=cache)
    assert cache.length == length
    return cache


def tensors_in(x, seen: set[int]) -> list[Tensor]:
    """Collect the tensors that an object holds; of several views one."""
    if isinstance(x, Tensor):
        place = x.untyped_storage().data_ptr()
        new = place not in seen
        seen.add(place)
        return [x] * new
    parts = x if isinstance(x, list) else list(getattr(x, "__dict__", {}).values())
    return [each for part in parts for each in tensors_in(part, seen)]


def bytes_in(cache) -> int:
    """Count what the memory takes, and leave out what it was projected from."""
    sources = set()
    for layer in cache.layers:
        for each in (getattr(layer, "target", layer), getattr(layer, "memory", None)):
            for source in getattr(each, "_sources", []):
                tensors_in(source, sources)
    return sum(x.numel() * x.element_size() for x in tensors_in(cache, sources))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_full_cache_takes_as_much(name, dtype):
    config = CONFIGS[name]
    for length in (L, L + 1, 3):
        if name.startswith("gpt") and length > L:  # it has no position for it
            continue
        held = bytes_in(filled(config, dtype, length))
        assert cache_bytes(config, length, number_bytes=dtype.itemsize) == held > 0


def test_the_formula_by_hand():
    assert cache_bytes(CONFIGS["gpt"], L) == 2 * 2 * 3 * 8 * L * 4
    assert cache_bytes(CONFIGS["gpt, shared keys"], L) == 2 * 2 * 2 * 4 * L * 4
    assert cache_bytes(CONFIGS["latent"], L) == 3 * (5 + 2) * L * 4
    assert cache_bytes(CONFIGS["windows"], L) == 2 * 3 * 6 * 4 * (2 * 4) * 4
    assert cache_bytes(CONFIGS["encoder-decoder"], L) == 2 * 3 * 2 * 4 * (L + L) * 4
    assert cache_bytes(BERTConfig.tiny(), L) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["causal", "causal, wide heads", "windows"])
def test_codes_take_a_byte_and_a_scale(name, dtype):
    config = CONFIGS[name]
    cache = StackCache([QuantizedCache(L) for _ in range(config.num_layers)])
    held = bytes_in(filled(config, dtype, cache=cache))
    assert held > 0
    told = cache_bytes(config, L, number_bytes=dtype.itemsize, int8=True)
    assert told == held


@pytest.mark.parametrize("name", ["gpt", "latent", "encoder-decoder"])
def test_no_codes_of_other_caches(name, raises):
    kind = type(CONFIGS[name]).__name__
    with raises(ValueError, f"int8 is not for the caches of this {kind}"):
        cache_bytes(CONFIGS[name], L, int8=True)
