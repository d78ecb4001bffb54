"""ViT computes what Hugging Face's computes with the same weights."""

import pytest
import torch

pytest.importorskip("transformers")

from transformers import ViTConfig, ViTForImageClassification

from tformer.models.vit import ViT

D, H, N, K = 12, 3, 2, 5
# Ours, and what stands for it in a layer of Hugging Face's.
LAYER = {
    "attention_norm": "layernorm_before",
    "feed_forward_norm": "layernorm_after",
    "attention.q_proj": "attention.q_proj",
    "attention.k_proj": "attention.k_proj",
    "attention.v_proj": "attention.v_proj",
    "attention.out_proj": "attention.o_proj",
    "feed_forward.linear1": "mlp.fc1",
    "feed_forward.linear2": "mlp.fc2",
}


def test_vit():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    config = ViTConfig(
        image_size=12,
        patch_size=4,
        num_channels=3,
        hidden_size=D,
        num_attention_heads=H,
        num_hidden_layers=N,
        intermediate_size=23,
        num_labels=K,
        layer_norm_eps=1e-3,
    )
    theirs = ViTForImageClassification(config).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
    state = theirs.state_dict()
    ours = ViT(
        K,
        image_size=12,
        patch_size=4,
        d_model=D,
        num_heads=H,
        num_layers=N,
        d_ff=23,
        eps=1e-3,
    ).eval()
    ours.load_state_dict(renamed(state))
    images = torch.randn(2, 3, 12, 12)
    torch.testing.assert_close(ours(images), theirs(images).logits)
    torch.set_default_dtype(torch.float32)


def renamed(state):
    before = "vit.embeddings."
    named = {
        "class_token": state[f"{before}cls_token"].flatten(),
        "positions.weight": state[f"{before}position_embeddings"][0],
    }
    pairs = {"encoder.norm": "vit.layernorm", "head": "classifier"}
    for n in range(N):
        layer = f"vit.layers.{n}."
        pairs |= {f"encoder.blocks.{n}.{a}": layer + b for a, b in LAYER.items()}
    for kind in ("weight", "bias"):
        x = state[f"{before}patch_embeddings.projection.{kind}"]
        named[f"patch_proj.{kind}"] = x.flatten(1) if x.ndim > 1 else x
        named |= {f"{a}.{kind}": state[f"{b}.{kind}"] for a, b in pairs.items()}
    return named
