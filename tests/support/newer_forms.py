"""Forms of what models of 2024 and after have: states, routing, streams, an indexer."""

from functools import partial

import numpy as np
import torch
from torch.func import functional_call

from spec_forms import Form, in_numpy
from tformer import nn, reference
from tformer.check.streams import EPS, ROUNDS
from tformer.models.families import mixtures


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
    Form("expert_layers", "function", expert_layers, "numpy"),
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
