"""µP: a wider model that is best trained with the learning rate of a narrow one.

D d_model · Dh head_dim · m: how many times as wide as the base model

In the maximal update parametrisation (Yang et al. 2022, "Tensor Programs V",
arXiv:2203.03466) a step of the optimizer changes each activation by as much at every
width. Its table 8 for Adam, beside what is usual, both relative to the base model,
where m = 1 and they are the same:

                                     first std   rate   multiplier      usual
    embeddings, positions, output    1           1      logits: 1/m     logits: 1
    gains, biases                    as made     1
    hidden matrices                  1/√m        1/m                    std and rate: 1
    scores                                              √Dh_base / Dh   1 / √Dh

A hidden matrix is one of which both axes grow with m. A vector, and a table with a row
for each token or place, grow along one.
"""

from collections.abc import Mapping

import torch
from torch import nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import custom
from tformer.training.muon import hidden_matrices
from tformer.training.optimizer import adamw


def mup_config(
    base: Mapping[str, object], m: int, *, wider_heads: bool = False
) -> dict[str, object]:
    """Make the config m times as wide, with the two multipliers of the table.

    Logits are sums over D terms that learning makes point the same way, so they grow
    like D and not like √D: they are divided by m. So do scores with the width of a
    head: √Dh_base / Dh in place of 1 / √Dh. Where only the number of heads grows, that
    is the base's scale. A router, whose scores alone do not grow, is refused.

    Args:
        base: words of `custom.DEFAULTS`: the model whose learning rate was found.
        m: how many times as wide, at least 1.
        wider_heads: as many heads, of m times the width; else m times as many heads of
            the same width.
    """
    check_positive(m=m)
    c = {**custom.DEFAULTS, **base}
    if c["experts"] is not None:
        raise ValueError("experts must be None: µP's table has no router")
    heads, wider = (1, m) if wider_heads else (m, 1)
    width, kv_heads = c["head_dim"] or c["d_model"] // c["num_heads"], c["kv_heads"]
    return {
        **c,
        "d_model": m * c["d_model"],
        "num_heads": heads * c["num_heads"],
        "kv_heads": None if kv_heads is None else heads * kv_heads,
        "head_dim": wider * width,
        "d_ff": m * custom.inner_width(c),
        "logit_scale": c["logit_scale"] / m,
        "score_scale": (c["score_scale"] or width**-0.5) / wider,
    }


def mup_model(
    base: Mapping[str, object],
    m: int,
    *,
    wider_heads: bool = False,
    std: float = 0.02,
) -> CausalLM:
    """Make the model of `mup_config`, with the first weights of the table.

    `std` is that of the base model's matrices; see `CausalLM.reset_parameters`.
    """
    model = custom.build(mup_config(base, m, wider_heads=wider_heads))
    model.reset_parameters(std)
    with torch.no_grad():
        for matrix in hidden_matrices(model).values():
            matrix.mul_(m**-0.5)
    return model


def mup_adamw(
    model: nn.Module,
    m: int,
    *,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
) -> torch.optim.AdamW:
    """Make AdamW with the learning rates of the table: hidden matrices have 1/m of it.

    Adam's step has the length of its rate in each entry. The product of a step and a
    vector sums over its D entries, which point the same way, so that it grows like D:
    1/m takes that back. AdamW takes off rate · decay of a matrix, and here the decay of
    hidden matrices is m times as large, so that the product is that of the base.

    The decay is that of the base model, betas and `eps` are those of `adamw`; let `eps`
    be far below the gradients, which shrink like 1/m. Each group has an `lr_factor`,
    which the training loop multiplies with the rate of the schedule; its own learning
    rate is that factor.
    """
    check_positive(m=m)
    hidden = [*hidden_matrices(model).values()]
    optimizer = adamw(
        model, weight_decay=weight_decay, betas=betas, eps=eps, without=hidden
    )
    decay = m * weight_decay
    optimizer.add_param_group({"params": hidden, "lr": 1 / m, "weight_decay": decay})
    for group in optimizer.param_groups:
        group["lr_factor"] = group["lr"]
    return optimizer
