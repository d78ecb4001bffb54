"""Post-training: the losses of SFT, DPO and GRPO, made of log-probabilities.

B batch · T length · V vocabulary · N questions · G answers to each of them
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_above_0, check_positive


def token_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """Look up log π(y_t | x, y_<t) of each target: log_softmax(logits)[target].

    Args:
        logits: (B, T, V). Half precision is summed in float32.
        targets: int64 ids (B, T), the inputs shifted by one.

    Returns:
        (B, T), in nats; float32, or float64 for logits in float64.
    """
    if not logits.is_floating_point() or targets.dtype != torch.int64:
        dtypes = f"{logits.dtype} and {targets.dtype}"
        raise TypeError(f"logits must be floating, targets int64, not {dtypes}")
    if logits.shape[:-1] != targets.shape or not logits.numel():
        raise ValueError(
            "logits must be (..., V) and targets (...), and not empty: logits is "
            f"{tuple(logits.shape)}, targets is {tuple(targets.shape)}"
        )
    low, high, V = int(targets.min()), int(targets.max()), logits.shape[-1]
    if low < 0 or high >= V:  # such as the -100 that other libraries leave out
        rule = f"targets must be in [0, {V}), in the question and in padding too"
        raise ValueError(f"{rule}, but they reach from {low} to {high}")
    logits = logits if logits.dtype == torch.float64 else logits.float()
    return logits.log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0]


def sequence_log_probs(logits: Tensor, targets: Tensor, answer_mask: Tensor) -> Tensor:
    """Compute log π(y | x) = Σ_t log π(y_t | x, y_<t), over the answer's tokens alone.

    Args:
        logits: (B, T, V).
        targets: int64 ids (B, T), the inputs shifted by one.
        answer_mask: bool (B, T), True = the target is a token of the answer, its end
            token included; False in the question and in padding.

    Returns:
        (B,), in nats.
    """
    _check_mask(answer_mask, targets.shape)
    of_tokens = token_log_probs(logits, targets)  # (B, T)
    return of_tokens.masked_fill(~answer_mask, 0.0).sum(dim=-1)


def sft_loss(logits: Tensor, targets: Tensor, answer_mask: Tensor) -> Tensor:
    """Compute the cross-entropy of the answers' tokens: -mean log π(y_t | x, y_<t).

    Supervised fine-tuning, the first step of Ouyang et al. 2022, section 3.5
    (arXiv:2203.02155). The mean is over all answer tokens of the batch, so a long
    answer weighs more than a short one.

    Args:
        logits: (B, T, V).
        targets: int64 ids (B, T), the inputs shifted by one.
        answer_mask: bool (B, T), True = the target is a token of the answer.

    Returns:
        A scalar in nats.
    """
    return -sequence_log_probs(logits, targets, answer_mask).sum() / answer_mask.sum()


def dpo_loss(
    chosen: Tensor,
    rejected: Tensor,
    ref_chosen: Tensor,
    ref_rejected: Tensor,
    *,
    beta: float = 0.1,
) -> Tensor:
    """Compute -mean log σ(β [(chosen - ref_chosen) - (rejected - ref_rejected)]).

    Direct preference optimisation: Rafailov et al. 2023, equation 7 (arXiv:2305.18290).
    β times the log of π(y|x) / π_ref(y|x) is a reward, and the loss is that of a
    logistic regression: the chosen answer has to have the larger one.

    Args:
        chosen: log π(y_w | x) of the preferred answers, (B,): `sequence_log_probs`.
        rejected: log π(y_l | x) of the others, (B,).
        ref_chosen: log π_ref(y_w | x) of the model before, (B,).
        ref_rejected: log π_ref(y_l | x), (B,).
        beta: above 0; how dear it is to go away from π_ref.

    Returns:
        A scalar; ln 2 where π = π_ref.
    """
    others = {"rejected": rejected, "ref_chosen": ref_chosen}
    _check_shapes(chosen.shape[:1], chosen=chosen, **others, ref_rejected=ref_rejected)
    check_above_0(beta=beta)
    margin = (chosen - ref_chosen) - (rejected - ref_rejected)  # (B,)
    return -F.logsigmoid(beta * margin).mean()


def grpo_advantages(
    rewards: Tensor, *, divide_by_std: bool = True, eps: float = 1e-4
) -> Tensor:
    """Compare each answer with the others to its question: (r - mean) / (std + ε).

    Group relative policy optimisation: Shao et al. 2024, section 4.1.2
    (arXiv:2402.03300). The paper has no ε; without it answers of one reward would be
    0 / 0. The standard deviation is that of the group itself (divided by G).

    Args:
        rewards: floating (N, G), G answers to each of N questions.
        divide_by_std: False is Dr. GRPO: Liu et al. 2025 (arXiv:2503.20783),
            section 3.2. Questions that are nearly always or nearly never answered
            right, whose standard deviation is small, then weigh no more.
        eps: added to the standard deviation, above 0.

    Returns:
        (N, G); each row sums to 0, and is 0 where all rewards are equal, to within
        the rounding of their mean divided by ε.
    """
    if not rewards.is_floating_point():
        raise TypeError(f"rewards must be floating, not {rewards.dtype}")
    if rewards.ndim != 2 or rewards.shape[1] < 2:
        rule = "must be (questions, answers), with two answers or more"
        raise ValueError(f"rewards {rule}, not {tuple(rewards.shape)}")
    check_above_0(eps=eps)
    centred = rewards - rewards.mean(dim=1, keepdim=True)  # (N, G)
    if not divide_by_std:
        return centred
    return centred / (rewards.std(dim=1, correction=0, keepdim=True) + eps)


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Estimate KL(π ‖ π_ref) from tokens that π drew: ρ - log ρ - 1, ρ = π_ref / π.

    Shao et al. 2024, equation 4; Schulman 2020 calls it k3. Its mean over tokens drawn
    from π is the divergence, and it is never below 0, as log ρ can be.

    Args:
        log_probs: log π of each token, any shape.
        ref_log_probs: log π_ref of the same tokens, of the same shape.
    """
    _check_shapes(log_probs.shape, ref_log_probs=ref_log_probs)
    log_ratio = ref_log_probs - log_probs
    return log_ratio.exp() - log_ratio - 1


