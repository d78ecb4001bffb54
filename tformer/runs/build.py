"""From settings to a model, its optimizer and its schedule."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from tformer.models.bert import BERTConfig
from tformer.models.by_name import Model, ModelConfig, make_model
from tformer.models.causal_config import CausalLMConfig
from tformer.models.config import TransformerConfig
from tformer.models.gpt import GPTConfig
from tformer.models.transformer import Transformer
from tformer.runs import parts
from tformer.runs.ablations import ablate
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
        The model, on the CPU, without the parts that the run does without.

    Raises:
        ValueError: sizes do not fit together, such as heads that do not divide.
    """
    torch.manual_seed(settings.seed)
    model = make_model(build_config(settings, vocab_size=vocab_size, pad_id=pad_id))
    if isinstance(model, Transformer):
        for part in settings.without:
            ablate(model, part)
    return model


def build_config(settings: RunSettings, *, vocab_size: int, pad_id: int) -> ModelConfig:
    """Make the config of a run's model; arguments and errors as of `build_model`."""
    s = settings
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size,
        "pad_id": pad_id,
        "d_model": s.d_model,
        "num_heads": s.num_heads,
        "d_ff": 4 * s.d_model if s.d_ff is None else s.d_ff,
        "max_len": s.max_len,
        "dropout": s.dropout,
        "bias": s.bias,
    }
    if s.model == "gpt":
        return GPTConfig(num_layers=s.num_layers, **sizes)
    if s.model == parts.MODEL:
        sizes |= {"num_layers": s.num_layers, "num_kv_heads": s.kv_heads}
        sizes |= {"d_ff": s.d_ff, "eps": parts.EPS, "parts": parts.parts_of(s)}
        return CausalLMConfig(**sizes)
    if s.model == "bert":
        return BERTConfig(num_layers=s.num_layers, **sizes)
    layers: dict[str, Any] = {
        "num_encoder_layers": s.num_layers,
        "num_decoder_layers": s.num_layers,
    }
    return TransformerConfig(norm_first=s.norm_first, **layers, **sizes)


def build_optimizer(settings: RunSettings, model: nn.Module) -> torch.optim.Optimizer:
    """Make the optimizer of a run."""
    options: dict[str, Any] = {
        "weight_decay": settings.weight_decay,
        "betas": (0.9, settings.beta2),
    }
    if settings.optimizer == "muon":
        return muon(model, **options)
    return adamw(model, **options)


def build_schedule(settings: RunSettings) -> Callable[[int], float]:
    """Make the function that gives each step its learning rate."""
    s = settings
    if s.schedule == "cosine":
        return partial(
            cosine_schedule,
            steps=s.steps,
            peak=s.learning_rate,
            warmup_steps=s.warmup_steps,
        )
    return lambda step: (
        s.learning_rate
        * inverse_sqrt_schedule(step, s.d_model, warmup_steps=s.warmup_steps)
    )
