"""Per-layer embeddings in NumPy: each layer is told once more which token stands there.

B batch · T length · D d_model · N layers · P width of what one layer is told
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tformer.reference.block import Block
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.feed_forward import gelu_tanh
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(eq=False)
class PerLayerEmbedding:
    """Make what each layer is told of a token: (√P · E[id] + norm(W x / √D)) / √2."""

    embedding: TokenEmbedding  # E, (V, N · P), times √P
    proj: Linear  # W, from D to N · P
    norm: Map  # of the width P
    num_layers: int  # N
    width: int  # P

    def __call__(self, ids: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Map ids (B, T) and embedded tokens x (B, T, D) to (B, T, N, P)."""
        shape = (*ids.shape, self.num_layers, self.width)
        token = self.embedding(ids).reshape(shape)
        context = self.norm((self.proj(x) / np.sqrt(x.shape[-1])).reshape(shape))
        return (context + token) / np.sqrt(2)  # (B, T, N, P)


@dataclass(eq=False)
class LayerInput:
    """Add to a layer what it is told, as far as x lets it in: norm(W₂(GELU(W₁x) ⊙ p)).

    GELU is the approximation by tanh.
    """

    gate_proj: Linear  # W₁, from D to P
    out_proj: Linear  # W₂, from P to D
    norm: Map  # of the width D

    def __call__(self, x: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) and what the layer is told, p (B, T, P), to (B, T, D)."""
        gate = gelu_tanh(self.gate_proj(x))  # (B, T, P)
        return self.norm(self.out_proj(gate * given))  # (B, T, D)


@dataclass(eq=False)
class ScaledBlock(Block):
    """A block of Gemma 4: s · (y + f(y, p)), of what `Block` makes, y."""

    layer_input: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # f
    output_scale: np.ndarray = field(default_factory=lambda: np.ones(1))  # s

    def __call__(  # type: ignore[override] # a block's, and one argument more
        self,
        x: np.ndarray,
        *args: np.ndarray | None,
        given: np.ndarray | None = None,
        **options: object,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D); `given` is what the layer is told (B, T, P)."""
        block: Callable[..., np.ndarray] = super().__call__
        y = block(x, *args, **options)
        if self.layer_input is not None and given is not None:
            y = y + self.layer_input(y, given)
        return y * self.output_scale
