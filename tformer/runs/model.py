"""From settings to a model, its optimizer and its schedule."""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from tformer.models.bert import BERT, BERTConfig
from tformer.models.building import Model
from tformer.models.config import TransformerConfig
from tformer.models.families import custom
from tformer.models.transformer import Transformer
from tformer.nn.heads import MultiHeadAttention
from tformer.runs.rules import ABLATIONS
from tformer.runs.settings import RunSettings
from tformer.training.muon import muon
from tformer.training.optimizer import adamw
from tformer.training.schedule import cosine_schedule, inverse_sqrt_schedule


def build_model(settings: RunSettings, *, vocab_size: int, pad_id: int) -> Model:
    """Make the model of a run, with the weights that its seed gives.

    Args:
        settings: of the run.
        vocab_size: tokens that the model knows.
        pad_id: the padding token.

    Returns:
        The model, with all its parts: see `ablate`.

    Raises:
        ValueError: sizes do not fit together, such as heads that do not divide.
    """
    torch.manual_seed(settings.seed)
    sizes = settings.sizes(vocab_size=vocab_size, pad_id=pad_id)
    if settings.model == "bert":
        return BERT(BERTConfig(**sizes))
    if settings.model != "transformer":
        return custom.build(sizes)
    layers = sizes.pop("num_layers")
    sizes |= {"num_encoder_layers": layers, "num_decoder_layers": layers}
    config = TransformerConfig(norm_first=settings.norm_first, **sizes)
    return Transformer(config)


def ablate(model: nn.Module, *parts: str) -> None:
    """Take parts out of a model, by hooks: its code and its weights stay as they are.

    "mask": the decoder sees the target's future. "scale": the scores are not divided by
    √d_k. "positions": nothing is added to the embeddings.

    Raises:
        ValueError: a part is unknown, or the model no Transformer.
    """
    for part in parts:
        if part not in ABLATIONS or not isinstance(model, Transformer):
            raise ValueError(f"part ({part!r}) must be one of {', '.join(ABLATIONS)}")
        if part == "mask":
            model.decoder.register_forward_pre_hook(
                lambda _, args, options: (args, {**options, "is_causal": False}),
                with_kwargs=True,
            )
        elif part == "positions":
            for positions in (model.src_positions, model.tgt_positions):
                positions.register_forward_hook(lambda _, came, __: came[0])
        else:
            for module in model.modules():
                if isinstance(module, MultiHeadAttention):
                    root = module.head_dim**0.5
                    module.q_proj.register_forward_hook(lambda _, __, q, r=root: q * r)


def build_optimizer(settings: RunSettings, model: nn.Module) -> torch.optim.Optimizer:
    """Make the optimizer of a run."""
    make = muon if settings.optimizer == "muon" else adamw
    return make(model, weight_decay=settings.weight_decay, betas=(0.9, settings.beta2))


def build_schedule(settings: RunSettings) -> Callable[[int], float]:
    """Make the function that gives each step its learning rate."""
    s = settings
    if s.schedule == "cosine":
        peak, warmup = s.learning_rate, s.warmup_steps
        return partial(cosine_schedule, peak=peak, steps=s.steps, warmup_steps=warmup)
    return lambda step: (
        s.learning_rate
        * inverse_sqrt_schedule(step, s.d_model, warmup_steps=s.warmup_steps)
    )
