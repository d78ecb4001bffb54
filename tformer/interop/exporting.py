"""Models as graphs that need no Python: `torch.export` and ONNX.

A language model is two graphs: the whole forward, and the step with a cache, whose keys
and values come in and go out as tensors. A model that translates is an encoder and a
decoder. Every graph takes any batch and any length.

B batch · T new tokens · L tokens so far · S length of a source · G key/value heads ·
Dh head_dim · D d_model · V vocabulary
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from tformer.checks import require
from tformer.models.causal_lm import CausalLM
from tformer.models.transformer import Transformer
from tformer.nn.cache import BlockCache, KeysValues, KeyValueCache, ModelCache, cache_of
from tformer.nn.latent import LatentAttention

B, T, L, S = 2, 3, 5, 7  # of the examples that an export sees; all differ


class PastCache:
    """Keys and values that were given, to which new ones are joined: (B, G, L, Dh)."""

    nbytes = 0  # it takes no memory of its own

    def __init__(self, past: KeysValues) -> None:
        self.past = past

    @property
    def length(self) -> int:
        """L, how many tokens so far."""
        return self.past[0].shape[2]

    def append(self, key: Tensor, value: Tensor) -> KeysValues:
        """Join T new ones, and return all L + T; a window hides what is too old."""
        keys, values = self.past
        self.past = torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2)
        return self.past


class CachedStep(nn.Module):
    """A language model that is given its cache: logits, and the cache with more in it.

    Args:
        model: each of whose attentions keeps keys and values; or a latent and one key.

    Raises:
        ValueError: an attention keeps something else, such as a state.
    """

    def __init__(self, model: CausalLM) -> None:
        super().__init__()
        for number, block in enumerate(model.blocks):
            attention = cast(nn.Module, block.attention)
            if not isinstance(cache_of(attention, 1), KeyValueCache):
                kind = type(attention).__name__
                raise ValueError(f"block {number} ({kind}) keeps no keys and values")
        self.model = model

    def forward(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Score what follows each of the new ids.

        Args:
            ids: (B, T), the tokens after those that are in the cache.
            past: keys (B, G, L, Dh) and values of the first block, of the second, and
                so on; L = 0 at the beginning. Of latent attention they are the latents
                (B, 1, L, R) and the rotated keys.

        Returns:
            logits (B, T, V), and the same list with L + T tokens.
        """
        pairs = zip(past[::2], past[1::2], strict=True)
        caches = [PastCache(pair) for pair in pairs]
        cache = ModelCache(BlockCache(each) for each in caches)  # type: ignore[arg-type]
        logits = self.model(ids, cache=cache)
        return logits, [x for each in caches for x in each.past]

    def empty(self, batch: int, length: int = 0) -> list[Tensor]:
        """Make the cache of so many sequences, without a token, or with zeros."""
        x = self.model.embedding.weight.new_zeros(1, 1, self.model.d_model)
        shapes = []
        with torch.no_grad():
            for block in self.model.blocks:
                attention: Any = block.attention
                cache = cast(KeyValueCache, cache_of(attention, 1))
                attention(x, is_causal=True, cache=cache)
                shapes += [cache.keys.shape, cache.values.shape]  # (1, G, 1, Dh)
        return [x.new_zeros(batch, G, length, Dh) for _, G, _, Dh in shapes]


class SourceEncoder(nn.Module):
    """The encoder of a model that translates: ids to the memory."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor) -> Tensor:
        """Read ids (B, S), in which padding is not attended to: (B, S, D)."""
        return self.model.encode(src)


class TargetDecoder(nn.Module):
    """The decoder of a model that translates, without a cache."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tgt: Tensor, memory: Tensor, memory_key_mask: Tensor) -> Tensor:
        """Score what follows tgt (B, T), given memory (B, S, D), mask (B, S)."""
        return self.model.decode(tgt, memory, memory_key_mask=memory_key_mask)


class Graph(NamedTuple):
    """What is exported: a module, inputs to see it with, and which axes may change."""

    module: nn.Module
    example: tuple[object, ...]
    axes: tuple[object, ...]
    inputs: list[str]
    outputs: list[str]


