"""What families with experts share: which layers have them, and how files name them."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from torch import nn

from tformer.checks import check_positive
from tformer.models.families import Config, llama, one_of
from tformer.models.families.renaming import HALVES, Cuts, Renaming
from tformer.nn.experts import Experts
from tformer.nn.feed_forward import GatedFeedForward

OF_LLAMA: Config = {n: x for n, x in llama.DEFAULTS.items() if n != "mlp_bias"}
NAMES = (("mlp.gate.", "mlp.router.proj."), *llama.NAMES)


def has_experts(c: Config, layer: int) -> bool:
    """Say whether a layer has experts; else it has one dense network.

    Dense are the first ones (`first_k_dense_replace`), those that are named
    (`mlp_only_layers`), and all but each so-many-th (`decoder_sparse_step`).
    """
    named = c.get("mlp_only_layers") or ()
    first, step = c.get("first_k_dense_replace", 0), c.get("decoder_sparse_step", 1)
    check_positive(decoder_sparse_step=step)
    return layer >= first and layer not in named and (layer + 1) % step == 0


def network(
    c: Config, layer: int, num_experts: int, d_ff: int, shared: int = 0, **options: Any
) -> nn.Module:
    """Make the network of a layer: experts of width `d_ff`, or a dense one.

    `shared` is the width of what every token uses, if anything is. The options are
    those of `Experts`.
    """
    one_of("hidden_act", c["hidden_act"], ["silu"])
    expert = partial(GatedFeedForward, c["hidden_size"])
    if not has_experts(c, layer):
        return expert(c["intermediate_size"])
    return Experts(
        c["hidden_size"],
        num_experts,
        partial(expert, d_ff),
        shared=expert(shared) if shared else None,
        top_k=c["num_experts_per_tok"],
        **options,
    )


def halves(_: Config) -> Cuts:
    """Cut experts that stand in one tensor (E, 2F, D): the gate is before up."""
    return HALVES


def not_read(names: Iterable[str]) -> set[str]:
    """Choose angles, and layers that guess further tokens, as Hugging Face does."""
    names = [*names]
    further = {n.partition("eh_proj.")[0] for n in names if "eh_proj." in n} | {"mtp."}
    angles = {n for n in names if n.endswith("rotary_emb.inv_freq")}
    return angles | {n for n in names if n.startswith(tuple(further))}


rename = Renaming(NAMES, cuts=halves, left_out=not_read)
