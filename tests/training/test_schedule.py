"""Learning-rate schedules: the paper's numbers, and their shapes."""

from itertools import pairwise

import pytest

from tformer.training.schedule import cosine_schedule, inverse_sqrt_schedule


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 1.74693e-7), (4000, 6.98771e-4), (100_000, 1.39754e-4)]
)
def test_the_papers_numbers(step, rate):
    assert inverse_sqrt_schedule(step, 512) == pytest.approx(rate, rel=5e-6)


def test_it_rises_in_a_straight_line_then_falls_like_one_over_the_root():
    def rate(step):
        return inverse_sqrt_schedule(step, 64, warmup_steps=100)

    assert rate(50) == pytest.approx(50 * rate(1))
    assert max(range(1, 1000), key=rate) == 100
    assert rate(400) == pytest.approx(rate(100) / 2)


def test_the_cosine_rises_to_its_peak_and_ends_at_zero():
    rates = [
        cosine_schedule(step, 100, peak=0.5, warmup_steps=20) for step in range(1, 101)
    ]
    assert rates[:20] == pytest.approx([0.5 * step / 20 for step in range(1, 21)])
    assert max(rates) == rates[19] == 0.5
    assert all(a > b for a, b in pairwise(rates[19:]))
    assert 0 < rates[-1] < 1e-3 * 0.5
    after = [rate / 0.5 for rate in rates[19:]]  # 81 steps from 1 to nearly 0
    assert after[27] == pytest.approx(0.75)  # a third of the way: (1 + cos 60°) / 2


def test_the_cosine_without_warm_up_starts_at_its_peak():
    assert cosine_schedule(1, 10, peak=2.0) == 2.0
    assert cosine_schedule(6, 10, peak=2.0) == pytest.approx(1.0)
    assert cosine_schedule(1, 1, peak=2.0) == 2.0


SCHEDULES = {
    inverse_sqrt_schedule: {"step": 1, "d_model": 64},
    cosine_schedule: {"step": 1, "steps": 10, "peak": 1.0},
}


@pytest.mark.parametrize(
    ("schedule", "arguments", "message"),
    [
        (inverse_sqrt_schedule, {"step": 0}, r"step \(0\)"),
        (inverse_sqrt_schedule, {"step": 1.5}, "step must be an int"),
        (inverse_sqrt_schedule, {"d_model": 0}, r"d_model \(0\)"),
        (cosine_schedule, {"step": 11}, r"step \(11\) must be at most steps \(10\)"),
        (cosine_schedule, {"warmup_steps": 10}, r"\(10\) must be in \[0, 10\)"),
        (cosine_schedule, {"peak": 0.0}, r"peak \(0.0\)"),
    ],
)
def test_bad_input_is_named(schedule, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        schedule(**{**SCHEDULES[schedule], **arguments})
