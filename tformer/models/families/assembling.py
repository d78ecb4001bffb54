"""What families since Llama have in common: the parts of a decoder, and its layers.

A family is the parts of the one that it came from, with some of them replaced.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from torch import nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, one_of
from tformer.models.families.rope_words import LAYER_TYPES, rope_words, rotary_of
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.heads import MultiHeadAttention

Options = dict[str, Any]
Norm = Callable[[Config, int], nn.Module]  # of a width
LayerTypes = Callable[[Config], Sequence[str]]
Mixer = Callable[[Config, int, Options], nn.Module]  # of a layer and its options
MIXERS = (
    "linear_attention",
    "full_attention",
)  # types of layers with and without state


def only(c: Config, **values: object) -> None:
    """Raise ValueError unless these words have the values that a family implements."""
    for name, value in values.items():
        one_of(name, c[name], [value])


def nothing(_: Config) -> Options:
    """Change nothing."""
    return {}


def head_dim_of(c: Config) -> int:
    """Return the width of a head: D / H, if the config does not say it."""
    D, H = c["hidden_size"], c["num_attention_heads"]
    check_positive(hidden_size=D, num_attention_heads=H)
    return int(c.get("head_dim") or D // H)


def norms_of_heads(c: Config, norm: Norm) -> Options:
    """Normalise each head of a query and of a key, by a family's norm."""
    return {name: norm(c, head_dim_of(c)) for name in ("q_norm", "k_norm")}


def same_rotary(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate in every layer alike, by one table."""
    return [rotary_of(c, head_dim_of(c))] * len(kinds)


def no_rotary(_: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate in no layer."""
    return [None] * len(kinds)


def rotary_of_each_type(
    c: Config, kinds: Sequence[str], **widths: int
) -> Sequence[nn.Module | None]:
    """Rotate in layers with a window in another way than in those without.

    `widths` are of heads, by the type of layers that have others than `head_dim`.
    """
    if (c["rope_parameters"] or {}).keys() - {*LAYER_TYPES}:
        raise ValueError(f"rope_parameters must be of {', '.join(LAYER_TYPES)}")
    widths = dict.fromkeys(LAYER_TYPES, head_dim_of(c)) | widths
    made = {
        kind: rotary_of(c, width, rope_words(c, kind)) for kind, width in widths.items()
    }
    return [made[kind] for kind in kinds]


def layer_types_of(
    c: Config, otherwise: Callable[[int], str], known: Sequence[str] = LAYER_TYPES
) -> list[str]:
    """Return the type of each layer: as `layer_types` says, or of its number from 0."""
    layers, kinds = c["num_hidden_layers"], c.get("layer_types")
    if kinds is None:
        return [otherwise(i) for i in range(layers)]
    if len(kinds) != layers:
        raise ValueError(f"layer_types are {len(kinds)}, num_hidden_layers is {layers}")
    return [one_of("layer_types", kind, known) for kind in kinds]


def all_but_every(n: int, c: Config) -> Sequence[str]:
    """Give the layers a window, but each n-th, which sees all tokens."""
    return layer_types_of(c, lambda i: LAYER_TYPES[(i + 1) % n > 0])


def every_layer(c: Config) -> Sequence[str]:
    """Give each layer the window, if the config has one."""
    return ["sliding_attention"] * int(c["num_hidden_layers"])


def sizes(D: int, F: int, layers: int, H: int, G: int | None = None) -> Options:
    """Name the sizes of a preset in the words of a config."""
    groups = {} if G is None else {"num_key_value_heads": G}
    return {
        "hidden_size": D,
        "intermediate_size": F,
        "num_hidden_layers": layers,
        "num_attention_heads": H,
        **groups,
    }


def multi_head(c: Config, _: int, options: Options) -> nn.Module:
    """Make the attention of a layer of its options."""
    return MultiHeadAttention(c["hidden_size"], c["num_attention_heads"], **options)


def by_type(layer_types: LayerTypes, **mixers: Mixer) -> Mixer:
    """Make of a layer what these mixers make of its type, each by its name."""
    return lambda c, i, options: mixers[layer_types(c)[i]](c, i, options)


class Parts(NamedTuple):
    """What a family makes of its complete config c, and of the number of a layer.

    `tformer.nn` says what the options are: `attention` returns those of
    `MultiHeadAttention`, `block` of `Block`, `model` of `CausalLM`. Where a layer has
    something else in its place, `mixer` makes it of the same options.
    """

    norm: Norm
    attention: Callable[[Config, int], Options]  # of a layer
    network: Callable[[Config, int], nn.Module]  # of a layer
    layer_types: LayerTypes = every_layer
    rotaries: Callable[[Config, Sequence[str]], Sequence[nn.Module | None]] = (
        same_rotary  # of layers of these types
    )
    mixer: Mixer = multi_head
    block: Callable[[Config], Options] = nothing
    model: Callable[[Config], Options] = nothing
    block_type: Callable[..., Block] = Block
    model_type: Callable[..., CausalLM] = CausalLM


def assemble(c: Config, parts: Parts) -> CausalLM:
    """Build a decoder with random weights of a complete config and a family's parts."""
    D, V = c["hidden_size"], c["vocab_size"]
    norm, window = partial(parts.norm, c, D), c.get("sliding_window")
    kinds = parts.layer_types(c)
    rotaries = parts.rotaries(c, kinds)
    blocks = []
    for i, (kind, rotary) in enumerate(zip(kinds, rotaries, strict=True)):
        options: Options = {"head_dim": head_dim_of(c), "rotary": rotary}
        options["window"] = window if kind == "sliding_attention" else None
        options |= parts.attention(c, i)
        attention = parts.mixer(c, i, options)
        network = parts.network(c, i)
        blocks.append(parts.block_type(attention, network, norm, **parts.block(c)))
    tied = c["tie_word_embeddings"]
    whole: Options = {
        "embedding": TokenEmbedding(V, D, scale=False),
        "norm": norm(),
        "output": None if tied else nn.Linear(D, V, bias=False),
        "max_len": c["max_position_embeddings"],
        "pad_id": c["pad_token_id"],
    }
    model = parts.model_type(blocks=blocks, config=c, **{**whole, **parts.model(c)})
    model.reset_parameters()
    return model
