"""What the attention of a `CausalLM` is: how it turns, and what its cache keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tformer.checks import check_positive
from tformer.models.nested import finite_above
from tformer.nn.rotary import check_layout
from tformer.nn.rotary_scaling import (
    scale_linear,
    scale_llama3,
    scale_ntk,
    scale_yarn,
    yarn_factor,
)

SCALINGS: dict[str, Callable[..., Tensor]] = {
    "linear": scale_linear,
    "ntk": scale_ntk,
    "llama3": scale_llama3,
    "yarn": scale_yarn,
}
BY_TURNS = ("llama3", "yarn")  # which look at how often a pair turns in training


@dataclass(frozen=True, kw_only=True)
class RotaryParts:
    """How queries and keys are turned by rotary positions.

    Args:
        base: of the angles, `rope_theta` in configs.
        local_base: of the layers with a window, which then are not scaled:
            `rope_local_base_freq` of Gemma 3. As the others if None.
        layout: which numbers make a pair: "halves" or "pairs".
        scaling: for longer texts than in training: "linear", "ntk", "llama3", "yarn";
            see `tformer.nn.rotary_scaling`.
        scale: by how much longer.
        trained_len: the longest text of the first training, for "llama3" and "yarn".
        low: turns, for "llama3" and "yarn"; their own default if None.
        high: turns, likewise.
        factor: multiplies queries and keys; with "yarn" `yarn_factor(scale)` if None.

    Raises:
        TypeError: a value is no number, or `trained_len` not an int.
        ValueError: a value is unknown or out of its range, or does nothing.
    """

    base: float = 10_000.0
    local_base: float | None = None
    layout: str = "halves"
    scaling: str | None = None
    scale: float = 1.0
    trained_len: int | None = None
    low: float | None = None
    high: float | None = None
    factor: float | None = None

    def __post_init__(self) -> None:
        check_layout(self.layout)
        for name, low in (("base", 1), ("local_base", 1), ("scale", 0), ("factor", 0)):
            self._to_float(name, low)
        for name in ("low", "high"):
            self._to_float(name, 0)
        if self.trained_len is not None:
            check_positive(trained_len=self.trained_len)
        if self.scaling is not None and self.scaling not in SCALINGS:
            known = ", ".join(SCALINGS)
            raise ValueError(f"scaling ({self.scaling!r}) must be one of {known}")
        if self.scaling is None and self.scale != 1:
            raise ValueError(f"scale ({self.scale}) needs a scaling")
        if (self.scaling in BY_TURNS) != (self.trained_len is not None):
            raise ValueError(
                f"trained_len ({self.trained_len}) is for scaling 'llama3' and 'yarn', "
                "which need it"
            )
        for name in ("low", "high"):
            if getattr(self, name) is not None and self.scaling not in BY_TURNS:
                value = getattr(self, name)
                raise ValueError(f"{name} ({value}) is for scaling 'llama3' and 'yarn'")

    def _to_float(self, name: str, low: float) -> None:
        value = getattr(self, name)
        if value is not None:
            object.__setattr__(self, name, finite_above(low, name, value))

    def scaled(self, frequencies: Tensor) -> tuple[Tensor, float]:
        """Scale frequencies (Dh/2,); return them, and the factor that goes with them.

        Raises:
            ValueError: `scale`, `low` or `high` is out of its range, or there is one
                frequency where there must be two.
        """
        factor = 1.0 if self.factor is None else self.factor
        if self.scaling is None:
            return frequencies, factor
        values = {"trained_len": self.trained_len, "low": self.low, "high": self.high}
        turns: dict[str, Any] = {n: x for n, x in values.items() if x is not None}
        if self.scaling == "yarn" and self.factor is None:
            factor = yarn_factor(self.scale)
        return SCALINGS[self.scaling](frequencies, self.scale, **turns), factor


@dataclass(frozen=True, kw_only=True)
class LatentParts:
    """In place of keys and values, a short vector of each token: latent attention.

    The part of a query and a key that is not turned is as wide as a head. There are no
    biases, and no key/value heads.

    Args:
        kv_rank: width of the vector, `kv_lora_rank` in configs.
        q_rank: make queries, too, of a short vector of this width; `q_lora_rank`.
        rotary_dim: width of the part that is turned, even: `qk_rope_head_dim`. Half
            of a head's if None.
        value_dim: width of a value: `v_head_dim`. A head's if None.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1, or `rotary_dim` is odd.
    """

    kv_rank: int
    q_rank: int | None = None
    rotary_dim: int | None = None
    value_dim: int | None = None

    def __post_init__(self) -> None:
        check_positive(kv_rank=self.kv_rank)
        for name in ("q_rank", "rotary_dim", "value_dim"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})
        if self.rotary_dim is not None and self.rotary_dim % 2:
            raise ValueError(
                f"rotary_dim ({self.rotary_dim}) must be even: two numbers make a pair"
            )

    def turned(self, head_dim: int) -> int:
        """Return the width of the part that is turned."""
        return self.rotary_dim or max(2, head_dim // 4 * 2)
