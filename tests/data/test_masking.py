"""mask_tokens: who is asked, and what stands in the asked places."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer.data import mask_tokens

V, MASK, SPECIAL = 31, 4, (1, 2, 3)


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


def mask(ids, seed=0, **changes):
    options = {"mask_id": MASK, "vocab_size": V, "special_ids": SPECIAL}
    return mask_tokens(ids, **{**options, "generator": chance(seed), **changes})


@pytest.mark.parametrize("probability", [0.15, 0.5])
def test_the_shares_of_the_paper(probability):
    ids = torch.randint(5, V, (2000, 100))
    corrupted, targets = mask(ids, probability=probability)
    asked = targets != 0
    assert asked.double().mean().item() == pytest.approx(probability, rel=0.02)
    assert asked.double().mean(0).sub(probability).abs().max() < 0.1  # in each column
    assert torch.equal(targets[asked], ids[asked])
    assert torch.equal(corrupted[~asked], ids[~asked])
    masked = corrupted[asked] == MASK
    kept = corrupted[asked] == ids[asked]
    assert masked.double().mean().item() == pytest.approx(0.8, rel=0.02)
    # One of the 26 ordinary tokens is by chance the same.
    assert kept.double().mean().item() == pytest.approx(0.1 + 0.1 / 26, rel=0.05)
    changed = corrupted[asked][~masked & ~kept]
    counts = torch.bincount(changed, minlength=V)
    assert (counts[:5] == 0).all()
    assert (counts[5:] > 0.7 * len(changed) / 26).all()


@given(seed=st.integers(0, 99), probability=st.floats(0.01, 0.99))
def test_special_tokens_are_left_alone(seed, probability):
    generator = chance(seed)
    ids = torch.randint(0, V, (7, 13), generator=generator)
    corrupted, targets = mask(ids, seed, probability=probability)
    special = ids <= 4  # padding, SPECIAL and the mask
    assert torch.equal(corrupted[special], ids[special])
    assert (targets[special] == 0).all()
    untouched = (targets == 0) & ~special
    assert torch.equal(corrupted[untouched], ids[untouched])


def test_the_generator_makes_it_repeatable():
    ids = torch.randint(5, V, (5, 40))
    first, second = mask(ids, 3), mask(ids, 3)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first[0], mask(ids, 4)[0])
    generator, before = chance(), ids.clone()
    once, again = (mask(ids, generator=generator)[1] for _ in range(2))
    assert not torch.equal(once, again)
    assert torch.equal(ids, before)


def test_a_mask_that_the_vocabulary_does_not_know_and_padding_elsewhere():
    ids = torch.randint(0, V, (50, 40))
    corrupted, targets = mask(ids, mask_id=V, special_ids=(), pad_id=7)
    assert (corrupted == V).any()
    assert ((targets == 7) | (targets == ids)).all()
    assert (targets[ids == 7] == 7).all()
    assert (targets == 0).any()  # an ordinary token here


def test_shapes_and_types():
    for tensor in mask(torch.randint(5, V, (2, 3, 5), dtype=torch.int32)):
        assert (tensor.shape, tensor.dtype) == ((2, 3, 5), torch.int32)


def test_bad_input(raises):
    ids = torch.randint(5, V, (2, 3))
    for probability in (0, 1):
        with raises(ValueError, f"probability ({probability}) must be in (0, 1)"):
            mask(ids, probability=probability)
    with raises(ValueError, "special_ids leave none of vocab_size (3) tokens"):
        mask(ids, vocab_size=3, special_ids=(1, 2))
