"""Beam search: keep the best few beginnings, and not only the best one.

B batch · K beams · C candidates · T tokens so far · V vocabulary
"""

import math
from typing import NamedTuple, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.decode import check_finite, through_first
from tformer.generate.evaluating import evaluating
from tformer.generate.given import Options, check_given
from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM

# A divisor beyond 2^±100 would take scores out of float32, which has 2^±126.
LARGEST_EXPONENT = 100


def length_divisor(length: int, length_penalty: float) -> float:
    """Compute ((5 + |Y|) / 6)^α, by which the log-probability of a text is divided.

    Wu et al. 2016, section 7, equation 14 (arXiv:1609.08144). No token makes the sum
    of log-probabilities larger, so that without it (α = 0) short texts are favoured.
    Hugging Face divides by |Y|^α instead, with α = 1 if not given. |Y| counts the end
    token; α above 0 favours longer texts.
    """
    return float(((5 + length) / 6) ** length_penalty)


class Beams(NamedTuple):
    """The K best texts for each source, the best first."""

    ids: Tensor  # int64 (B, K, T), filled up after the end token
    scores: Tensor  # float32 (B, K): log-probability / length_divisor; -inf if none


def beam_search(
    model: Seq2SeqLM | CausalLM,
    given: Tensor,
    *,
    num_beams: int,
    length_penalty: float = 0.6,
    **options: Unpack[Options],
) -> Beams:
    """Search the text with the best log P(Y | X) / ((5 + |Y|) / 6)^α.

    At each step every beam is continued by every token, and the best K stay. One that
    ends is put aside; the search goes on until nothing that still grows can beat the K
    best that have ended. With one beam and α = 0 this is greedy decoding, but where
    two tokens are so close that their sums with what was before them are equal. With
    enough beams it is an exhaustive search. Vaswani et al. took K = 4 and α = 0.6.

    Args:
        model: a trained Seq2SeqLM, such as Transformer, or CausalLM.
        given: the sources, ids (B, S); of the others the prompts, of one length.
        num_beams: K.
        length_penalty: α of `length_divisor`; 0 for none.
        options: `max_len`, and the other `Options`. A text that has not ended after
            `max_len` tokens counts as it is.

    Returns:
        `Beams`: what follows the start token or the prompt, and its scores.
    """
    check_positive(num_beams=num_beams)
    if not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty ({length_penalty}) must be finite")
    if options.get("window") is not None:
        raise ValueError(f"window ({options['window']}) is not for beam search")
    with evaluating(model), torch.no_grad():
        score, prompts, max_len, stops, fill_id, lengths, cache, V = check_given(
            model, given, **options
        )
        exponent = length_penalty * math.log2((5 + max_len) / 6)
        if abs(exponent) > LARGEST_EXPONENT:
            raise ValueError(
                f"length_penalty ({length_penalty}) divides scores by 2^{exponent:.0f} "
                f"at max_len ({max_len}): 2^±{LARGEST_EXPONENT} is the most in float32"
            )
        if len(set(lengths)) > 1:
            raise ValueError("given must hold prompts of one length")
        if len(set(stops)) == V:
            raise ValueError(f"eos_id ({options['eos_id']}) leaves no token to write")

        B, K, largest = len(prompts), num_beams, []
        stop_ids = torch.tensor(stops, dtype=torch.int64, device=prompts.device)
        first_rows = torch.arange(B, device=prompts.device)[:, None]  # (B, 1)
        nothing = prompts[:, None, :0]  # (B, 1, 0)
        live = Beams(nothing, torch.zeros(B, 1, device=prompts.device))
        ended = Beams(
            nothing.new_zeros(B, K, max_len), live.scores.new_full((B, K), -math.inf)
        )
        newest = prompts  # (B, P); at first each source has one beam
        for length in range(1, max_len + 1):
            logits = score(newest).view(B, -1, V)  # (B, beams, V)
            largest.append(logits.amax(dim=-1).flatten())
            sums = live.scores[:, :, None] + logits.float().log_softmax(-1)
            # So many that, whichever of them end, K are left that go on.
            C = min(K * (1 + len(stops)), sums[0].numel())
            best, index = sums.flatten(1).topk(C)  # (B, C), falling
            parent, token = index // V, index % V
            ids = torch.cat((_rows(live.ids, parent), token[:, :, None]), dim=2)

            ends = torch.isin(token, stop_ids)  # (B, C)
            divisor = length_divisor(length, length_penalty)
            # What ends counts only if it is among the K best, as in a beam of K.
            complete = ends[:, :K] | (length == max_len)
            scores = (best[:, :K] / divisor).masked_fill(~complete, -math.inf)
            ended = _merge(ended, ids[:, :K], scores)
            if length == max_len:
                break

            best, chosen = best.masked_fill(ends, -math.inf).topk(min(K, C))
            live = Beams(_rows(ids, chosen), best)
            # A sum only falls. What a beam can still reach is its sum now, over the
            # largest divisor (all sums are below 0).
            divisor = max(divisor, length_divisor(max_len, length_penalty))
            if bool((best[:, 0] / divisor <= ended.scores[:, -1]).all()):
                break
            rows = first_rows * sums.shape[1] + parent.gather(1, chosen)  # (B, K)
            cache.reorder(rows.flatten())
            newest = live.ids[:, :, -1:].flatten(0, 1)  # (B · K, 1)
        check_finite(largest)

    needed = through_first(torch.isin(ended.ids, stop_ids))  # (B, K, T)
    needed &= ended.scores[:, :, None] > -math.inf
    ids = ended.ids.masked_fill(~needed, fill_id)
    return Beams(ids[:, :, : int(needed.flatten(0, 1).any(0).sum())], ended.scores)


def _rows(ids: Tensor, chosen: Tensor) -> Tensor:
    """Pick beams (B, C) out of ids (B, K, T): (B, C, T)."""
    return ids.gather(1, chosen[:, :, None].expand(-1, -1, ids.shape[2]))


def _merge(ended: Beams, ids: Tensor, scores: Tensor) -> Beams:
    """Keep the K best of those that had ended and those that end now."""
    K, max_len = ended.ids.shape[1:]
    ids = F.pad(ids, (0, max_len - ids.shape[2]))  # filled in the end
    best, chosen = torch.cat((ended.scores, scores), dim=1).topk(K)  # (B, K)
    return Beams(_rows(torch.cat((ended.ids, ids), dim=1), chosen), best)
