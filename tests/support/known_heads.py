"""Trunks whose next tokens are known, and heads that are right about them."""

import torch

from small_models import MODERN
from tformer.models import MultiTokenHeads
from tformer.models.families import custom


def without_context(vocab_size, d_model, **sizes):
    """A trunk in which a state is the norm of the newest token's embedding alone."""
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_heads": 1, **sizes}
    other = {"num_layers": 1, "max_len": 50, "eps": 1e-12, "positions": "none"}
    trunk = custom.build({**MODERN, **sizes, **other}).double().eval()
    for name, weight in trunk.named_parameters():
        if name.endswith(("out_proj.weight", "down_proj.weight")):
            torch.nn.init.zeros_(weight)
    return trunk


def linear_heads(d_model, num_ahead, matrix, **options):
    """Heads without a feed-forward network, each with this matrix."""
    heads = MultiTokenHeads(d_model, num_ahead, **options).double().eval()
    for head in heads.heads:
        torch.nn.init.zeros_(head.feed_forward.down_proj.weight)
        with torch.no_grad():
            head.proj.weight.copy_(matrix)
        for module in head.modules():
            if hasattr(module, "eps"):
                module.eps = 1e-12
    return heads


def of_the_last_token(vocab_size=5, d_model=7, num_ahead=3):
    """The next token hangs on the newest alone, so a head that sees it knows all."""
    torch.manual_seed(0)
    trunk = without_context(vocab_size, d_model)
    torch.nn.init.normal_(trunk.embedding.weight)
    eye = torch.eye(d_model, dtype=torch.float64)
    heads = linear_heads(d_model, num_ahead, torch.cat((0 * eye, eye), dim=1))
    return trunk, heads


def counting(vocab_size=5, num_ahead=3):
    """After x comes x + 1, and heads that see no token can count too."""
    trunk = without_context(vocab_size, vocab_size, tie_embeddings=False)
    eye = torch.eye(vocab_size, dtype=torch.float64)
    to_next = eye.roll(1, dims=0)  # maps e_x to e_(x + 1)
    with torch.no_grad():
        trunk.embedding.weight.copy_(eye)
        trunk.output.weight.copy_(9 * to_next)
    return trunk, linear_heads(vocab_size, num_ahead, to_next, see_tokens=False)
