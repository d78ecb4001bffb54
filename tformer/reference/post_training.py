"""The losses of SFT, DPO and GRPO in NumPy: numbers, no gradients.

B batch · T length · V vocabulary · N questions · G answers to each of them
"""

import numpy as np
from numpy import ndarray


def token_log_probs(logits: ndarray, targets: ndarray) -> ndarray:
    """Look up log π(y_t | x, y_<t): of logits (B, T, V) and ids (B, T) it is (B, T)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]


def sequence_log_probs(
    logits: ndarray, targets: ndarray, answer_mask: ndarray
) -> ndarray:
    """Sum the log-probabilities of the answer's tokens, True in the mask: (B,)."""
    return np.where(answer_mask, token_log_probs(logits, targets), 0.0).sum(axis=-1)


def sft_loss(logits: ndarray, targets: ndarray, answer_mask: ndarray) -> ndarray:
    """Compute -mean log π(y_t | x, y_<t) over the answers' tokens."""
    return -token_log_probs(logits, targets)[answer_mask].mean()


def dpo_loss(
    chosen: ndarray,
    rejected: ndarray,
    ref_chosen: ndarray,
    ref_rejected: ndarray,
    *,
    beta: float = 0.1,
) -> ndarray:
    """Compute -mean log σ(β margin) of log-probabilities (B,): Rafailov et al., eq. 7.

    -log σ(z) = log(1 + exp(-z)).
    """
    margin = (chosen - ref_chosen) - (rejected - ref_rejected)
    return np.logaddexp(0.0, -beta * margin).mean()


def grpo_advantages(
    rewards: ndarray, *, divide_by_std: bool = True, eps: float = 1e-4
) -> ndarray:
    """Compute (r - mean) / (std + ε) of each row of rewards (N, G)."""
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    std = rewards.std(axis=1, keepdims=True)
    return centred / (std + eps) if divide_by_std else centred


def kl_k3(log_probs: ndarray, ref_log_probs: ndarray) -> ndarray:
    """Compute ρ - log ρ - 1, ρ = π_ref / π: Shao et al. 2024, equation 4."""
    log_ratio = ref_log_probs - log_probs
    return np.exp(log_ratio) - log_ratio - 1


def grpo_loss(
    log_probs: ndarray,
    old_log_probs: ndarray,
    ref_log_probs: ndarray,
    advantages: ndarray,
    answer_mask: ndarray,
    *,
    clip: float = 0.2,
    beta: float = 0.04,
    max_len: int | None = None,
) -> ndarray:
    """Compute the loss answer by answer: Shao et al. 2024, equation 3."""
    gains = []
    for i, mask in enumerate(answer_mask):
        new, old, ref = (x[i][mask] for x in (log_probs, old_log_probs, ref_log_probs))
        ratio, A = np.exp(new - old), advantages[i]
        gain = np.minimum(ratio * A, np.clip(ratio, 1 - clip, 1 + clip) * A)
        gain = gain - beta * kl_k3(new, ref)
        gains.append(gain.sum() / (len(gain) if max_len is None else max_len))
    return -np.mean(gains)
