"""The sizes of a run's model: counted, and held to a checkpoint that is there.

L tokens · N layers · G key/value heads · Dh head_dim · W window · R kv_rank
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from tformer.checks import require
from tformer.files import check_has_end
from tformer.models.bert import BERTConfig
from tformer.models.by_name import ModelConfig
from tformer.models.causal_config import CausalLMConfig
from tformer.models.config import TransformerConfig
from tformer.nn.experts import active_parameters
from tformer.runs.state import SHARDS, refusal
from tformer.training.weights import modern_names


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters; with experts those, too, that one token uses."""
    counts = {"parameters": sum(p.numel() for p in model.parameters())}
    active = active_parameters(model)
    return (
        counts
        if active == counts["parameters"]
        else counts | {"active_parameters": active}
    )


def cache_bytes(
    config: ModelConfig, length: int, *, number_bytes: int = 4, int8: bool = False
) -> int:
    """Compute the memory of a model's cache for one text: 2 · N · G · Dh · L · b.

    An encoder-decoder has this twice, the second time for a source of L tokens. A layer
    with a window has room for 2W tokens at most, in its `RollingCache`. In latent
    attention a token takes R + Dr numbers, Dr of them turned, and not 2 · G · Dh. Sinks
    are weights, and take nothing.

    Args:
        config: of the model; a BERT has no cache.
        length: L, how many tokens there is room for.
        number_bytes: b, the bytes of a number: 4 in float32.
        int8: every layer has a `QuantizedCache`, where Dh numbers take Dh + b bytes.

    Raises:
        ValueError: `int8`, and the model is no `CausalLM` whose layers keep keys and
            values.
    """
    c = config
    if isinstance(c, BERTConfig):
        return 0
    latent = c.parts.latent if isinstance(c, CausalLMConfig) else None
    if int8 and (latent is not None or not isinstance(c, CausalLMConfig)):
        raise ValueError(f"int8 is not for the caches of this {type(c).__name__}")
    if isinstance(c, TransformerConfig):
        layers, Dh = 2 * c.num_decoder_layers, c.d_model // c.num_heads
    elif isinstance(c, CausalLMConfig):
        layers, Dh = c.num_layers, c.width_of_head
        if latent is not None:
            width = latent.kv_rank + c.turned_width
            return layers * width * length * number_bytes
    else:
        layers, Dh = c.num_layers, c.d_model // c.num_heads

    tokens = layers * length
    if isinstance(c, CausalLMConfig) and c.parts.window is not None and not int8:
        every = c.parts.global_every
        windowless = 0 if every is None else layers // every
        shorter = min(length, 2 * c.parts.window)
        tokens = windowless * length + (layers - windowless) * shorter
    head_bytes = Dh + number_bytes if int8 else Dh * number_bytes
    return 2 * (c.num_kv_heads or c.num_heads) * tokens * head_bytes


def check_sizes(
    path: Path, counts: Mapping[str, int | None], make_model: Callable[[], nn.Module]
) -> None:
    """Raise if a checkpoint cannot be of a model, before memory is taken for the model.

    Only the names and shapes in the files are read, and the model is made without
    numbers, on the device "meta".

    Args:
        path: of the checkpoint.
        counts: how many layers the config names, how many experts: each has tensors.
        make_model: makes it.

    Raises:
        RunError: the checkpoint is of another model, or no file of it can be read.
    """
    try:
        shapes = _shapes(path / SHARDS if (path / SHARDS).exists() else path)
        # As many layers without numbers would take their time as well.
        for name, count in counts.items():
            if count is not None and count > len(shapes):
                raise ValueError(
                    f"it has {len(shapes)} tensors, too few for {name} ({count})"
                )
        with torch.device("meta"):
            model = make_model()
        own = [f"model.{name}" for name, _ in model.named_parameters()]
        shapes = modern_names(shapes, own)
        for name, parameter in model.named_parameters():
            ours, theirs = tuple(parameter.shape), shapes.get(f"model.{name}")
            if ours != theirs:
                raise ValueError(
                    "the state is of another model: "
                    + (
                        f"it lacks model.{name}"
                        if theirs is None
                        else f"model.{name} is {theirs}, not {ours}"
                    )
                )
    except (OSError, ValueError, KeyError) as error:
        raise refusal(path, error) from error


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of whole tensors, also of those that lie in several files."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    for file in folder.iterdir():
        check_has_end(file)
    try:
        saved = HuggingFaceStorageReader(str(folder)).read_metadata()
    except require("safetensors").SafetensorError as error:
        raise ValueError(f"{folder} holds a file that is cut off: {error}") from error
    found = saved.state_dict_metadata
    return {name: tuple(tensor.size) for name, tensor in found.items()}  # type: ignore[union-attr]
