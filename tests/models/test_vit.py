"""ViT: its patches are a convolution, its encoder torch's own; what it refuses."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tformer.interop import from_torch
from tformer.models.vit import ViT, patches_of

B, C, I, P, D, H, N, K = 2, 3, 12, 4, 14, 2, 2, 5
SIZES = {"image_size": I, "patch_size": P, "channels": C}
SIZES |= {"d_model": D, "num_heads": H, "num_layers": N}


@pytest.fixture
def model(float64):
    """Numbers larger than the first ones, so that no part is too small to be seen."""
    vit = ViT(K, **SIZES, d_ff=23, eps=1e-3)
    with torch.no_grad():
        for p in vit.parameters():
            p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
    return vit


def test_patches_by_hand():
    """Two channels of 2 x 4 pixels: two patches, each its rows, channel by channel."""
    images = torch.arange(16).reshape(1, 2, 2, 4)
    wanted = [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]
    assert patches_of(images, 2).tolist() == [wanted]


def test_a_linear_layer_over_patches_is_a_convolution_with_a_stride():
    images = torch.randn(B, C, 8, 20, dtype=torch.float64)
    layer = nn.Linear(C * P * P, D).double()
    image = F.conv2d(images, layer.weight.view(D, C, P, P), layer.bias, stride=P)
    wanted = image.flatten(2).mT  # (B, N, D): row by row
    assert_close(layer(patches_of(images, P)), wanted)
    assert_close(patches_of(images, P), F.unfold(images, P, stride=P).mT)


def test_equals_torchs_encoder_between_torchs_parts(model):
    layer = nn.TransformerEncoderLayer(D, H, 23, 0.0, "gelu", 1e-3, True, True)
    theirs = nn.TransformerEncoder(layer, N, nn.LayerNorm(D, 1e-3), False).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
    model.encoder.load_state_dict(from_torch(theirs).state_dict())
    images = torch.randn(B, C, I, I)
    kernel = model.patch_proj.weight.view(D, C, P, P)
    x = F.conv2d(images, kernel, model.patch_proj.bias, stride=P).flatten(2).mT
    x = torch.cat([model.class_token.expand(B, 1, D), x], dim=1)
    x = theirs(x + model.positions.weight)
    wanted = F.linear(x[:, 0], model.head.weight, model.head.bias)
    assert wanted.shape == (B, K)
    assert_close(model(images), wanted)


def test_without_positions_the_order_of_patches_does_not_matter(model):
    x = torch.randn(B, 1 + (I // P) ** 2, D)
    order = torch.cat([torch.zeros(1).long(), 1 + torch.randperm((I // P) ** 2)])
    assert not torch.equal(order, order.sort().values)
    first, shuffled = model.encoder(x)[:, 0], model.encoder(x[:, order])[:, 0]
    assert_close(first, shuffled)
    placed = [model.encoder(model.positions(y))[:, 0] for y in (x, x[:, order])]
    assert (placed[0] - placed[1]).abs().max() > 0.01


def test_sizes_of_the_paper():
    """Table 1 says 86M for ViT-B; with the head of 1,000 classes: timm's count."""
    with torch.device("meta"):
        model = ViT(1000)
    assert sum(p.numel() for p in model.parameters()) == 86_567_656


def test_every_option_reaches_its_place():
    model = ViT(K, **SIZES, dropout=0.25, eps=0.5)
    assert model.dropout.p == 0.25
    assert len(model.encoder.blocks) == N
    for block in model.encoder.blocks:
        assert block.attention.num_heads == H
        assert block.attention.dropout == block.dropout.p == 0.25
        assert block.feed_forward.activation == "gelu"
        assert block.feed_forward.linear1.out_features == 4 * D
        assert block.placement == "pre"
        assert block.attention_norm.eps == block.feed_forward_norm.eps == 0.5
    assert model.encoder.norm.eps == 0.5
    assert (model.class_token == 0).all()
    assert model.positions.weight.shape == (10, D)


IMAGES = torch.zeros(B, C, I, I)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (IMAGES[0], r"images must be \(B, 3, 12, 12\), not \(3, 12, 12\)"),
        (IMAGES[:, :1], r"not \(2, 1, 12, 12\)"),
        (IMAGES[..., :8], r"not \(2, 3, 12, 8\)"),
        (IMAGES.byte(), r"images must be floating, not torch.uint8"),
    ],
)
def test_bad_images_are_named(images, message):
    error = TypeError if "floating" in message else ValueError
    with pytest.raises(error, match=message):
        ViT(K, **SIZES)(images)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch_size": 5}, r"image_size \(12\) must be divisible by patch_size \(5\)"),
        ({"patch_size": 0}, r"patch_size \(0\)"),
        ({"channels": 0}, r"channels \(0\)"),
        ({"num_layers": 0}, r"num_layers \(0\)"),
        ({"num_heads": 3}, r"num_heads \(3\)"),
        ({"dropout": 1.0}, r"dropout \(1.0\)"),
    ],
)
def test_bad_sizes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ViT(K, **{**SIZES, **changes})


def test_bad_patches_are_named(raises):
    message = "images must be (batch, channels, height, width), not (3, 12, 12)"
    with raises(ValueError, message):
        patches_of(IMAGES[0], P)
    with raises(ValueError, "width (8) must be divisible by patch_size (6)"):
        patches_of(IMAGES[..., :8], 6)
