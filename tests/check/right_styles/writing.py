"""Right searches, filters and speculative decoding in five styles."""

import heapq

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# beam


def _score(total, ids, alpha):
    return total / ((5 + len(ids)) / 6) ** alpha


def beam_loops(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    live, ended = [([], 0.0)], []
    while live:
        grown = []
        for ids, total in live:
            for token, share in enumerate(next_log_probs([bos, *ids])):
                grown.append(([*ids, token], total + float(share)))
        grown.sort(key=lambda each: each[1], reverse=True)
        done = [len(ids) == max_len or ids[-1] == eos for ids, _ in grown[:num_beams]]
        ended += [x for x, is_done in zip(grown, done, strict=False) if is_done]
        live = [x for x in grown if x[0][-1] != eos and len(x[0]) < max_len][:num_beams]
    return max(ended, key=lambda x: _score(x[1], x[0], length_penalty))[0]


def beam_einsum(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    """Score all continuations of all beams as one array."""
    texts, totals, ended = [[]], torch.zeros(1, dtype=torch.double), []
    for length in range(1, max_len + 1):
        shares = torch.stack(
            [torch.as_tensor(next_log_probs([bos, *x])) for x in texts]
        )
        flat = (totals[:, None] + shares).flatten()
        order = flat.argsort(descending=True).tolist()
        V = shares.shape[1]
        grown = [(float(flat[i]), [*texts[i // V], i % V]) for i in order]
        for total, ids in grown[:num_beams]:
            if ids[-1] == eos or length == max_len:
                ended.append((_score(total, ids, length_penalty), ids))
        live = [x for x in grown if x[1][-1] != eos][:num_beams]
        totals = torch.tensor([x[0] for x in live], dtype=torch.double)
        texts = [x[1] for x in live]
    return max(ended)[1]


class Beam:
    def __init__(self, model, eos, width):
        self.model, self.eos, self.width = model, eos, width
        self.live, self.ended = [(0.0, ())], []

    def step(self, bos, last):
        grown = [
            (total + float(share), (*ids, token))
            for total, ids in self.live
            for token, share in enumerate(self.model([bos, *ids]))
        ]
        best = heapq.nlargest(self.width, grown)
        self.ended += [x for x in best if last or x[1][-1] == self.eos]
        going = [x for x in grown if x[1][-1] != self.eos]
        self.live = heapq.nlargest(self.width, going)


def beam_module(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    search = Beam(next_log_probs, eos, num_beams)
    for length in range(max_len):
        search.step(bos, length + 1 == max_len)
    best = max(search.ended, key=lambda x: _score(*x, length_penalty))
    return [*best[1]]


def beam_numpy(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    live, totals, ended = np.zeros((1, 0), int), np.zeros(1), []
    for length in range(1, max_len + 1):
        shares = np.array([next_log_probs([bos, *row.tolist()]) for row in live])
        scores = totals[:, None] + shares
        beam, token = np.unravel_index(np.argsort(-scores, None), scores.shape)
        rows, scores = np.column_stack((live[beam], token)), scores[beam, token]
        stop = (token == eos) | (length == max_len)
        for i in np.flatnonzero(stop[:num_beams]):
            ended.append((_score(scores[i], rows[i], length_penalty), rows[i].tolist()))
        going = np.flatnonzero(token != eos)[:num_beams]
        live, totals = rows[going], scores[going]
    return max(ended)[1]


def beam_torch(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    """One text after another, deeper only from the beams of each length."""

    def grow(live, length):
        grown = sorted(
            (
                (total + share, [*ids, token])
                for total, ids in live
                for token, share in enumerate(list(next_log_probs([bos, *ids])))
            ),
            key=lambda each: float(each[0]),
            reverse=True,
        )
        last = length == max_len
        found = [x for x in grown[:num_beams] if last or x[1][-1] == eos]
        going = [x for x in grown if x[1][-1] != eos][:num_beams]
        return found if last or not going else found + grow(going, length + 1)

    ended = grow([(0.0, [])], 1)
    scores = torch.tensor([float(_score(*x, length_penalty)) for x in ended])
    return torch.tensor(ended[int(scores.argmax())][1])


# speculative


def speculative_loops(p, q, draft, u):
    for n, token in enumerate(draft.tolist()):
        if u[n] * q[n, token] >= p[n, token]:
            left = [max(float(x - y), 0.0) for x, y in zip(p[n], q[n], strict=True)]
            return n, np.array(left) / sum(left)
    return len(draft), p[-1]


def speculative_einsum(p, q, draft, u):
    at = torch.arange(len(draft))
    stays = u < (p[at, draft] / q[at, draft]).clamp(max=1)
    n = int(stays.long().cumprod(0).sum())
    left = (p[n] - F.pad(q, (0, 0, 0, 1))[n]).clamp(min=0)
    return n, left / left.sum()


class Speculative(nn.Module):
    def forward(self, p, q, draft, u):
        rejected = (u * q.gather(1, draft[:, None])[:, 0]) >= p[:-1].gather(
            1, draft[:, None]
        )[:, 0]
        if not rejected.any():
            return len(draft), p[-1]
        n = int(rejected.int().argmax())
        left = torch.relu(p[n] - q[n])
        return n, left / left.sum()


def speculative_module(p, q, draft, u):
    return Speculative()(p, q, draft, u)


def speculative_numpy(p, q, draft, u):
    at = np.arange(len(draft))
    stays = u < np.minimum(1, p[at, draft] / q[at, draft])
    if stays.all():
        return len(draft), p[len(draft)]
    n = int(np.argmin(stays))
    left = np.clip(p[n] - q[n], 0, None)
    return n, left / left.sum()


def speculative_torch(p, q, draft, u):
    n = 0
    while n < len(draft) and u[n] < torch.minimum(
        torch.ones(()), p[n, draft[n]] / q[n, draft[n]]
    ):
        n += 1
    left = p[n] - (q[n] if n < len(q) else 0)
    return torch.tensor(n), F.normalize(F.relu(left), p=1, dim=0)


# top_k


def top_k_loops(logits, k):
    kept = np.full_like(logits, -np.inf)
    for row, out in zip(logits, kept, strict=True):
        for place in sorted(range(len(row)), key=lambda i: row[i])[-k:]:
            out[place] = row[place]
    return kept


def top_k_einsum(logits, k):
    """Count for each token how many of its row are larger."""
    larger = logits[:, None, :] > logits[:, :, None]
    ones = torch.ones(logits.shape[-1], dtype=logits.dtype)
    count = torch.einsum("bij,j->bi", larger.to(logits.dtype), ones)
    return logits.masked_fill(count >= k, float("-inf"))


class TopK(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, logits):
        values, places = logits.topk(self.k)
        return torch.full_like(logits, float("-inf")).scatter(-1, places, values)


def top_k_module(logits, k):
    return TopK(k)(logits)


def top_k_numpy(logits, k):
    places = np.argpartition(-logits, k - 1, -1)[:, :k]
    kept = np.zeros(logits.shape, bool)
    np.put_along_axis(kept, places, True, -1)
    return np.where(kept, logits, -np.inf).astype(logits.dtype)


def top_k_torch(logits, k):
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], float("-inf"))
