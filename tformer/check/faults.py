"""The mistakes that readers may find in a whole solution, by spec.

Each is named by the id of a mistake of the spec, and is a change of the formula of
`formulas`: "id: before → after", a line for each change; where "nothing" comes in its
place, the line goes. What is "always" changed keeps the dtype, which alterations do not
ask. Ids alone are the spec's own changes of its oracle. `planting` reads all of it.
"""

from tformer.check.modern_faults import MODERN

FAULTS = MODERN | {
    "attention": """
        always: np.sqrt(Dh) → Dh**0.5
        divided_by_d: Dh**0.5 → Dh
        scaled_after: transposed(key) / Dh**0.5 → transposed(key)
        scaled_after: weights @ value → weights / Dh**0.5 @ value
        mask_inverted: else mask → else ~mask
        number_of_keys: Dh = query.shape[-1] → Dh = key.shape[-2]
        masked_to_zero: seen, scores, -np.inf → seen, scores, 0.0
        keys_as_values: weights @ value → weights @ key
        overflow: x - np.where(np.isneginf(largest), 0, largest) → x
    """,
    "causal_mask": """
        first_on_first: [:, None] + S - T → [:, None]
        diagonal_hidden: key <= query → key < query
        inverted: key <= query → key > query
        offset_turned: + S - T → + T - S
        one_ahead: key <= query → key <= query + 1
    """,
    "multi_head": """
        always: np.sqrt(Dh) → Dh**0.5
        no_output: joined(heads) @ w_o.T → joined(heads)
        keys_as_values: value = split(x @ w_v.T → value = split(x @ w_k.T
        output_not_transposed: @ w_o.T → @ w_o
        width_of_model: Dh = query.shape[-1] → Dh = x.shape[-1]
        merged_as_it_lies: x.swapaxes(1, 2).reshape(B, T, H * D) →
            x.reshape(B, T, H * D)
        view_only: reshape(B, T, heads, D // heads).swapaxes(1, 2) →
            reshape(B, heads, T, D // heads)
    """,
    "sinusoids": """
        by_column: (column - column % 2) / d_model → column / d_model
        not_divided: (column - column % 2) / d_model → column - column % 2
        swapped: column % 2 == 0 → column % 2 == 1
        growing: position / 10000 → position * 10000
        from_one: np.arange(length) → np.arange(1, length + 1)
    """,
    "layer_norm": """
        unbiased: variance = mean(centred**2, -1) →
            variance = np.sum(centred**2, -1, keepdims=True) / (x.shape[-1] - 1)
        eps_outside: np.sqrt(variance + eps) → (np.sqrt(variance) + eps)
        mean_stays: normalised = centred → normalised = x
        no_root: np.sqrt(variance + eps) → (variance + eps)
        bias_scaled: normalised * weight + bias → (normalised + bias) * weight
        over_tokens: centred = x - mean(x, -1) → centred = x - mean(x, -2)
        over_tokens: mean(centred**2, -1) → mean(centred**2, -2)
    """,
    "rms_norm": """
        centred_square: mean(x**2, -1) → mean((x - mean(x, -1)) ** 2, -1)
        square_of_mean: mean(x**2, -1) → mean(x, -1) ** 2
        eps_outside: np.sqrt(mean_square + eps) → (np.sqrt(mean_square) + eps)
        no_root: np.sqrt(mean_square + eps) → (mean_square + eps)
        all_axes: mean(x**2, -1) → mean(x**2, None)
    """,
    "rotary": """
        always: np.concatenate((first, second), -1) →
            np.concatenate((first, second), -1).astype(x.dtype)
        backwards: angle = positions → angle = -positions
        half_exponent: -2.0 * pair / Dh → -pair / Dh
        growing: -2.0 * pair → 2.0 * pair
        no_minus: a * np.cos(angle) - b → a * np.cos(angle) + b
        pairs_put_in_halves: x[..., : Dh // 2], x[..., Dh // 2 :] →
            x[..., 0::2], x[..., 1::2]
        own_half: - b * np.sin(angle) → - a * np.sin(angle)
        own_half: a * np.sin(angle) + → b * np.sin(angle) +
        positions_ignored: positions[:, None] → np.arange(x.shape[2])[:, None]
    """,
    "swiglu": """
        gate_and_up_swapped: gate * sigmoid(gate) * up → up * sigmoid(up) * gate
        added: sigmoid(gate) * up → sigmoid(gate) + up
        sigmoid: gate * sigmoid(gate) → sigmoid(gate)
        after_product: inner = gate * sigmoid(gate) * up →
            inner = gate * up * sigmoid(gate * up)
        gate_twice: up = x @ w_up.T → up = x @ w_gate.T
        other_sign: gate * sigmoid(gate) → gate * sigmoid(-gate)
    """,
    "grouped_attention": """
        always: np.sqrt(Dh) → Dh**0.5
        tiled_heads: np.repeat(key, H // G, 1) → np.concatenate([key] * (H // G), 1)
        tiled_heads: np.repeat(value, H // G, 1) →
            np.concatenate([value] * (H // G), 1)
        tiled_values: np.repeat(value, H // G, 1) →
            np.concatenate([value] * (H // G), 1)
        first_values: np.repeat(value, H // G, 1) → np.repeat(value[:, :1], H, 1)
        number_of_heads: / Dh**0.5 → / H**0.5
        softmax_over_queries: softmax(scores, -1) → softmax(scores, -2)
    """,
    "alibi": """
        from_head_0: -8 * (head + 1) / whole → -8 * head / whole
        rewarded: return -slope → return slope
        no_factor: -8 * (head + 1) / whole → -(head + 1) / whole
        no_factor: -8 * (2 * more + 1) → -(2 * more + 1)
        even_of_twice: (2 * more + 1) → (2 * more + 2)
        squared: np.abs(distance) → distance**2
        first_on_first: [:, None] + S - T → [:, None]
    """,
    "t5_buckets": """
        earlier_in_second: N * both * (distance < 0) → N * both * (distance > 0)
        not_halved: N = buckets // 2 if both else buckets → N = buckets
        later_as_earlier: np.abs(distance) if both else np.maximum(distance, 0) →
            np.abs(distance)
        not_cut: np.minimum(wide, N - 1) → wide
        one_direction: bucket + N * both * (distance < 0) → bucket
        always_halved: N = buckets // 2 if both else buckets → N = buckets // 2
    """,
    "cached_step": """
        always: np.sqrt(Dh) → Dh**0.5
        last_two: cache["old"] = keys, values → cache["old"] = k, v
        stored_swapped: cache["old"] = keys, values → cache["old"] = values, keys
        values_in_front: (values, v) → (v, values)
        unscaled: q @ transposed(keys) / Dh**0.5 → q @ transposed(keys)
        kept_twice: cache["old"] = keys, values →
            cache["old"] = np.concatenate((keys, k), 2), np.concatenate((values, v), 2)
        value_is_key: (values, v) → (values, k)
    """,
    "smoothed_loss": """
        padding_counts: real = targets != pad_id → real = np.ones(targets.shape)
        over_all: / np.sum(real) → / targets.size
        not_smoothed: q = smoothing / V + (1 - smoothing) * target → q = target
        full_target: (1 - smoothing) * target → target
        by_others: smoothing / V → smoothing / (V - 1)
        no_minus: -np.sum(q * log_p → np.sum(q * log_p
    """,
    "noam": """
        larger: min(falling, rising) → max(falling, rising)
        times_root: d_model**-0.5 → d_model**0.5
        warmup_root: warmup**-1.5 → warmup**-0.5
        minus_first: step**-0.5 → -(step**0.5)
        no_warmup: warmup**-1.5 → warmup**1.5
    """,
    "top_k": """
        hidden_as_0: logits, -np.inf → logits, 0.0
        smallest: [:, -k:][:, :1] → [:, k - 1 : k]
        smallest: logits >= least → logits <= least
        all_rows: np.sort(logits, -1)[:, -k:][:, :1] →
            np.sort(logits, None)[-k]
        last_hidden: logits >= least → logits > least
        one_more: [:, -k:] → [:, -k - 1 :]
        of_first_row: [:, -k:][:, :1] → [:1, -k:][:, :1]
    """,
    "top_p": """
        ascending: np.argsort(-logits, -1) → np.argsort(logits, -1)
        one_too_few: np.cumsum(share, -1) - share → np.cumsum(share, -1)
        by_share: before < p → share >= p
        places_of_mask: np.take_along_axis(before < p, np.argsort(order, -1), -1) →
            before < p
        inverse_order: np.argsort(order, -1), -1) → order, -1)
        as_0: logits, -np.inf → logits, 0.0
    """,
    "beam": """
        multiplied worst with_bos no_penalty by_length newest_only length_less_one
        without_bos greedy first_ended
    """,
    "moe": """
        over_all: softmax(np.take_along_axis(logits, chosen, -1), -1) →
            np.take_along_axis(softmax(logits, -1), chosen, -1)
        smallest: np.argsort(-logits, -1) → np.argsort(logits, -1)
        over_tokens_of_chosen: chosen, -1), -1) → chosen, -1), 0)
        scaled_logits: x @ router.T → x @ router.T / x.shape[-1] ** 0.5
        two_always: [:, :k] → [:, :2]
        late_experts: chosen[..., None] → np.sort(chosen, -1)[..., None]
    """,
    "lora": """
        not_divided: alpha / r → alpha
        root_of_rank: alpha / r → alpha / r**0.5
        inverted: alpha / r → r / alpha
        by_inputs: r = a.shape[0] → r = a.shape[1]
        subtracted: weight + → weight -
        all_scaled: weight + alpha / r * (b @ a) → alpha / r * (weight + b @ a)
    """,
    "speculative": """
        inverted: p[n, t] / q[n, t] → q[n, t] / p[n, t]
        absolute: np.maximum(p[n] - q[n], 0.0) → np.abs(p[n] - q[n])
        q_minus_p: p[n] - q[n] → q[n] - p[n]
        not_scaled: rest / np.sum(rest) → rest
        drawn_from_p: return n, rest / np.sum(rest) → return n, p[n]
        one_number: u[n] → u[0]
        one_more_if_rejected: return n, rest → return n + 1, rest
    """,
    "attention_in_blocks": """
        undivided
        no_scale: float(q @ row) / sqrt(len(q)) → float(q @ row)
        total_kept: total * shrink + sum → total + sum
        mix_kept: mix * shrink + np → mix + np
        nothing_kept: mix * shrink + np → np
        nothing_kept: total * shrink + sum → sum
    """,
    "rotate": """
        halves backwards from_one added
        one_clock: angle = t / 10000 ** (i / D) → angle = t
    """,
    "chunk_mask": "later window causal inverted transposed counted",
    "reaches": "transposed above whole signed",
    "merge": """
        average by_L swapped no_largest
        sum: (first * o1[at] + second * o2[at]) / (first + second) →
            first * o1[at] + second * o2[at]
    """,
    "choose": """
        best_alone worst every_nth zeros
        whole: part[-2:] → part
        ungrouped: [e for e in range(len(row)) if e // size in kept] → range(len(row))
    """,
    "choose_keys": "before_mask smallest later_wins one_fewer latest as_all_choose",
    "loss_and_gradients": """
        last_row
        sum: loss - np.log(p[y[n]]) / N → loss - np.log(p[y[n]])
        sum: p /= N → nothing
        target_ignored: p[y[n]] -= 1 → nothing
        undivided: p /= N → nothing
    """,
    "stable_schedule": """
        no_stretch no_warm_up no_fall peak_ignored one_early half
    """,
    "decode": "one_by_one ignored latin strict",
    "find_merges_faster": "words_once larger_ids from_0",
    "encode_with_dropout": "kept at_once never",
}
