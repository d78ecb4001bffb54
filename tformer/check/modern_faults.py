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
    "index_scores": """
        always: np.sqrt(Dh) → Dh**0.5
        always: np.sqrt(H) → H**0.5
        no_relu: np.maximum(product, 0) → product
        relu_of_sum: np.maximum(product, 0) → product
        relu_of_sum: return total(counted, 1) → return np.maximum(total(counted, 1), 0)
        weight_inside: weights[..., None] * np.maximum(product, 0) →
            np.maximum(weights[..., None] * product, 0)
        unweighted: weights[..., None] * np → np
        largest_head: total(counted, 1) → np.max(counted, 1, keepdims=True)
        averaged: / H**0.5 → / H
        not_scaled: transposed(key) / Dh**0.5 → transposed(key)
    """,
    "choose_keys": """
        before_mask: np.where(attn_mask, scores, -np.inf) → scores
        hidden_filled: (rank < top_k) & attn_mask → rank < top_k
        hidden_as_zero: scores, -np.inf → scores, 0.0
        smallest: np.argsort(-wanted, -1 → np.argsort(wanted, -1
        smallest: scores, -np.inf → scores, np.inf
        one_more: rank < top_k → rank <= top_k
        mask_inverted: np.where(attn_mask, → np.where(~attn_mask,
        mask_inverted: & attn_mask → & ~attn_mask
        hidden_chosen: (rank < top_k) & → (rank >= top_k) &
    """,
    "delta_rule": """
        not_corrected: v - np.sum(k[..., None] * state, 2) → v
        other_sign: v - np.sum(k → v + np.sum(k
        logarithm: np.exp(log_decay) → log_decay
        growing: np.exp(log_decay) → np.exp(-log_decay)
        beta_ignored: beta[:, :, t, None, None] * written → written
        answer_of_query: np.sum(k[..., None] → np.sum(query[:, :, t, :, None]
        read_by_key: np.sum(query[:, :, t, :, None] → np.sum(k[..., None]
        write_decayed: beta[:, :, t, None, None] * written →
            beta[:, :, t, None, None] * alpha[:, :, t, :, None] * written
    """,
    "short_convolution": """
        backwards: weight[:, i] → weight[:, K - 1 - i]
        own_left_out: range(K) → range(K - 1)
        oldest_left_out: range(K) → range(1, K)
        begins_anew: np.concatenate((past, x), 1) → np.concatenate((0 * past, x), 1)
        past_kept: return y, seen[:, T:] → return y, past
        past_too_long: seen[:, T:] → seen[:, T - 1 :]
        averaged: seen[:, i : i + T] → seen[:, i : i + T] / K
        bias_ignored: 0 if bias is None else bias → 0
    """,
    "state_space": """
        growing: np.exp(-step → np.exp(step
        exp_twice: np.exp(-step * rate[:, None]) → np.exp(-step * np.exp(rate[:, None]))
        input_without_step: delta[:, :, t] * written → written
        decay_ignored: kept[:, :, t] * state → state
        euler: np.exp(-step * rate[:, None]) → (1 - step * rate[:, None])
        share_written: delta[:, :, t] * written → (1 - kept[:, :, t]) * written
        into_and_out_swapped: written = into[ → written = out_of[
        into_and_out_swapped: np.sum(out_of[ → np.sum(into[
        rate_of_first: rate[:, None] → rate[0]
    """,
    "clamped_swiglu": """
        halves: both[..., 0::2] → both[..., : both.shape[-1] // 2]
        halves: both[..., 1::2] → both[..., both.shape[-1] // 2 :]
        gate_not_bounded: np.minimum(both[..., 0::2], limit) → both[..., 0::2]
        up_bounded_above: np.maximum(np.minimum(both[..., 1::2], limit), -limit) →
            np.minimum(both[..., 1::2], limit)
        one_left_out: (up + 1) → up
        factor_ignored: sigmoid(alpha * gate) → sigmoid(gate)
        biases_ignored: x @ w_in.T + b_in → x @ w_in.T
        one_to_gate: gate * sigmoid(alpha * gate) * (up + 1) →
            (gate + 1) * sigmoid(alpha * gate) * up
    """,
    "sinkhorn": """
        columns_first: softmax(scores, -1) → softmax(scores, -2)
        eps_below_alone: softmax(scores, -1) + eps → softmax(scores, -1)
        one_round_more: range(1, rounds) → range(rounds)
        rows_at_the_end: return matrix → return matrix / (total(matrix, -1) + eps)
        softmax_of_all: softmax(scores, -1) → softmax(scores, (-2, -1))
    """,
    "hyper_connection": """
        mixed_the_other_way: transposed(M) @ x → M @ x
        not_mixed: transposed(M) @ x → x
        written_evenly: w[..., None] * y[:, :, None] → y[:, :, None]
        twice_left_out: 2 * sigmoid( → sigmoid(
        read_evenly: np.sum(r[..., None] * x, 2) → np.mean(x, 2)
        input_not_normalised: flat / np.sqrt(mean(flat**2, -1) + 0.01) @ proj.T →
            flat @ proj.T
        branch_transposed: @ branch.T → @ branch
    """,
}
