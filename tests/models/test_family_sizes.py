"""Presets of published sizes, counted on the meta device, beside published numbers."""

import pytest
import torch

from published_sizes import EACH
from tformer.models.families import FAMILIES, family_of
from tformer.models.folder import NothingDrawn

# All parameters, and those without embedding and logits, as papers and model cards
# print them: to the last digit, or rounded.
EXACT = {
    "gpt2": (124_439_808, None),
    "gpt2-medium": (354_823_168, None),
    "gpt2-large": (774_030_080, None),
    "gpt2-xl": (1_557_611_200, None),
    "llama-2-7b": (6_738_415_616, None),
    "llama-3-8b": (8_030_261_248, None),
    "mistral-7b": (7_241_732_096, None),
    "qwen2.5-0.5b": (494_032_768, None),
    "qwen2.5-1.5b": (1_543_714_304, None),
    "qwen2.5-7b": (7_615_616_512, None),
    "pythia-70m": (70_426_624, 18_915_328),
    "pythia-160m": (162_322_944, 85_056_000),
    "pythia-410m": (405_334_016, 302_311_424),
    "pythia-1b": (1_011_781_632, 805_736_448),
    "pythia-1.4b": (1_414_647_808, 1_208_602_624),
    "pythia-2.8b": (2_775_208_960, 2_517_652_480),
    "pythia-6.9b": (6_857_302_016, 6_444_163_072),
    "pythia-12b": (11_846_072_320, 11_327_027_200),
    "gpt-neox-20b": (20_554_567_680, None),
    "gemma-2-2b": (None, 2_024_517_888),
    "gemma-2-9b": (None, 8_324_201_984),
    "gemma-2-27b": (None, 26_047_480_320),
    # As Hugging Face's class counts; published of the last, 30.7 billion.
    "gemma-4-e2b": (4_628_569_344, None),
    "gemma-4-e4b": (7_463_013_376, None),
    "gemma-4-31b": (30_697_345_280, None),
    # As Hugging Face's class counts; published are 0.5, 1.8, 4 and 7 billion.
    "hunyuan-7b": (7_504_568_320, None),
    "smollm3-3b": (3_075_098_624, None),
    "phi-3-mini-4k": (3_821_079_552, None),
    "nanochat-d20": (560_988_160, None),
    "nanochat-d32": (1_879_048_192, None),
    "bert-base-uncased": (109_514_298, None),
    "bert-large-uncased": (335_174_458, None),
    "t5-small": (60_506_624, None),
    "t5-base": (222_903_552, None),
    "t5-large": (737_668_096, None),
    "t5-v1.1-small": (76_961_152, None),
    "t5-v1.1-base": (247_577_856, None),
    "t5-v1.1-large": (783_150_080, None),
    "bart-base": (139_420_416, None),
    "bart-large": (406_291_456, None),
    "opus-mt-en-de": (73_886_208, None),  # but 2 · 512 · 512 sinusoids
}
ROUNDED = {  # in millions
    "llama-3-70b": (70_600, None),
    "qwen2.5-3b": (3_090, 2_770),
    "qwen2.5-14b": (14_700, 13_100),
    "qwen2.5-32b": (32_500, 31_000),
    "qwen2.5-72b": (72_700, 70_000),
    "qwen3-0.6b": (600, 440),
    "qwen3-1.7b": (1_700, 1_400),
    "qwen3-4b": (4_000, 3_600),
    "qwen3-8b": (8_200, 6_950),
    "qwen3-14b": (14_800, 13_200),
    "qwen3-32b": (32_800, 31_200),
    "olmo-2-1b": (1_480, None),
    "olmo-2-7b": (7_300, None),
    "olmo-2-13b": (13_700, None),
    "olmo-3-7b": (7_300, None),
    "olmo-3-32b": (32_200, None),
    # Published without embedding and logits, and the first whole: 1.28 billion.
    "exaone-4.0-1.2b": (1_280, 1_070),
    "exaone-4.0-32b": (None, 30_950),
    "granite-3.0-2b": (2_500, None),
    "granite-3.0-8b": (8_100, None),
    "command-r7b": (8_000, None),
    "phi-4-mini": (3_800, None),
    "gemma-3-270m": (268, 100),
    "gemma-3-1b": (1_000, 698),
    "ministral-3-3b": (3_400, None),
    "ministral-3-8b": (8_400, None),
    "ministral-3-14b": (13_500, None),
}
OWN = {"tiny", "shakespeare", "shakespeare-cpu"}  # nobody published a number


def families():
    return {kind: family_of({"model_type": kind}) for kind in FAMILIES}


def counted(name):
    """Count all parameters, and those that are neither embedding nor logits."""
    sizes = {n: f for f in families().values() for n in getattr(f, "SIZES", ())}
    with torch.device("meta"), NothingDrawn():
        model = sizes[name].build(sizes[name].SIZES[name])
    count = {n: x.numel() for n, x in model.named_parameters()}
    ends = ("embedding.weight", "output.weight")
    whole = sum(count.values())
    return whole, whole - sum(count.get(end, 0) for end in ends)


def test_every_family_has_sizes_and_every_size_a_number():
    names = [n for f in families().values() for n in getattr(f, "SIZES", ())]
    assert len(names) == len({*names})
    sparse = {name for _, name in EACH}  # counted in test_sparse_families
    assert {*names} == {*EXACT, *ROUNDED} | OWN | sparse
    without = [kind for kind, f in families().items() if not hasattr(f, "SIZES")]
    assert without == ["tformer"]


@pytest.mark.by_day(12)
@pytest.mark.parametrize("name", EXACT)
def test_as_many_parameters_as_published(name):
    for ours, published in zip(counted(name), EXACT[name], strict=True):
        assert published in (None, ours)


@pytest.mark.by_day(9)
@pytest.mark.parametrize("name", ROUNDED)
def test_about_as_many_parameters_as_published(name):
    for ours, published in zip(counted(name), ROUNDED[name], strict=True):
        if published is not None:
            assert ours / 1e6 == pytest.approx(published, rel=0.015)
