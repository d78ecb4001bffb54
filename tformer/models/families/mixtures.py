"""What families with experts share: which layers have them, and how files name them."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.models.families import Config, Weights, llama, one_of, replace_parts
from tformer.nn.experts import Experts
from tformer.nn.feed_forward import GatedFeedForward

OF_LLAMA: Config = {n: x for n, x in llama.DEFAULTS.items() if n != "mlp_bias"}
NAMES = (
    ("block_sparse_moe.", "mlp."),  # Mixtral's and MiniMax's files
    (".w1.", ".gate_proj."),
    (".w2.", ".down_proj."),
    (".w3.", ".up_proj."),
    ("mlp.gate.e_score_correction_bias", "mlp.router.selection_bias"),
    ("mlp.e_score_correction_bias", "mlp.router.selection_bias"),
    ("mlp.gate.", "mlp.router.proj."),
    ("mlp.shared_experts.", "mlp.shared."),
    ("mlp.shared_expert.", "mlp.shared."),
    ("mlp.shared_expert_gate.", "mlp.shared_gate."),
    *llama.NAMES,
)
FUSED = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}


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


def rename(state: Weights, config: Config) -> dict[str, Tensor]:  # noqa: ARG001
    """Name Hugging Face's weights as ours.

    Experts stand in a file one by one, or in one tensor: (E, 2F, D), gate before up,
    and (E, D, F). Layers that guess further tokens are left out, as Hugging Face does.
    """
    further = {n.partition("eh_proj.")[0] for n in state if "eh_proj." in n} | {"mtp."}
    ours: dict[str, Tensor] = {}
    for name, x in state.items():
        if name.startswith(tuple(further)) or name.endswith("rotary_emb.inv_freq"):
            continue
        before, _, last = name.rpartition(".")
        if last not in FUSED or not before.endswith(".experts"):
            ours[replace_parts(name, NAMES)] = x
            continue
        for i, expert in enumerate(x):
            parts = FUSED[last]
            for part, weight in zip(parts, expert.chunk(len(parts)), strict=True):
                one = f"{before}.{i}.{part}.weight"
                ours[replace_parts(one, NAMES)] = weight
    return ours
