"""Training without a part, to see what the part was good for."""

from typing import Any

from torch import Tensor, nn

from tformer.models.transformer import Transformer
from tformer.nn.heads import MultiHeadAttention

ABLATIONS = ("mask", "scale", "positions")


def ablate(model: Transformer, part: str) -> None:
    """Take a part out of a model, by hooks: its code and its weights stay as they are.

    "mask": the decoder sees the target's future. "scale": the scores are not divided by
    √d_k. "positions": nothing is added to the embeddings.

    Args:
        model: to take the part out of.
        part: which.

    Raises:
        ValueError: the part is unknown.
    """
    if part == "mask":
        model.decoder.register_forward_pre_hook(_see_future, with_kwargs=True)
    elif part == "scale":
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                root = module.head_dim**0.5
                module.q_proj.register_forward_hook(lambda _, __, q, r=root: q * r)
    elif part == "positions":
        for positions in (model.src_positions, model.tgt_positions):
            positions.register_forward_hook(_as_it_came)
    else:
        raise ValueError(f"part ({part!r}) must be one of {', '.join(ABLATIONS)}")


def _see_future(
    _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, {**kwargs, "is_causal": False}


def _as_it_came(_: nn.Module, args: tuple[Tensor, ...], __: Tensor) -> Tensor:
    return args[0]
