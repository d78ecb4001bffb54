"""Whether a module of torch's is what its class says, and ours computes the same."""

import torch
from torch import Tensor, nn

WITH_MEMORY = nn.TransformerDecoderLayer, nn.TransformerDecoder, nn.Transformer


def check_parts(old: nn.Module, again: nn.Module) -> None:
    """Raise unless torch's module has the parts that the same sizes give it again."""
    parts, wanted_parts = dict(old.named_modules()), dict(again.named_modules())
    for name in [*wanted_parts, *parts]:
        part, wanted = parts.get(name), wanted_parts.get(name)
        one, two = (f"{type(m).__name__}({_options(m)})" for m in (part, wanted))
        same = isinstance(part, type(wanted)) and _options(part) == _options(wanted)
        if not same and not name.endswith("activation"):  # it has many names
            raise ValueError(f"{name or 'module'} ({one}) must be {two}")


def _options(part: nn.Module | None) -> str:
    words = ("kdim", "vdim", "bias_k", "add_zero_attn", "dropout")
    if isinstance(part, nn.MultiheadAttention):  # its repr does not say them
        return ", ".join(f"{word}={getattr(part, word)}" for word in words)
    return "" if part is None else part.extra_repr()


def check_same(old: nn.Module, new: nn.Module, theirs: nn.Module) -> None:
    """Raise unless both compute the same: a hook or a forward of its own would show."""
    first = next(m for m in theirs.modules() if isinstance(m, nn.MultiheadAttention))
    like, modes = first.out_proj.weight, [(m, m.training) for m in old.modules()]
    x = torch.linspace(-1, 1, 3 * first.embed_dim, device=like.device, dtype=like.dtype)
    inputs = 1 + isinstance(theirs, WITH_MEMORY)
    outputs: list[Tensor] = []
    try:
        for module in (old.eval(), new.eval()):
            if isinstance(module, nn.MultiheadAttention):
                inputs = 3  # query, key, value
            # One sequence: torch takes it without a batch, and asks not where that is.
            given = x.view(3, -1) if module is theirs else x.view(1, 3, -1)
            # Gradients keep torch off its fast path, which takes every nn.GELU for the
            # exact one, tanh's too.
            with torch.enable_grad():
                output = module(*[given.clone().requires_grad_()] * inputs)
            output = output[0] if isinstance(output, tuple) else output
            outputs.append(output.flatten())
    finally:
        for module, training in modes:
            module.training = training
    close = {torch.float64: 1e-9, torch.float32: 1e-3}.get(like.dtype, 0.1)
    if not torch.allclose(outputs[0], outputs[1], close, close):
        off = float((outputs[0] - outputs[1]).detach().abs().max())
        raise ValueError(
            f"module ({type(old).__name__}) computes what its class does not, off by "
            f"{off:.2g}: a hook, or a forward of its own?"
        )