def grpo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    advantages: Tensor,
    answer_mask: Tensor,
    *,
    clip: float = 0.2,
    beta: float = 0.04,
    max_len: int | None = None,
) -> Tensor:
    """Compute -mean 1/|y| Σ_t [min(r_t A, clip(r_t, 1 - ε, 1 + ε) A) - β KL_t].

    r_t = π(y_t | x, y_<t) / π_old(y_t | x, y_<t), and KL_t is `kl_k3`. Shao et al.
    2024, equation 3 (arXiv:2402.03300); the clipped ratio is PPO's: Schulman et al.
    2017, equation 7 (arXiv:1707.06347).

    Args:
        log_probs: log π of each token, (B, T): `token_log_probs`.
        old_log_probs: the same of the model that drew the answers, without a gradient.
        ref_log_probs: the same of the reference, (B, T).
        advantages: of each answer, (B,): `grpo_advantages`, flattened.
        answer_mask: bool (B, T), True = a token of the answer.
        clip: ε in (0, 1).
        beta: 0 or more, of the divergence from the reference.
        max_len: divide each answer's sum by this number, and not by its own length:
            Dr. GRPO, Liu et al. 2025 (arXiv:2503.20783), section 3.2. Divided by its
            own, a long wrong answer loses less on each token than a short one.

    Returns:
        A scalar.
    """
    _check_mask(answer_mask, log_probs.shape)
    _check_shapes(
        log_probs.shape, old_log_probs=old_log_probs, ref_log_probs=ref_log_probs
    )
    _check_shapes(log_probs.shape[:1], advantages=advantages)
    if not 0 < clip < 1:
        raise ValueError(f"clip ({clip}) must be in (0, 1)")
    if not 0 <= beta < math.inf:
        raise ValueError(f"beta ({beta}) must be 0 or more, and finite")
    # What stands in padding is set to 0 first, so that no exp overflows there.
    all_three = (log_probs, old_log_probs, ref_log_probs)
    new, old, ref = (x.masked_fill(~answer_mask, 0.0) for x in all_three)  # (B, T)
    A, ratio = advantages[:, None], (new - old).exp()  # (B, 1), (B, T)
    gain = torch.minimum(ratio * A, ratio.clamp(1 - clip, 1 + clip) * A)
    gain = gain - beta * kl_k3(new, ref)
    sums = gain.masked_fill(~answer_mask, 0.0).sum(dim=1)  # (B,)
    if max_len is None:
        return -(sums / answer_mask.sum(dim=1)).mean()
    check_positive(max_len=max_len)
    return -(sums / max_len).mean()


def _check_shapes(shape: torch.Size, **others: Tensor) -> None:
    """Raise unless all have this shape: (B,) and (B, 1) would make (B, B) silently."""
    for name, x in others.items():
        if x.shape != shape or not x.numel():
            rule = f"must be {tuple(shape)} and not empty"
            raise ValueError(f"{name} {rule}, not {tuple(x.shape)}")


def _check_mask(answer_mask: Tensor, shape: torch.Size) -> None:
    if answer_mask.dtype != torch.bool:
        rule = "must be bool (True = a token of the answer)"
        raise TypeError(f"answer_mask {rule}, not {answer_mask.dtype}")
    _check_shapes(shape, answer_mask=answer_mask)
    if not answer_mask.any(dim=-1).all():
        raise ValueError("answer_mask must have a token of the answer in every row")
