"""SFT, DPO and GRPO: closed forms, gradients, bad input."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tformer.training.post_training import (
    dpo_loss,
    grpo_advantages,
    grpo_loss,
    kl_k3,
    sequence_log_probs,
    sft_loss,
    token_log_probs,
)

B, T, V = 5, 7, 11
pytestmark = pytest.mark.usefixtures("float64")


def batch(dtype=torch.float64):
    """Logits, targets, and a mask with answers of 1 to 5 tokens in the middle."""
    logits = 3 * torch.randn(B, T, V).to(dtype)
    targets = torch.randint(V, (B, T))
    place = torch.arange(T)
    mask = (place >= 1) & (place <= torch.arange(1, B + 1)[:, None])
    return logits.requires_grad_(), targets, mask


def log_probs_of_policies():
    """New, old and reference log-probabilities; ratios on both sides of the clip."""
    return (-torch.rand(B, T) - 0.5 for _ in range(3))


def test_sft_is_the_cross_entropy_of_the_answers_tokens():
    logits, targets, mask = batch()
    wanted = F.cross_entropy(logits[mask], targets[mask])
    losses = sft_loss(logits, targets, mask), wanted
    assert_close(*losses)
    ours, theirs = (torch.autograd.grad(each, logits)[0] for each in losses)
    assert_close(ours, theirs)
    assert (ours[~mask] == 0).all()
    assert ours[mask].abs().max() > 0.01


def test_log_probs_by_hand():
    """Two tokens with the probabilities 3/4 and 1/4."""
    logits = torch.tensor([math.log(3), 0.0]).expand(1, 3, 2)
    targets = torch.tensor([[0, 1, 0]])
    log_probs = token_log_probs(logits, targets)
    assert_close(log_probs.exp(), torch.tensor([[3 / 4, 1 / 4, 3 / 4]]))
    mask = torch.tensor([[False, True, True]])
    of_answer = sequence_log_probs(logits, targets, mask)
    assert_close(of_answer.exp(), torch.tensor([3 / 16]))


def test_half_precision_is_summed_in_float32():
    logits, targets, mask = batch(torch.bfloat16)
    ours = sequence_log_probs(logits, targets, mask)
    assert ours.dtype == torch.float32
    assert_close(ours.double(), sequence_log_probs(logits.double(), targets, mask))


def test_what_stands_in_the_question_and_in_padding_does_not_count():
    logits, targets, mask = batch()
    other = torch.where(mask, targets, (targets + 1) % V)
    with torch.no_grad():
        spoilt = torch.where(mask[..., None], logits, -math.inf)
        spoilt[..., 0] = torch.where(mask, logits[..., 0], 0.0)
    for each in (sft_loss, sequence_log_probs):
        assert_close(each(spoilt, other, mask), each(logits, targets, mask))
    policies = [x.requires_grad_() for x in log_probs_of_policies()]
    spoilt = [
        torch.where(mask, x.detach(), -1e4 * (i == 0)) for i, x in enumerate(policies)
    ]
    spoilt[0].requires_grad_()
    A = torch.randn(B)
    losses = [grpo_loss(*three, A, mask, beta=0.5) for three in (policies, spoilt)]
    assert_close(*losses)
    first, second = (
        torch.autograd.grad(loss, three[0])[0]
        for loss, three in zip(losses, (policies, spoilt), strict=True)
    )
    assert_close(first, second)
    assert (first[~mask] == 0).all()


def test_dpo_begins_at_ln_2_with_half_a_push_on_each_answer():
    """The derivative is -β σ(-β margin) of the chosen: equation 7's gradient."""
    ref = torch.tensor([-1.0, -2.0])
    chosen, rejected = ref.clone().requires_grad_(), (ref - 1).requires_grad_()
    loss = dpo_loss(chosen, rejected, ref, ref - 1, beta=0.3)
    assert_close(loss, torch.tensor(math.log(2)))
    of_chosen, of_rejected = torch.autograd.grad(loss, (chosen, rejected))
    assert_close(of_chosen, torch.full((2,), -0.3 * 0.5 / 2))
    assert_close(of_rejected, -of_chosen)


