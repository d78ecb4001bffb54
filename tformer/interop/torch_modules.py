"""From torch's own modules to ours, and back: the same numbers, from copied weights."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.models.encoder_decoder import EncoderDecoder
from tformer.nn.block import Block, transformer_block
from tformer.nn.decoder import Decoder
from tformer.nn.encoder import Encoder
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm

STACKS = {nn.TransformerEncoder: Encoder, nn.TransformerDecoder: Decoder}
LAYERS = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
WITH_MEMORY = nn.TransformerDecoderLayer, nn.TransformerDecoder, nn.Transformer
ACTIVATIONS: dict[str, Any] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": nn.GELU(approximate="tanh"),
}


def from_torch(module: nn.Module) -> Any:
    """Make our module from torch's: the same numbers, from a copy of its weights.

    Dtype, device, training mode, dropout and what is frozen stay as they are. Ours
    expects its inputs batch first, also where `module` does not. Masks differ too: see
    `attn_mask_from_torch` and `key_mask_from_torch`. Where a query may attend to
    nothing ours gives zeros and torch's, in most of its code paths, NaN.

    Args:
        module: `nn.MultiheadAttention` (ours: `MultiHeadAttention`), a layer (`Block`)
            or a stack (`Encoder`, `Decoder`) of `nn.Transformer`, or all of it
            (`EncoderDecoder`).

    Raises:
        TypeError: `module` is none of these.
        ValueError: it computes what ours do not: another `kdim`, an activation other
            than relu and gelu, several dropouts in a layer, or whatever a hook or a
            `forward` of its own makes of it. The message names it.
    """
    return _converted(module, _ours)


def to_torch(module: nn.Module) -> Any:
    """Make torch's module from ours, with `batch_first=True`: the same numbers.

    torch has no grouped-query attention: each shared key/value head is copied to every
    head that reads it. The result is exact, but as large as attention without groups.

    Args:
        module: what `from_torch` returns.

    Raises:
        TypeError: `module` is none of these.
        ValueError: it computes what torch's does not, such as a window, a gate, RMSNorm
            or a `forward` of its own.
    """
    return _converted(module, _theirs)


def _converted(old: nn.Module, make: Callable[[nn.Module], Any]) -> Any:
    back = make is _ours
    try:
        with torch.device("meta"):
            new = make(old)
            if back:
                _check_parts(old, _theirs(new))
        ours, theirs = (new, old) if back else (old, new)
        with torch.enable_grad():  # what is cut or copied is frozen where it was
            for part, other in _pairs(ours, theirs):
                source, target = (other, part) if back else (part, other)
                for name, x in _weights(source).items():
                    owner, _, last = name.rpartition(".")
                    weight = nn.Parameter(x.detach().clone(), x.requires_grad)
                    setattr(target.get_submodule(owner), last, weight)
    except AttributeError as error:
        raise ValueError(f"module has a part of another kind: {error}") from error
    if not next(new.parameters()).is_meta:
        _check_same(old, new, theirs)
    return new.train(old.training)


def _pairs(ours: Any, theirs: Any) -> Iterator[tuple[Any, Any]]:
    """Pair the parts of ours and of torch's that hold the same weights."""
    if isinstance(ours, EncoderDecoder):
        yield from _pairs(ours.encoder, theirs.encoder)
        yield from _pairs(ours.decoder, theirs.decoder)
    elif isinstance(ours, Encoder | Decoder):
        for block, layer in zip(ours.blocks, theirs.layers, strict=True):
            yield from _pairs(block, layer)
        if ours.norm is not None:
            yield ours.norm, theirs.norm
    elif isinstance(ours, Block):
        yield ours.attention, theirs.self_attn
        yield ours.attention_norm, theirs.norm1
        if ours.cross_attention is not None:
            yield ours.cross_attention, theirs.multihead_attn
            yield ours.cross_attention_norm, theirs.norm2
        last = "norm2" if ours.cross_attention is None else "norm3"
        yield ours.feed_forward_norm, getattr(theirs, last)
        yield ours.feed_forward.linear1, theirs.linear1
        yield ours.feed_forward.linear2, theirs.linear2
    else:
        yield ours, theirs


