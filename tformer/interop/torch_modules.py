"""From torch's own modules to ours, and back: the same numbers, from copied weights."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.interop.torch_checks import check_parts, check_same
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.nn.block import Block
from tformer.nn.decoder import Decoder
from tformer.nn.encoder import Encoder, transformer_block
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm

# Which torch has too, or a test of weights sees.
SIZES = "num_kv_heads", "head_dim", "out_bias"
STACKS = {nn.TransformerEncoder: Encoder, nn.TransformerDecoder: Decoder}
LAYERS = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
WITH_WEIGHTS = nn.MultiheadAttention, nn.LayerNorm, nn.Linear
PARTS = {  # of a layer of torch's, and of a block
    "self_attn": "attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward.linear1",
    "linear2": "feed_forward.linear2",
    "norm1": "attention_norm",
    "norm2": "cross_attention_norm",
    "norm3": "feed_forward_norm",
}
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
    back = make is _theirs
    try:
        with torch.device("meta"):
            new = make(old)
            if not back:
                check_parts(old, _theirs(new))
        ours, theirs = (old, new) if back else (new, old)
        with torch.enable_grad():  # what is cut or copied is frozen where it was
            for pair in _pairs(ours, theirs):
                source, target = pair if back else pair[::-1]
                for name, x in _weights(source).items():
                    owner, _, last = name.rpartition(".")
                    weight = nn.Parameter(x.detach().clone(), x.requires_grad)
                    setattr(target.get_submodule(owner), last, weight)
    except AttributeError as error:
        raise ValueError(f"module has a part of another kind: {error}") from error
    if not next(new.parameters()).is_meta:
        check_same(old, new, theirs)
    return new.train(old.training)


def _pairs(ours: nn.Module, theirs: nn.Module) -> Iterator[tuple[Any, Any]]:
    """Pair the parts of ours and of torch's that hold the same weights."""
    for name, part in theirs.named_modules():
        place, _, last = name.rpartition(".")
        if last == "norm2" and not hasattr(theirs.get_submodule(place), "norm3"):
            last = "norm3"  # there is no memory, whose norm is the second
        if isinstance(part, WITH_WEIGHTS) and last != "out_proj":
            path = place.replace("layers", "blocks"), PARTS.get(last, last)
            yield ours.get_submodule(".".join(filter(None, path))), part


def _weights(part: Any) -> dict[str, Tensor]:
    """Name a part's weights as the other side does: only attention's are others."""
    weights = dict(part.named_parameters())
    lasts = {name.rpartition(".")[2].removeprefix("in_proj_") for name in weights}
    if isinstance(part, nn.MultiheadAttention):
        for last in lasts:
            names = [f"{each}_proj.{last}" for each in "qkv"]
            weights |= zip(names, weights.pop(f"in_proj_{last}").chunk(3), strict=True)
    elif isinstance(part, MultiHeadAttention):
        groups, copies = part.num_kv_heads, part.num_heads // part.num_kv_heads
        weights = {}
        for last in lasts:  # torch has all biases, or none
            linears: Any = part.q_proj, part.k_proj, part.v_proj, part.out_proj
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


def _ours(module: nn.Module) -> Any:
    """Make our module of the sizes of torch's; what is not of its kind is an error."""
    old: Any = module
    if isinstance(old, nn.MultiheadAttention):
        D, H, bias = old.embed_dim, old.num_heads, old.in_proj_bias is not None
        return MultiHeadAttention(D, H, bias=bias, dropout=old.dropout)
    if isinstance(old, LAYERS):
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
            return stack(map(_ours, old.layers), _norm(old.norm, LayerNorm))
    if isinstance(old, nn.Transformer):
        return EncoderDecoder(_ours(old.encoder), _ours(old.decoder))
    raise TypeError(f"module must be one of torch's kinds, not {type(old).__name__}")


def _theirs(module: nn.Module) -> Any:
    """Make torch's module of the sizes of ours; what it cannot have is an error."""
    old: Any = module
    if isinstance(module, MultiHeadAttention):
        given = signature(MultiHeadAttention).parameters.values()
        parts = [p.name for p in given if p.default is None and p.name not in SIZES]
        own = [name for name in parts if getattr(old, name) is not None]
        own += [n for n in ("k_eq_v", "shared_kv") if getattr(old, n, False)]
        own += ["head_dim"] * (old.head_dim * old.num_heads != old.d_model)
        if own:
            raise ValueError(f"module has {', '.join(own)}, which torch's has not")
        bias = any(name.endswith("bias") for name, _ in old.named_parameters())
        D, H, dropout = old.d_model, old.num_heads, old.dropout
        return nn.MultiheadAttention(D, H, dropout, bias=bias, batch_first=True)
    if isinstance(module, Block):
        return _layer(old)
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
    fits = fits and old.residual_scale == 1
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