def test_dpo_is_the_loss_of_a_logistic_regression():
    chosen, rejected, ref_chosen, ref_rejected = torch.randn(4, B)
    margin = 0.7 * (chosen - ref_chosen - rejected + ref_rejected)
    wanted = F.binary_cross_entropy_with_logits(margin, torch.ones(B))
    ours = dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.7)
    assert_close(ours, wanted)


def test_minimum_of_dpo_is_the_policy_that_a_reward_and_kl_ask_for():
    """Equation 4: π ∝ π_ref exp(r / β), where pairs are drawn as Bradley-Terry says."""
    ref = torch.randn(4).log_softmax(0)
    reward, beta = torch.tensor([0.5, -0.3, 0.2, 0.0]), 0.5
    logits = ref.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        pi, total = logits.log_softmax(0), torch.zeros(())
        for i in range(4):
            for j in range(4):
                preferred = torch.sigmoid(reward[i] - reward[j])
                four = (x[None] for x in (pi[i], pi[j], ref[i], ref[j]))
                total = total + preferred * dpo_loss(*four, beta=beta)
        total.backward()
        return total

    optimizer.step(loss)
    wanted = (ref + reward / beta).softmax(0)
    assert_close(logits.detach().softmax(0), wanted, atol=1e-4, rtol=0)
    assert (wanted - ref.exp()).abs().max() > 0.1


def test_advantages_by_hand():
    rewards = torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 1], [0.1, 0.1, 0.1, 0.1]])
    rare = 3**0.5  # one of four is right: (1 - 1/4) / (√3 / 4)
    row = [rare, -rare / 3, -rare / 3, -rare / 3]
    wanted = torch.tensor([row, [0.0] * 4, [0.0] * 4])
    assert_close(grpo_advantages(rewards), wanted, rtol=0, atol=1e-3)
    plain = torch.tensor([0.75, -0.25, -0.25, -0.25])
    assert_close(grpo_advantages(rewards, divide_by_std=False)[0], plain)
    scaled = grpo_advantages(10 * rewards + 3, eps=1e-9)
    assert_close(scaled[0], torch.tensor(row))
    assert grpo_advantages(rewards, eps=1.0)[0, 0] < 0.6


def test_k3_is_an_unbiased_estimate_of_the_divergence_and_never_negative():
    pi, ref = torch.randn(2, V).log_softmax(-1)
    estimates = kl_k3(pi, ref)
    assert (estimates > 0).all()
    divergence = (pi.exp() * (pi - ref)).sum()
    assert_close((pi.exp() * estimates).sum(), divergence)
    assert divergence > 0.1


def test_gradient_of_k3_as_a_loss_is_that_of_the_other_divergence():
    """Of KL(π_ref ‖ π): the tokens are drawn from π, which no gradient goes through."""
    logits, ref = torch.randn(V, requires_grad=True), torch.randn(V).log_softmax(-1)
    pi = logits.log_softmax(-1)
    mean_k3 = (pi.exp().detach() * kl_k3(pi, ref)).sum()
    other_way = (ref.exp() * (ref - pi)).sum()
    this_way = (pi.exp() * (pi - ref)).sum()
    ours, other, this = (
        torch.autograd.grad(x, logits, retain_graph=True)[0]
        for x in (mean_k3, other_way, this_way)
    )
    assert_close(ours, other)
    assert (ours - this).abs().max() > 0.1


def test_first_step_of_grpo_is_the_policy_gradient():
    """While π is π_old the derivative is -A / (B |y|): REINFORCE, each answer alike."""
    _, _, mask = batch()
    new = next(iter(log_probs_of_policies())).requires_grad_()
    A = torch.randn(B)
    loss = grpo_loss(new, new.detach(), new.detach(), A, mask)
    wanted = -A[:, None] / mask.sum(1, keepdim=True) / B * mask
    assert_close(torch.autograd.grad(loss, new)[0], wanted)
    loss = grpo_loss(new, new.detach(), new.detach(), A, mask, max_len=13)
    wanted = -A[:, None] / 13 / B * mask
    assert_close(torch.autograd.grad(loss, new)[0], wanted)