def _weights(part: Any) -> dict[str, Tensor]:
    """Name a part's weights as the other side does: only attention's are others."""
    weights = dict(part.named_parameters())
    if isinstance(part, nn.MultiheadAttention):
        for name in [name for name in weights if name.startswith("in_proj_")]:
            last = name.removeprefix("in_proj_")
            names = [f"{each}_proj.{last}" for each in "qkv"]
            weights |= zip(names, weights.pop(name).chunk(3), strict=True)
    elif isinstance(part, MultiHeadAttention):
        lasts = {name.rpartition(".")[2] for name in weights}
        groups, copies = part.num_kv_heads, part.num_heads // part.num_kv_heads
        weights = {}
        for last in lasts:  # torch has all biases, or none
            linears = part.q_proj, part.k_proj, part.v_proj, part.out_proj
            q, k, v, out = (
                linear.weight.new_zeros(len(linear.weight)) if x is None else x
                for linear, x in ((each, getattr(each, last)) for each in linears)
            )
            k, v = (
                x.unflatten(0, (groups, -1)).repeat_interleave(copies, 0).flatten(0, 1)
                for x in (k, v)  # (G · Dh, ...) to (H · Dh, ...)
            )
            weights[f"in_proj_{last}"] = torch.cat((q, k, v))
            weights[f"out_proj.{last}"] = out
    return weights


def _check_parts(old: nn.Module, again: nn.Module) -> None:
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


def _check_same(old: nn.Module, new: nn.Module, theirs: nn.Module) -> None:
    """Raise unless both compute the same: a hook or a forward of its own would show."""
    first = next(m for m in theirs.modules() if isinstance(m, nn.MultiheadAttention))
    like, modes = first.out_proj.weight, [(m, m.training) for m in old.modules()]
    x = torch.linspace(-1, 1, 6 * first.embed_dim, device=like.device)
    x = x.view(2, 3, -1).to(like.dtype)  # (B, T, D)
    outputs: list[Tensor] = []
    try:
        for module in (old.eval(), new.eval()):
            turned = module is theirs and not first.batch_first
            given = x.transpose(0, 1) if turned else x
            inputs = 2 if isinstance(theirs, WITH_MEMORY) else 1
            if isinstance(module, nn.MultiheadAttention):
                inputs = 3  # query, key, value
            # Gradients keep torch off its fast path, which takes every nn.GELU for the
            # exact one, tanh's too.
            with torch.enable_grad():
                output = module(*[given.clone().requires_grad_()] * inputs)
            output = output[0] if isinstance(output, tuple) else output
            outputs.append(output.transpose(0, 1) if turned else output)
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


def _ours(module: nn.Module) -> Any:
    """Make our module of the sizes of torch's; what is not of its kind is an error."""
    old: Any = module
    if isinstance(module, nn.MultiheadAttention):
        D, H, bias = old.embed_dim, old.num_heads, old.in_proj_bias is not None
        return MultiHeadAttention(D, H, bias=bias, dropout=old.dropout)
    if isinstance(module, LAYERS):
        return transformer_block(
            old.self_attn.embed_dim,
            old.self_attn.num_heads,
            old.linear1.out_features,
            cross_attention=isinstance(old, nn.TransformerDecoderLayer),
            dropout=old.dropout1.p,
            ff_dropout=old.dropout.p,
            activation=_activation(old.activation),
            norm_first=old.norm_first,
            eps=_eps(old.norm1),
            bias=old.linear1.bias is not None,
        )
    for kind, stack in STACKS.items():
        if isinstance(module, kind):
            blocks = [_ours(layer) for layer in old.layers]
            return stack(blocks, _norm(old.norm, LayerNorm))
    if isinstance(module, nn.Transformer):
        return EncoderDecoder(_ours(old.encoder), _ours(old.decoder))
    raise TypeError(f"module must be one of torch's kinds, not {type(old).__name__}")


