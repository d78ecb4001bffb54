"""Floats are compared to the digits that the page shows, all else to the letter."""

import pytest

from engine.run.outputs import difference, same_output


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("", ""),
        ("a\nb", "a\nb\n"),
        ("a", "a   \n\n"),
        ("0.3333", "0.3334"),  # rounded the other way
        ("0.33", "0.3349"),
        ("0.5", "0.5"),
        ("98.5 %", "98.5 %"),
        ("1e-07", "2e-07"),
        ("1.19e-07", "1.2e-07"),
        ("tensor([1., 0.])", "tensor([1.0000, 0.0000])"),
        ("[ 0.0000, 0.5000]", "[-0.0000, 0.5000]"),
        ("[0.5000,\n 0.2500]", "[ 0.5000,\n  0.2500]"),
        ("loss: 0.1235.", "loss: 0.1234."),
        ("torch.Size([2, 3])", "torch.Size([2, 3])"),
    ],
)
def test_same(shown: str, printed: str) -> None:
    assert same_output(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("", "a"),
        ("a", ""),
        ("a b", "a  b"),
        ("0.3333", "0.3335"),
        ("1.0", "0.9"),
        ("1.", "2."),
        ("1.", "0."),
        ("0.5", "0.6"),
        ("1e-07", "4e-07"),
        ("1.5e+10", "1.5e+11"),
        ("tensor([1., 0.])", "tensor([0., 1.])"),
        ("[0.5000, 0.2500]", "[0.5000]"),
        ("12", "13"),
        ("3.11.2", "3.11.3"),
        ("3.11.2", "3.12.2"),
        ("v1.01", "v1.02"),
        ("nan", "0.5000"),
        ("inf", "nan"),
        ("torch.Size([2, 3])", "torch.Size([3, 2])"),
        ("1.0", "1"),
        ("-0.5000", "0.5000"),
    ],
)
def test_different(shown: str, printed: str) -> None:
    assert not same_output(shown, printed)


def test_difference_shows_both_sides() -> None:
    assert difference("one\ntwo", "one\n2") == (
        "--- the page shows\n+++ the block prints\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    )
