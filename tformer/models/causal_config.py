"""The sizes of a language model, and the parts that it is built with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tformer.checks import check_divisible, check_positive
from tformer.models.attention_parts import LatentParts, RotaryParts
from tformer.models.config import check_shared
from tformer.models.expert_parts import ExpertParts
from tformer.models.nested import finite_above, nested
from tformer.nn.block import PLACEMENTS
from tformer.nn.feed_forward import ACTIVATIONS
from tformer.nn.gated import GATES

NESTED = {"rotary": RotaryParts, "latent": LatentParts, "experts": ExpertParts}
# What lay in `Parts` itself before it had a place of its own.
MOVED = {"rotary_base": "base", "rotary_layout": "layout"}
POSITIONS = ("rotary", "learned", "sinusoidal", "alibi", "t5", "none")
NORMS = ("rms", "rms_plus_one", "layer")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a `CausalLM` is built with. The defaults are those of Llama and Qwen.

    Args:
        positions: "rotary"; "learned" or "sinusoidal", added to the tokens; "alibi" or
            "t5", added to the scores by distance; or "none".
        rotary: how rotary positions turn: base, layout, scaling.
        latent: in place of keys and values a short vector; None for heads of them.
        norm: "rms", "rms_plus_one" (Gemma's 1 + w) or "layer".
        placement: of the norms: "pre", "sandwich" or "post".
        feed_forward: an activation, "relu", "gelu", "gelu_tanh" or "relu2"; or a gate,
            "swiglu", "geglu", "geglu_tanh", "reglu" or "glu".
        experts: in place of each feed-forward network, several of its kind, of which
            each token uses a few; None for one network.
        qk_norm: normalise each query and each key, by the kind of `norm`.
        window: how many keys a query sees, itself included; all so far if None.
        global_every: of so many layers the last sees all keys, the others only the
            window; none of them does if None.
        sinks: a learned logit for each head, which joins the softmax.
        softcap: bound each score: c · tanh(score / c).
        score_scale: factor of the scores; 1 / √head_dim if None.
        logit_cap: bound each logit in the same way.
        scale_embedding: multiply embedded tokens by √D, as the paper and Gemma do.

    Raises:
        TypeError: a flag is not a bool, a size not an int, or a nested part of
            another class.
        ValueError: a value is out of its range, or does nothing beside the others.
    """

    positions: str = "rotary"
    rotary: RotaryParts = field(default_factory=RotaryParts)
    latent: LatentParts | None = None
    norm: str = "rms"
    placement: str = "pre"
    feed_forward: str = "swiglu"
    experts: ExpertParts | None = None
    qk_norm: bool = False
    window: int | None = None
    global_every: int | None = None
    sinks: bool = False
    softcap: float | None = None
    score_scale: float | None = None
    logit_cap: float | None = None
    scale_embedding: bool = False

    def __post_init__(self) -> None:
        _one_of("positions", self.positions, POSITIONS)
        _one_of("norm", self.norm, NORMS)
        _one_of("placement", self.placement, PLACEMENTS)
        _one_of("feed_forward", self.feed_forward, (*ACTIVATIONS, *GATES))
        for name, kind in NESTED.items():  # of `dataclasses.asdict`, or of JSON
            if name == "rotary" or getattr(self, name) is not None:
                part = nested(kind, name, getattr(self, name))
                object.__setattr__(self, name, part)
        for name in ("qk_norm", "sinks", "scale_embedding"):
            if not isinstance(getattr(self, name), bool):
                given = type(getattr(self, name)).__name__
                raise TypeError(f"{name} must be a bool, not {given}")
        for name in ("window", "global_every"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})
        for name in ("softcap", "logit_cap", "score_scale"):
            if getattr(self, name) is not None:
                value = finite_above(0, name, getattr(self, name))
                object.__setattr__(self, name, value)
        if self.rotary.local_base is not None and self.window is None:
            raise ValueError(
                f"local_base ({self.rotary.local_base}) needs a window: it is of the "
                "layers that have one"
            )
        if self.latent is not None:
            self._check_latent()
        if self.global_every is not None and self.window is None:
            raise ValueError(
                f"global_every ({self.global_every}) needs a window, which the other "
                "layers have"
            )

    def _check_latent(self) -> None:
        if self.positions != "rotary":
            raise ValueError(
                f"positions ({self.positions!r}) must be 'rotary' for latent attention"
            )
        for name in ("qk_norm", "window", "sinks", "softcap"):
            value = getattr(self, name)
            if value is not None and value is not False:
                raise ValueError(f"{name} ({value}) is not for latent attention")

    @property
    def gated(self) -> bool:
        """Whether the feed-forward network has a gate, and so three matrices."""
        return self.feed_forward in GATES

    def window_of(self, layer: int) -> int | None:
        """Return the window of a layer, counted from 0."""
        every = self.global_every
        return None if every is not None and (layer + 1) % every == 0 else self.window


