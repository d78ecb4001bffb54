"""Positions beyond their specs (`tformer.check`): tables that grow, in every dtype."""

import math

import pytest
import torch
from torch.testing import assert_close

from tformer import LearnedPositionalEmbedding, SinusoidalPositionalEncoding
from tformer.nn import RotaryEmbedding, rotary_frequencies, sinusoidal_positions

B, T, D = 2, 5, 14


def sinusoids(**options):
    return SinusoidalPositionalEncoding(D, max_len=T, **options)


def rotary():
    return RotaryEmbedding(rotary_frequencies(D))


def draw(length, dtype=torch.float64):
    return torch.randn(B, 3, length, D, dtype=torch.float64).to(dtype)


def add_or_rotate(module, x, start=0):
    """Ask both modules the same: (B, 3, T, D)."""
    if isinstance(module, RotaryEmbedding):
        return module(x, start=start)
    return module(x.flatten(0, 1), start=start).view_as(x)


@pytest.mark.parametrize("make", [sinusoids, rotary])
class TestTables:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_growing_changes_nothing(self, make, dtype):
        module, x = make(), draw(8 * T, dtype)
        parts = [
            add_or_rotate(module, part, start=i * T)
            for i, part in enumerate(x.split(T, dim=2))
        ]
        assert parts[0].dtype == dtype
        assert_close(torch.cat(parts, dim=2), add_or_rotate(make(), x))

    def test_a_text_that_grows_token_by_token_makes_few_tables(self, make):
        module, tables = make(), set()
        for length in range(8 * T):
            add_or_rotate(module, draw(1), start=length)
            tables.add(module._table.numel())
        assert len(tables) <= (4 if make is sinusoids else 7)

    def test_no_table_grows_where_dtypes_take_turns(self, make):
        module, sizes = make(), set()
        for _ in range(5):
            for dtype in (torch.float32, torch.float64):
                add_or_rotate(module, draw(2 * T, dtype))
                sizes.add(module._table.numel())
        assert len(sizes) == 1

    def test_another_thread_may_grow_the_table_less(self, make):
        class Shared(type(make())):
            def __setattr__(self, name, value):
                cut = value[..., :T, :] if name == "_table" else value
                super().__setattr__(name, cut)

        module, x = make(), draw(3 * T)
        wanted = add_or_rotate(module, x)
        shared = make()
        shared.__class__ = Shared
        assert torch.equal(add_or_rotate(shared, x), wanted)

    def test_they_are_no_weights_and_have_no_place(self, make):
        """From the meta device, and in bfloat16, they are as they were."""
        with torch.device("meta"):
            module = make()
        x, moved = draw(T), module.to_empty(device="cpu").bfloat16()
        assert torch.equal(add_or_rotate(moved, x), add_or_rotate(make(), x))
        assert not module.state_dict()
        assert not list(module.parameters())

    def test_far_positions_are_exact(self, make):
        """In float32 the angle itself would be off by 1/128 at position 100,000."""
        far = torch.zeros(B, 3, 1, D)
        far[..., : D if make is sinusoids else 1] = 1
        both = add_or_rotate(make(), far, start=100_000)[0, 0, 0, :2].tolist()
        sine, cosine = math.sin(100_000), math.cos(100_000)
        wanted = [1 + sine, 1 + cosine] if make is sinusoids else [cosine, sine]
        assert both == pytest.approx(wanted, abs=1e-6)


def test_learned_vectors_begin_small_and_learn_where_they_are_used():
    positions = LearnedPositionalEmbedding(101, 64)
    assert positions.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert abs(positions.weight.mean().item()) < 1e-3
    positions(torch.randn(B, T, 64), start=2).sum().backward()
    assert positions.weight.grad[:, 0].tolist() == 2 * [0] + T * [B] + 94 * [0]


def test_all_sines_then_all_cosines():
    """The same columns in another order, in the table and in the module."""
    pairs, x = sinusoidal_positions(T, D), draw(3 * T)[:, 0]
    order = [*range(0, D, 2), *range(1, D, 2)]
    halves = sinusoidal_positions(T, D, layout="halves")
    assert torch.equal(halves, pairs[:, order])
    module = sinusoids(layout="halves")
    wanted = sinusoids()(torch.zeros_like(x), start=2)[..., order]
    assert_close(module(x, start=2) - x, wanted)


def test_rows_before_the_first_position():
    weight = torch.nn.init.normal_(torch.empty(T + 3, D))
    moved, plain = LearnedPositionalEmbedding(T, D, offset=3), torch.zeros(1, 2, D)
    moved.load_state_dict({"weight": weight})
    assert torch.equal(moved(plain, start=1)[0], weight[4:6])
    with pytest.raises(ValueError, match="positions up to 6 but max_len is 5"):
        moved(plain, start=4)


@pytest.mark.parametrize("make", [sinusoids, lambda: LearnedPositionalEmbedding(9, D)])
def test_tokens_may_stand_anywhere(make, raises):
    """At positions of all rows, or of each; a table grows to the last of them."""
    module, x = make().double(), draw(T)[:, 0]
    places = torch.tensor([[3, 0, 7, 3, 8], [1, 1, 2, 0, 4]])
    wanted = [
        torch.cat([module(x[b, t][None, None], start=p) for t, p in enumerate(row)], 1)
        for b, row in enumerate(places.tolist())
    ]
    assert_close(module(x, positions=places), torch.cat(wanted))
    assert_close(module(x[:1], positions=places[0]), wanted[0])
    rule = "positions must be int64 (5,) or (2, 5), at least 0, and start 0"
    for bad in (places[:, :4], places[0, :1], places - 1, places.double(), places > 1):
        with raises(ValueError, f"{rule}, not {bad.tolist()} and 0"):
            module(x, positions=bad)
    with raises(ValueError, f"{rule}, not [3, 0, 7, 3, 8] and 1"):
        module(x, positions=places[0], start=1)


def test_bad_options(raises):
    with raises(ValueError, "layout ('both') must be one of pairs, halves"):
        sinusoids(layout="both")
    with raises(ValueError, "offset (-1) must be at least 0"):
        LearnedPositionalEmbedding(T, D, offset=-1)
