"""Modules of x-transformers with the weights of ours.

Its attention has no biases and its norms none. Ours are made with biases of 0, so that
the outputs are equal; gains are 1 in both.
"""

import torch
from torch import Tensor, nn
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper


@torch.no_grad()
def fill(theirs: nn.Module, layers: nn.ModuleList) -> None:
    """Copy attention and feed-forward of each layer of ours."""
    blocks = [block for _, block, _ in theirs.layers]
    for i, layer in enumerate(layers):
        attention, network = blocks[2 * i], blocks[2 * i + 1]
        mine = layer.attention
        for name, old in (
            ("to_q", mine.q_proj),
            ("to_k", mine.k_proj),
            ("to_v", mine.v_proj),
            ("to_out", mine.out_proj),
        ):
            getattr(attention, name).weight.copy_(old.weight)
            if old.bias is not None and old.bias.any():
                raise ValueError(f"{name}: x-transformers has no bias there")
        linears = [part for part in network.ff.modules() if isinstance(part, nn.Linear)]
        for new, old in zip(
            linears,
            (layer.feed_forward.linear1, layer.feed_forward.linear2),
            strict=True,
        ):
            new.load_state_dict(old.state_dict())


def options_of(layers: nn.ModuleList, activation: nn.Module) -> dict:
    first = layers[0]
    return {
        "dim": first.attention.d_model,
        "depth": len(layers),
        "heads": first.attention.num_heads,
        "attn_dim_head": first.attention.head_dim,
        "ff_mult": first.feed_forward.linear1.out_features / first.attention.d_model,
        "ff_custom_activation": activation,
        "attn_flash": True,
        "verbose": False,
    }


def encoder(ours: nn.Module) -> nn.Module:
    """Make its encoder from our post-norm `Encoder` with relu."""
    theirs = Encoder(**options_of(ours.blocks, nn.ReLU()), pre_norm=False)
    fill(theirs, ours.blocks)
    return theirs.to(ours.blocks[0].attention.q_proj.weight.dtype)


def gpt(ours: nn.Module) -> nn.Module:
    """Make its decoder-only model from our GPT-2 with tied logits and exact gelu."""
    c = ours.config
    theirs = TransformerWrapper(
        num_tokens=c["vocab_size"],
        max_seq_len=c["n_positions"],
        tie_embedding=True,
        tie_embedding_scale=1.0,
        attn_layers=Decoder(**options_of(ours.blocks, nn.GELU())),
    )
    fill(theirs.attn_layers, ours.blocks)
    with torch.no_grad():
        theirs.token_emb.emb.weight.copy_(ours.embedding.weight)
        # It multiplies positions by a factor, which is taken out here.
        factor = theirs.pos_emb.scale
        theirs.pos_emb.emb.weight.copy_(ours.positions.weight / factor)
    return theirs.to(ours.embedding.weight.dtype)


def generate(model: nn.Module, ids: Tensor, tokens: int, **options) -> Tensor:
    """Write so many tokens with its cache, greedily if temperature is 0."""
    writer = AutoregressiveWrapper(model)
    return writer.generate(ids, tokens, **{"temperature": 0.0, **options})
