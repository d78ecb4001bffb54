"""Per-layer embeddings: each layer is told once more which token stands at a position.

B batch · T length · D d_model · N layers · P width of what one layer is told
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding


class PerLayerEmbedding(nn.Module):
    """Make what each layer is told of a token: (√P · E[id] + norm(W x / √D)) / √2.

    Gemma 3n and Gemma 4, as their code has it; no paper describes it. The matrix E
    (V, N · P) is large and only read from, a row a token: it can lie in slow memory.
    The second term, of the embedded token x, needs none.

    Args:
        vocab_size: tokens V.
        num_layers: layers N.
        width: P.
        d_model: width D of the embedded tokens.
        norm: of the width P.
    """

    def __init__(
        self,
        vocab_size: int,
        num_layers: int,
        width: int,
        d_model: int,
        norm: nn.Module,
    ) -> None:
        super().__init__()
        check_positive(num_layers=num_layers, width=width, d_model=d_model)
        self.num_layers, self.width, self.d_model = num_layers, width, d_model
        every = num_layers * width
        self.embedding = TokenEmbedding(vocab_size, every, scale=math.sqrt(width))
        self.proj = nn.Linear(d_model, every, bias=False)
        self.norm = norm

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        """Map ids (B, T) and embedded tokens x (B, T, D) to (B, T, N, P)."""
        shape = (*ids.shape, self.num_layers, self.width)
        token = self.embedding(ids).view(shape)
        context = self.norm((self.proj(x) * self.d_model**-0.5).view(shape))
        return (context + token) * 2**-0.5  # (B, T, N, P)


class LayerInput(nn.Module):
    """Add to a layer what it is told, as far as x lets it in: norm(W₂(GELU(W₁x) ⊙ p)).

    Args:
        d_model: width D.
        width: P.
        norm: of the width D.
    """

    def __init__(self, d_model: int, width: int, norm: nn.Module) -> None:
        super().__init__()
        check_positive(d_model=d_model, width=width)
        self.gate_proj = nn.Linear(d_model, width, bias=False)  # W₁
        self.out_proj = nn.Linear(width, d_model, bias=False)  # W₂
        self.norm = norm

    def forward(self, x: Tensor, given: Tensor) -> Tensor:
        """Map x (B, T, D) and what the layer is told, p (B, T, P), to (B, T, D)."""
        gate = F.gelu(self.gate_proj(x), approximate="tanh")  # (B, T, P)
        return self.norm(self.out_proj(gate * given))  # (B, T, D)


class ScaledBlock(Block):
    """A block of Gemma 4: what it is told is added last, and the sum is scaled.

    s · (y + f(y, p)), of what `Block` makes, y. The factor s, 1 at the beginning, is
    kept with the weights, and no gradient changes it.

    Args:
        attention: as `Block` has it, and the further arguments too.
        feed_forward: the same.
        norm: the same.
        layer_input: f, such as `LayerInput`; None without.
        options: further ones of `Block`.
    """

    output_scale: Tensor

    def __init__(
        self,
        attention: nn.Module,
        feed_forward: nn.Module,
        norm: Callable[[], nn.Module],
        *,
        layer_input: nn.Module | None = None,
        **options: object,
    ) -> None:
        make: Callable[..., None] = super().__init__
        make(attention, feed_forward, norm, **options)
        self.layer_input = layer_input
        self.register_buffer("output_scale", torch.ones(1))

    def forward(  # type: ignore[override] # a block's, and one argument more
        self, x: Tensor, *args: object, given: Tensor | None = None, **options: object
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); `given` is what the layer is told (B, T, P)."""
        if (given is None) != (self.layer_input is None):
            raise ValueError("given must be there with layer_input, and only then")
        block: Callable[..., Tensor] = super().forward
        y = block(x, *args, **options)
        if self.layer_input is not None:
            y = y + self.layer_input(y, given)
        return y * self.output_scale