@dataclass(frozen=True, kw_only=True)
class CausalLMConfig:
    """The sizes of a `CausalLM`, and its parts.

    Args:
        vocab_size: tokens V.
        d_model: width D.
        num_heads: heads H.
        num_kv_heads: key/value heads; divides H. H if None.
        head_dim: width of a head; D / H if None.
        num_layers: number of layers N.
        d_ff: inner width of the feed-forward networks. If None 4 · D, or with a gate
            8/3 · D, which makes as many parameters.
        max_len: the longest text of the training. Only learned positions end there.
        dropout: probability in [0, 1): of the embedded text, of the attention weights
            and of each sub-layer's output.
        eps: in the norms.
        bias: give linear layers, and norms of the kind "layer", a bias.
        tie_embeddings: make logits with the embedding matrix.
        logit_scale: factor of the logits: 1 / `logits_scaling` in other configs, and
            with µP 1 over how many times as wide as its base the model is.
        pad_id: the token after a short text, which a loss leaves out; None if there is
            none.
        parts: what the model is built with.

    Raises:
        TypeError: a size is not an int, a flag not a bool, or `parts` no `Parts`.
        ValueError: a value is out of its range.
    """

    vocab_size: int
    d_model: int
    num_heads: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    num_layers: int
    d_ff: int | None = None
    max_len: int
    dropout: float = 0.0
    eps: float = 1e-6
    bias: bool = False
    tie_embeddings: bool = True
    logit_scale: float = 1.0
    pad_id: int | None = None
    parts: Parts = field(default_factory=Parts)

    def __post_init__(self) -> None:
        if isinstance(self.parts, Mapping):  # of `dataclasses.asdict`, or of JSON
            object.__setattr__(self, "parts", parts_of(self.parts))
        if not isinstance(self.parts, Parts):
            raise TypeError(f"parts must be Parts, not {type(self.parts).__name__}")
        check_shared(self)
        for name in ("logit_scale", "eps"):
            value = finite_above(0, name, getattr(self, name))
            object.__setattr__(self, name, value)
        if self.head_dim is None:
            check_divisible(d_model=self.d_model, num_heads=self.num_heads)
        if self.parts.latent is not None and self.num_kv_heads is not None:
            raise ValueError(
                f"num_kv_heads ({self.num_kv_heads}) is not for latent attention"
            )
        if self.parts.positions == "rotary" and self.turned_width % 2:
            raise ValueError(
                f"head_dim ({self.width_of_head}) must be even for rotary positions: "
                "two numbers make a pair"
            )
        if self.parts.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model ({self.d_model}) must be even for sinusoids")

    @property
    def width_of_head(self) -> int:
        """`head_dim`, or D / H."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def turned_width(self) -> int:
        """How many numbers of a query are turned by rotary positions."""
        latent, width = self.parts.latent, self.width_of_head
        return width if latent is None else latent.turned(width)

    @property
    def inner_width(self) -> int:
        """`d_ff`, or what it is if not given."""
        if self.d_ff is not None:
            return self.d_ff
        return max(1, 8 * self.d_model // 3) if self.parts.gated else 4 * self.d_model

    @classmethod
    def tiny(cls, **changes: Any) -> "CausalLMConfig":
        """2 layers of width 64, two heads to a key: learns a small text in seconds."""
        sizes = {"vocab_size": 256, "d_model": 64, "num_heads": 4, "num_layers": 2}
        return cls(**{**sizes, "num_kv_heads": 2, "max_len": 64, **changes})

    @classmethod
    def shakespeare_cpu(cls, **changes: Any) -> "CausalLMConfig":
        """Shakespeare's characters: as many layers and as wide as GPT's preset."""
        sizes = {"vocab_size": 65, "d_model": 128, "num_heads": 4, "num_layers": 4}
        return cls(**{**sizes, "max_len": 64, **changes})


def parts_of(values: Mapping[str, Any]) -> Parts:
    """Make parts from their values by name; a part that is not named is the default.

    Raises:
        ValueError: there is no such part, or a value is out of its range.
    """
    old = {new: values[name] for name, new in MOVED.items() if name in values}
    if old and "rotary" not in values:
        values = {n: x for n, x in values.items() if n not in MOVED} | {"rotary": old}
    parts: Parts = nested(Parts, "parts", values)
    return parts


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(known)}")