def graphs_of(model: CausalLM | Transformer) -> dict[str, Graph]:
    """Name the graphs of a model, and the inputs and outputs of each.

    Another kind of model is a TypeError, an attention with a state a ValueError.
    """
    if isinstance(model, CausalLM):
        ids, step = torch.zeros(B, T, dtype=torch.int64), CachedStep(model)
        past = step.empty(B, L)
        names = [f"{i}_{kind}" for i in range(len(past) // 2) for kind in KINDS]
        axes: tuple[object, ...] = (IDS, [PAST] * len(past))
        into, out = ([f"{when}_{name}" for name in names] for when in WHEN)
        return {
            "model": Graph(model, (ids,), (IDS,), ["ids"], ["logits"]),
            "step": Graph(step, (ids, past), axes, ["ids", *into], ["logits", *out]),
        }
    if not isinstance(model, Transformer):
        kind = type(model).__name__
        raise TypeError(f"model must be a CausalLM or a Transformer, not {kind}")
    src, tgt = (torch.zeros(B, n, dtype=torch.int64) for n in (S, T))
    memory = model.encode(src)
    mask = torch.ones(B, S, dtype=torch.bool)
    decoded = ["tgt", "memory", "memory_key_mask"]
    return {
        "encoder": Graph(SourceEncoder(model), (src,), (IDS,), ["src"], ["memory"]),
        "decoder": Graph(
            TargetDecoder(model),
            (tgt, memory, mask),
            (IDS, IDS, IDS),
            decoded,
            ["logits"],
        ),
    }


KINDS, WHEN = ("keys", "values"), ("past", "present")
IDS = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
PAST = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}


def export_programs(model: CausalLM | Transformer) -> dict[str, ExportedProgram]:
    """Export the graphs of a model: of a CausalLM "model" and "step".

    Of a Transformer they are "encoder" and "decoder". Each takes any batch and length.
    """
    was = model.training
    try:
        model.eval()
        with torch.no_grad(), naive(model):
            return {name: _exported(each) for name, each in graphs_of(model).items()}
    finally:
        model.train(was)


@contextmanager
def naive(model: nn.Module) -> Iterator[None]:
    """Let latent attention make keys and values of its latents, at any length.

    Else it chooses by the lengths; the other form reads a weight, which a graph cannot.
    """
    free = [m for m in model.modules() if isinstance(m, LatentAttention)]
    free = [m for m in free if m.absorbed is None]
    for attention in free:
        attention.absorbed = False
    try:
        yield
    finally:
        for attention in free:
            attention.absorbed = None


def _exported(graph: Graph) -> ExportedProgram:
    return torch.export.export(
        graph.module,
        graph.example,
        dynamic_shapes=graph.axes,
        prefer_deferred_runtime_asserts_over_guards=True,
    )


def export_onnx(model: CausalLM | Transformer, folder: str | Path) -> list[Path]:
    """Write the graphs of a model as ONNX files.

    Of a CausalLM they are model.onnx, the whole forward, and step.onnx, the step with a
    cache; of a Transformer encoder.onnx and decoder.onnx. The inputs and outputs have
    the names of the arguments; past_0_keys is what step.onnx is given of block 0, and
    present_0_keys what it gives back. onnxruntime and others run the files.

    Args:
        model: in float32, mostly: not every runtime has all operators in others.
        folder: new, or what is in it under these names is replaced.

    Returns:
        The files, each with its weights; one of more than 2 GB has a second, .data.

    Raises:
        ImportError: onnx and onnxscript are not installed.
        TypeError: it is another kind of model.
        ValueError: an attention keeps something else than keys and values.
    """
    for name in ("onnx", "onnxscript"):
        require(name)
    folder, files = Path(folder), []
    programs, graphs = export_programs(model), graphs_of(model)
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        graph, file = graphs[name], folder / f"{name}.onnx"
        with torch.no_grad():  # else kernels come apart in another way
            torch.onnx.export(
                program,
                f=file,
                input_names=graph.inputs,
                output_names=graph.outputs,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        files.append(file)
    return files
