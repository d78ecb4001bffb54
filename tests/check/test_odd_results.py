"""Results that are no arrays, errors of the judge, and norms in float32."""

import pytest

from tformer.check.exercises import EXERCISES
from tformer.check.grading import grade
from tformer.check.running import Runner

LOSS = """
import torch.nn.functional as F

def smoothed_loss(logits, targets, pad_id, smoothing):
    real = targets != pad_id
    log_p = F.log_softmax(logits[real], -1)
    picked = log_p.gather(1, targets[real][:, None])[:, 0]
    loss = (1 - smoothing) * picked + smoothing * log_p.mean(-1)
    return -loss.sum() / real.sum().clamp(min=1)
"""

IN_FLOAT32 = {
    "mean": "(y - y.mean(-1, True)) / (y.var(-1, keepdim=True, unbiased=False) + eps)"
    ".sqrt()",
    "sum": "(y - y.sum(-1, True) / D) / ((y - y.sum(-1, True) / D).square()"
    ".sum(-1, True) / D + eps).sqrt()",
    "torch": "torch.nn.functional.layer_norm(y, (D,), eps=eps)",
}


@pytest.fixture
def graded(tmp_path):
    def graded(source, name):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        with Runner() as runner:
            return grade(runner, EXERCISES[name], path)

    return graded


@pytest.mark.by_day(1)
@pytest.mark.parametrize("style", IN_FLOAT32)
def test_a_norm_that_computes_in_float32_is_right(graded, style):
    found = graded(
        f"""
import torch

def layer_norm(x, weight, bias, eps):
    y, D = x.float(), x.shape[-1]
    y = {IN_FLOAT32[style]}
    return (y * weight.float() + bias.float()).to(x.dtype)
""",
        "layer_norm",
    )
    assert found.verdict == "right", found.judged


def test_mean_of_squares_minus_square_of_mean_is_wrong_and_named(graded):
    found = graded(
        """
import torch

def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, True)
    v = (x * x).mean(-1, True) - m * m
    return (x - m) / (v + eps).sqrt() * weight + bias
""",
        "layer_norm",
    )
    assert [x.id for x in found.judged.mistakes] == ["loses_digits"]


@pytest.mark.parametrize(
    ("result", "kind"),
    [("str(x)", "str"), ("Decimal(1)", "Decimal"), ("(i for i in x)", "generator")],
)
def test_what_is_no_array_is_named_by_its_type(graded, result, kind):
    head = "from decimal import Decimal\ndef rotary(x, positions, base):\n"
    found = graded(f"{head}    return {result}\n", "rotary")
    assert found.verdict == "wrong"
    assert f"something of the type {kind}, not numbers" in found.judged.differs.message
    assert not found.judged.mistakes


def test_a_number_in_place_of_a_tensor_is_told_in_plain_words(graded):
    assert graded(LOSS, "smoothed_loss").verdict == "right"
    found = graded(
        LOSS.replace(
            "return -loss.sum() / real.sum().clamp(min=1)",
            "return (-loss.sum() / real.sum().clamp(min=1)).item()",
        ),
        "smoothed_loss",
    )
    assert found.verdict == "wrong"
    assert "what it returns is no tensor" in found.judged.differs.message


def test_an_error_of_the_judge_ends_no_call(graded, monkeypatch):
    def broken(evidence):
        raise IndexError("of ours")

    monkeypatch.setattr("tformer.check.grading.judge_evidence", broken)
    found = graded("def rotary(x, positions, base):\n    return x\n", "rotary")
    assert found.verdict == "not run"
    assert "could not be judged (IndexError)" in found.reason


def test_lists_in_a_list_are_an_array(graded):
    """Whoever writes loops in Python has the right numbers, and is told so."""
    source = "def causal_mask(T, S):\n"
    source += "    return [[%s for s in range(S)] for t in range(T)]\n"
    assert graded(source % "s - S <= t - T", "causal_mask").verdict == "right"
    assert graded(source % "s - S < t - T", "causal_mask").verdict == "wrong"
    source = "def lora_weight(weight, a, b, alpha):\n"
    source += "    return (weight + alpha / len(a) * (b @ a)).tolist()\n"
    assert graded(source, "lora").verdict == "right"
