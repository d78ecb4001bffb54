"""The formulas of newer models: routers, indexers, layers with a state, streams.

They are written as those in `formulas`, and kept beside them.
"""

# ruff: noqa: D103
# mypy: allow-untyped-defs, allow-untyped-calls

from tformer.check.array_words import bounded_numpy as np
from tformer.check.array_words import sigmoid, softmax, total
from tformer.check.formulas import formula


@formula
def route(logits, top_k, scores="softmax", bias=None):
    s = sigmoid(logits) if scores == "sigmoid" else softmax(logits, -1)
    wanted = s if bias is None else s + bias
    chosen = np.argsort(-wanted, -1)[:, :top_k]
    weights = np.take_along_axis(s, chosen, -1)
    return s, chosen, weights / total(weights, -1)
