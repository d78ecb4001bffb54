"""Forms of what models of 2024 and after have: states, routing, streams, an indexer."""

from functools import partial

import numpy as np
import torch
from torch.func import functional_call

from spec_forms import Form, in_numpy
from tformer import nn, reference
from tformer.check import blocks
from tformer.check.streams import EPS, ROUNDS
from tformer.models.causal_lm import CausalLM
from tformer.models.families import mixtures, smollm3


def convolved(names, x, weight, past, *, bias=None):
    return names.short_convolution(x, weight, past, bias)


def corrected(rule, query, key, value, beta, log_decay, state, **options):
    more = {"log_decay": log_decay, "state": state, **options}
    return rule(query, key, value, beta, **more)


def advanced(rule, x, step, rate, into, out_of, state, **options):
    return rule(x, step, rate, into, out_of, state=state, **options)


def by_channel(case):
    return case.args[4].ndim == 4


def by_head(case):
    return not by_channel(case)


def routed(names, logits, top_k, **options):
    return tuple(names.route(logits, top_k, **options))


def router(call, logits, top_k, *, bias=None, **options):
    """Give the logits themselves to a router whose matrix is the identity."""
    E = logits.shape[-1]
    options["selection_bias"] = bias is not None
    library = torch if call is functional_call else np
    weights = {"proj.weight": library.eye(E, dtype=logits.dtype)}
    if bias is not None:
        weights["selection_bias"] = bias
    module = nn.Router(E, E, top_k=top_k, **options)
    return tuple(call(module, weights, (logits,)))


def normalised_together(call, x, gain, eps):
    module = nn.NormOverHeads(nn.RMSNorm(len(gain), eps))
    return call(module, {"norm.weight": gain}, (x,))


def clamped(call, x, w_in, b_in, w_out, b_out, **options):
    module = nn.ClampedFeedForward(len(w_out), w_out.shape[1], **options)
    weights = {"gate_proj.weight": w_in[0::2], "up_proj.weight": w_in[1::2]}
    weights |= {"gate_proj.bias": b_in[0::2], "up_proj.bias": b_in[1::2]}
    weights |= {"down_proj.weight": w_out, "down_proj.bias": b_out}
    return call(module, weights, (x,))


class Multiplied(torch.nn.Linear):
    """Stands where attention does, whose options it takes."""

    def forward(self, x, **options):
        return super().forward(x)


def block(x, w_a, w_f, gains, *, placement="output"):
    D = x.shape[2]
    parts = Multiplied(D, D, bias=False), Multiplied(D, D, bias=False)
    norm = partial(nn.RMSNorm, D, blocks.EPS)
    module = nn.Block(*parts, norm, placement=placement)
    weights = {"attention.weight": w_a, "attention_norm.weight": gains[0]}
    weights |= {"feed_forward.weight": w_f, "feed_forward_norm.weight": gains[1]}
    return functional_call(module, weights, (x,))


def twin_of_block(x, w_a, w_f, gains, *, placement="output"):
    norms = [reference.RMSNorm(gain, blocks.EPS) for gain in gains]
    parts = (lambda x, **_: x @ w_a.T), (lambda x, **_: x @ w_f.T)
    return reference.Block(*parts, *norms, placement=placement)(x)


def multiplied(
    call, ids, table, w_q, w_k, w_v, w_o, w_f, *,
    embedding=1.0, scores=1.0, residual=1.0, logits=1.0,
):  # fmt: skip
    V, D = table.shape
    attention = nn.MultiHeadAttention(D, 1, bias=False, scale=scores)
    feed_forward = torch.nn.Linear(D, D, bias=False)
    norm = partial(nn.RMSNorm, D, blocks.EPS, learned=False)
    model = CausalLM(
        nn.TokenEmbedding(V, D, scale=embedding),
        [nn.Block(attention, feed_forward, norm, residual_scale=residual)],
        None,
        max_len=ids.shape[1],
        logit_scale=1 / logits,
    )
    each = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v, "out_proj": w_o}
    weights = {f"blocks.0.attention.{name}.weight": w for name, w in each.items()}
    weights |= {"embedding.weight": table, "blocks.0.feed_forward.weight": w_f}
    return call(model, weights, (ids,))


def rotated_layers(layers, every, *, given=None):
    config = {"num_hidden_layers": layers, "no_rope_layer_interval": every}
    kinds = smollm3.rotates({**config, "no_rope_layers": given})
    return np.array([bool(each) for each in kinds])


def expert_layers(layers, first, step, named):
    config = {"first_k_dense_replace": first, "decoder_sparse_step": step}
    config["mlp_only_layers"] = named
    return np.array([mixtures.has_experts(config, layer) for layer in range(layers)])


def connected(call, x, proj, scale, base, branch, *, manifold=True):
    N, D = x.shape[2:]
    inner = torch.nn.Linear(D, D, bias=False)
    options = {"streams": N, "rounds": ROUNDS, "eps": EPS, "manifold": manifold}
    module = nn.HyperConnection(inner, D, **options)
    weights = {"proj.weight": proj, "scale": scale, "base": base}
    return call(module, weights | {"branch.weight": branch}, (x,))


IN_CHUNKS = [
    Form(
        "delta_rule",
        "function in chunks",
        partial(corrected, nn.delta_rule, chunk=3),
        only=by_head,
    ),
    Form(
        "delta_rule",
        "function of channels in chunks",
        partial(corrected, nn.kda, chunk=3),
        only=by_channel,
    ),
    Form(
        "state_space", "function in chunks", partial(advanced, nn.state_space, chunk=3)
    ),
]
SAME = ("index_scores", "choose_keys", "sinkhorn")  # functions with a spec's name
NEWER = [
    *IN_CHUNKS,
    Form("block", "module", block),
    Form("block", "class", twin_of_block, "numpy"),
    Form("expert_layers", "function", expert_layers, "numpy"),
    Form("rotated_layers", "function", rotated_layers, "numpy"),
    *(
        form
        for names, call, library in (
            (nn, functional_call, "torch"),
            (reference, in_numpy, "numpy"),
        )
        for form in (
            *(Form(name, "function", getattr(names, name), library) for name in SAME),
            Form("route", "function", partial(routed, names), library),
            Form("route", "module", partial(router, call), library),
            Form(
                "norm_over_heads", "module", partial(normalised_together, call), library
            ),
            Form("clamped_swiglu", "module", partial(clamped, call), library),
            Form("multiplied", "model", partial(multiplied, call), library),
            Form("hyper_connection", "module", partial(connected, call), library),
            Form("short_convolution", "function", partial(convolved, names), library),
            Form(
                "delta_rule",
                "function",
                partial(corrected, names.delta_rule_recurrent),
                library,
            ),
            Form(
                "state_space",
                "function",
                partial(advanced, names.state_space_recurrent),
                library,
            ),
        )
    ),
]
