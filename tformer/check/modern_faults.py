"""The faults of newer models' parts, written as those in `faults`."""

MODERN = {
    "route": """
        bias_in_weights: along_axis(s, chosen → along_axis(wanted, chosen
        bias_ignored: s if bias is None else s + bias → s
        never_divided: weights / total(weights, -1) → weights
        softmax_of_weights: weights / total(weights, -1) → softmax(weights, -1)
        always_softmax: sigmoid(logits) if → softmax(logits, -1) if
        over_tokens: softmax(logits, -1) → softmax(logits, 0)
        worst_first: [:, :top_k] → [:, :top_k][:, ::-1]
        smallest: np.argsort(-wanted → np.argsort(wanted
    """,
}
