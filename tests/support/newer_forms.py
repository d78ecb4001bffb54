"""Forms of what models of 2024 and after have: states, routing, streams, an indexer."""

from functools import partial

from spec_forms import Form
from tformer import nn, reference


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
NEWER = [
    *IN_CHUNKS,
    *(
        form
        for names, library in ((nn, "torch"), (reference, "numpy"))
        for form in (
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