@pytest.mark.parametrize(
    ("ratio", "A", "gain", "learns"),
    [
        (1.1, 2.0, 2.2, True),
        (1.5, 2.0, 2.4, False),  # has gained enough: 1.2 · 2
        (0.5, 2.0, 1.0, True),
        (1.5, -2.0, -3.0, True),
        (0.5, -2.0, -1.6, False),  # has lost enough: 0.8 · -2
    ],
)
def test_clip(ratio, A, gain, learns):
    new = torch.tensor([[math.log(ratio)]], requires_grad=True)
    zero, mask = torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    loss = grpo_loss(new, zero, zero, torch.tensor([A]), mask, beta=0.0)
    assert_close(-loss, torch.tensor(gain))
    slope = torch.autograd.grad(loss, new)[0].item()
    assert slope == pytest.approx(-gain if learns else 0.0)


LOGITS, IDS = torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)
MASK = torch.ones(2, 3, dtype=torch.bool)
LOG_PROBS, A = torch.zeros(2, 3), torch.zeros(2)
BAD = [
    (token_log_probs, (LOGITS.long(), IDS), {}, TypeError, "logits must be floating"),
    (token_log_probs, (LOGITS, IDS.float()), {}, TypeError, "targets int64"),
    (token_log_probs, (LOGITS, IDS[:, :2]), {}, ValueError, r"targets is \(2, 2\)"),
    (token_log_probs, (LOGITS[:0], IDS[:0]), {}, ValueError, "not empty"),
    (token_log_probs, (LOGITS, IDS - 100), {}, ValueError, r"\[0, 5\).* -100 to -100"),
    (token_log_probs, (LOGITS, IDS + 5), {}, ValueError, "5 to 5"),
    (sft_loss, (LOGITS, IDS, MASK.long()), {}, TypeError, "answer_mask must be bool"),
    (
        sft_loss,
        (LOGITS, IDS, MASK[:1]),
        {},
        ValueError,
        r"answer_mask must be \(2, 3\)",
    ),
    (sequence_log_probs, (LOGITS, IDS, ~MASK), {}, ValueError, "in every row"),
    (dpo_loss, (A, A, A, A[:1]), {}, ValueError, r"ref_rejected must be \(2,\)"),
    (dpo_loss, (A, A[:, None], A, A), {}, ValueError, r"rejected .*not \(2, 1\)"),
    (dpo_loss, (LOG_PROBS,) * 4, {}, ValueError, r"chosen must be \(2,\)"),
    (dpo_loss, (A[:0],) * 4, {}, ValueError, "not empty"),
    (dpo_loss, (A,) * 4, {"beta": 0.0}, ValueError, r"beta \(0.0\)"),
    (grpo_advantages, (A,), {}, ValueError, r"two answers or more, not \(2,\)"),
    (grpo_advantages, (A[:, None],), {}, ValueError, r"not \(2, 1\)"),
    (grpo_advantages, (MASK,), {}, TypeError, "rewards must be floating"),
    (grpo_advantages, (LOG_PROBS,), {"eps": 0.0}, ValueError, r"eps \(0.0\)"),
    (kl_k3, (LOG_PROBS, A), {}, ValueError, "ref_log_probs"),
    *(
        (grpo_loss, (*(LOG_PROBS,) * 3, A, MASK), options, ValueError, message)
        for options, message in (
            ({"clip": 0.0}, r"clip \(0.0\)"),
            ({"clip": 1.0}, r"clip \(1.0\)"),
            ({"beta": -0.1}, r"beta \(-0.1\)"),
            ({"beta": math.inf}, r"beta \(inf\)"),
            ({"max_len": 0}, r"max_len \(0\)"),
        )
    ),
    (grpo_loss, (*(LOG_PROBS,) * 3, A[:, None], MASK), {}, ValueError, "advantages"),
    (grpo_loss, (*(LOG_PROBS,) * 2, A, A, MASK), {}, ValueError, "ref_log_probs"),
]


@pytest.mark.parametrize(("function", "args", "options", "error", "message"), BAD)
def test_bad_input_is_named(function, args, options, error, message):
    with pytest.raises(error, match=message):
        function(*args, **options)
