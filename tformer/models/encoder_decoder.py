"""The two stacks without embeddings, from vectors to vectors: `nn.Transformer`.

B batch · S length of the source · T length of the target · D d_model · H heads
"""

from torch import Tensor, nn

from tformer.nn.decoder import Decoder
from tformer.nn.encoder import Encoder


class EncoderDecoder(nn.Module):
    """Encode a source, and decode a target against it: what `nn.Transformer` does.

    Args:
        encoder: makes the memory from the source.
        decoder: reads it.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        attn_mask: Tensor | None = None,
        *,
        src_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Decode tgt against src. A mask has two axes, or four that broadcast.

        Args:
            src: (B, S, D).
            tgt: (B, T, D).
            attn_mask: bool, (T, T) or to (B, H, T, T), target to target.
            src_mask: bool, (S, S) or to (B, H, S, S), source to source.
            memory_mask: bool, (T, S) or to (B, H, T, S), target to source.
            is_causal: hide later positions of the target.

        Returns:
            (B, T, D).
        """
        memory = self.encoder(src, src_mask)  # (B, S, D)
        return self.decoder(tgt, memory, attn_mask, memory_mask, is_causal=is_causal)