def _norm(old: Any, kind: type[LayerNorm | nn.LayerNorm]) -> nn.Module | None:
    if old is None:
        return None
    eps = _eps(old)
    return kind(len(old.weight), eps, bias=old.bias is not None)


def _eps(norm: nn.Module) -> float:
    if not isinstance(norm, nn.LayerNorm | LayerNorm) or norm.weight is None:
        raise ValueError(f"norm ({norm}) must be LayerNorm, and have a weight")
    return norm.eps


def _activation(activation: Any) -> str:
    """Name an activation by what it computes."""
    x = torch.linspace(-3, 3, 7, device="cpu")
    for name, known in ACTIVATIONS.items():
        if torch.equal(activation(x.clone()), known(x)):
            return name
    name = getattr(activation, "__name__", repr(activation))
    raise ValueError(f"activation ({name}) must be relu or gelu")


def _theirs(module: nn.Module) -> Any:
    """Make torch's module of the sizes of ours; what it cannot have is an error."""
    old: Any = module
    if isinstance(module, MultiHeadAttention):
        names = ("sinks", "window", "scale", "softcap")
        own = [name for name in names if getattr(old, name) is not None]
        if old.head_dim * old.num_heads != old.d_model or list(old.children())[4:]:
            raise ValueError("module has parts, or a head_dim, that torch's has not")
        if own:
            raise ValueError(f"module has {', '.join(own)}, which torch's has not")
        parts = (old.q_proj, old.k_proj, old.v_proj, old.out_proj)
        bias = any(part.bias is not None for part in parts)
        D, H, dropout = old.d_model, old.num_heads, old.dropout
        return nn.MultiheadAttention(D, H, dropout, bias=bias, batch_first=True)
    if isinstance(module, Block):
        return _layer(module)
    for kind, stack in STACKS.items():
        if type(module) is stack:
            layers, norm = map(_layer, old.blocks), _norm(old.norm, nn.LayerNorm)
            # A nested tensor would leave zeros at padding, where ours have numbers.
            nested = {} if stack is Decoder else {"enable_nested_tensor": False}
            new = kind(_layer(old.blocks[0]), len(old.blocks), norm, **nested)
            new.layers = nn.ModuleList(layers)
            return new
    if isinstance(module, EncoderDecoder):
        both = {f"custom_{n}": _theirs(part) for n, part in old.named_children()}
        attention = both["custom_decoder"].layers[0].self_attn
        sizes = attention.embed_dim, attention.num_heads
        return nn.Transformer(*sizes, **both, batch_first=True)
    raise TypeError(f"module must be one of ours, not {type(old).__name__}")


def _layer(old: Any) -> nn.Module:
    attention, network = old.attention, old.feed_forward
    fits = isinstance(network, FeedForward) and old.placement in ("pre", "post")
    if not (fits and isinstance(attention, MultiHeadAttention)):
        raise ValueError("module has a part or a placement that torch's has not")
    if network.activation not in ACTIVATIONS:
        raise ValueError(f"activation ({network.activation!r}) must be relu or gelu")
    new = LAYERS[old.cross_attention is not None](
        attention.d_model,
        attention.num_heads,
        network.linear1.out_features,
        getattr(old.dropout, "p", 0.0),
        ACTIVATIONS[network.activation],
        _eps(old.attention_norm),
        batch_first=True,
        norm_first=old.placement == "pre",
        bias=network.linear1.bias is not None,
    )
    new.dropout.p = getattr(network.dropout, "p", 0.0)
    new.self_attn = _theirs(attention)
    if old.cross_attention is not None:
        new.multihead_attn = _theirs(old.cross_attention)
    return new
