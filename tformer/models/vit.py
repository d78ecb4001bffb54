"""ViT: an encoder that reads an image as a sequence of patches.

B batch · C channels · I height and width of an image · P of a patch · N = (I / P)²
patches · D d_model · K classes
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive
from tformer.nn.encoder import transformer_encoder
from tformer.nn.positions import LearnedPositionalEmbedding


def patches_of(images: Tensor, patch_size: int) -> Tensor:
    """Cut images into squares, row by row, and make each of them one vector.

    Args:
        images: (B, C, height, width), both multiples of `patch_size`.
        patch_size: P, in pixels.

    Returns:
        (B, N, C · P · P); a vector has the first channel's rows, then the next one's.
    """
    check_positive(patch_size=patch_size)
    if images.ndim != 4:
        rule = "must be (batch, channels, height, width)"
        raise ValueError(f"images {rule}, not {tuple(images.shape)}")
    B, C, height, width = images.shape
    check_divisible(height=height, patch_size=patch_size)
    check_divisible(width=width, patch_size=patch_size)
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(B, C, rows, patch_size, columns, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, P, P)
    return x.reshape(B, rows * columns, -1)  # (B, N, C · P · P)


class ViT(nn.Module):
    """Say which class an image is of, from its patches and a class token.

    Dosovitskiy et al. 2021, section 3.1, equations 1 to 4 (arXiv:2010.11929): a linear
    layer makes a vector of each patch, a learned vector stands before them, learned
    positions are added, and a pre-norm encoder follows. The class is read from what
    becomes of the first vector. The defaults are those of ViT-B/16 (table 1).

    Args:
        num_classes: K.
        image_size: height and width of the images in pixels; a multiple of P.
        patch_size: P.
        channels: 3 for colours, 1 for grey.
        d_model: width D.
        num_heads: heads H; divides D.
        num_layers: layers of the encoder.
        d_ff: inner width of the feed-forward networks; 4 · D if None.
        dropout: probability in [0, 1): of the embedded patches, of the attention
            weights and of each sub-layer's output.
        eps: added to the variance in the norms.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        image_size: int = 224,
        patch_size: int = 16,
        channels: int = 3,
        d_model: int = 768,
        num_heads: int = 12,
        num_layers: int = 12,
        d_ff: int | None = None,
        dropout: float = 0.0,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        check_positive(num_classes=num_classes, channels=channels)
        check_positive(image_size=image_size, patch_size=patch_size)
        check_divisible(image_size=image_size, patch_size=patch_size)
        self.channels, self.image_size = channels, image_size
        self.patch_size, self.d_model = patch_size, d_model
        num_patches = (image_size // patch_size) ** 2
        self.patch_proj = nn.Linear(channels * patch_size**2, d_model)
        self.class_token = nn.Parameter(torch.zeros(d_model))
        self.positions = LearnedPositionalEmbedding(num_patches + 1, d_model)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.encoder = transformer_encoder(
            d_model,
            num_heads,
            4 * d_model if d_ff is None else d_ff,
            num_layers,
            dropout=dropout,
            activation="gelu",
            norm_first=True,
            eps=eps,
        )
        self.head = nn.Linear(d_model, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Score the classes for images (B, C, I, I): logits (B, K)."""
        x = self.encoder(self.embed(images))  # (B, 1 + N, D)
        return self.head(x[:, 0])  # (B, K)

    def embed(self, images: Tensor) -> Tensor:
        """Turn images into the class token and the patches, with positions.

        Returns:
            (B, 1 + N, D).

        Raises:
            TypeError: the pixels are whole numbers.
            ValueError: the images are not (B, C, I, I).
        """
        size = (self.channels, self.image_size, self.image_size)
        if images.shape[1:] != size or images.ndim != 4:
            shape = ", ".join(map(str, size))
            raise ValueError(f"images must be (B, {shape}), not {tuple(images.shape)}")
        if not images.is_floating_point():
            raise TypeError(f"images must be floating, not {images.dtype}")
        x = self.patch_proj(patches_of(images, self.patch_size))  # (B, N, D)
        first = self.class_token.to(x.dtype).expand(x.shape[0], 1, -1)  # (B, 1, D)
        return self.dropout(self.positions(torch.cat([first, x], dim=1)))
