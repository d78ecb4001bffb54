"""The rule of speculative decoding in NumPy: as in torch, and exact by algebra."""

import numpy as np
import torch

from tformer import reference
from tformer.generate.speculative import acceptance, after_rejection


def distributions(parity):
    for _ in range(20):
        p, q = (parity.numbers(7)[1].softmax(-1) for _ in range(2))
        p[parity.random.integers(7)] = 0  # what a filter has cut off
        yield p / p.sum(), q


def test_as_in_torch(parity):
    for p, q in distributions(parity):
        parity.same(reference.acceptance(p.numpy(), q.numpy()), acceptance(p, q))
        twin = reference.after_rejection(p.numpy(), q.numpy())
        parity.same(twin, after_rejection(p, q))


def test_kept_and_drawn_after_a_rejection_sum_to_p(parity):
    for p, q in distributions(parity):
        p, q = p.double().numpy(), q.double().numpy()
        kept = q * reference.acceptance(p, q)
        drawn = (1 - kept.sum()) * reference.after_rejection(p, q)
        np.testing.assert_allclose(kept + drawn, p, rtol=0, atol=1e-6)


def test_where_nothing_is_missing():
    p = torch.tensor([0.5, 0.5, 0.0]).numpy()
    assert np.array_equal(reference.after_rejection(p, p), p)
    assert reference.acceptance(p, np.array([1.0, 0.0, 0.0])).tolist() == [0.5, 1, 1]
