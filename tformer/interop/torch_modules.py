"""From torch's own modules to ours, and back: the same numbers, from copied weights.

D d_model · H heads · G key/value heads · Dh head_dim
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
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
PROJECTIONS = ("q_proj", "k_proj", "v_proj")
# What torch calls the parts of our block; the last norm depends on cross-attention.
NAMES = (
    ("cross_attention_norm.", "norm2."),
    ("cross_attention.", "multihead_attn."),
    ("attention_norm.", "norm1."),
    ("attention.", "self_attn."),
    ("feed_forward.linear", "linear"),
    ("blocks.", "layers."),
)


def from_torch(module: nn.Module) -> Any:
    """Make our module from torch's: the same numbers, from a copy of its weights.

    Dtype, device, training mode, dropout and what is frozen stay as they are. Ours
    expects its inputs batch first, also where `module` does not. Masks differ too: see
    `attn_mask_from_torch` and `key_mask_from_torch`. Where a query may attend to
    nothing ours gives zeros and torch's, in most of its code paths, NaN.

    Args:
        module: `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`,
            `nn.TransformerEncoder`, `nn.TransformerDecoderLayer`,
            `nn.TransformerDecoder` or `nn.Transformer`.

    Returns:
        `MultiHeadAttention`, `Block`, `Encoder`, `Block`, `Decoder` or
        `EncoderDecoder`.

    Raises:
        TypeError: `module` is none of these.
        ValueError: it computes what ours do not: `kdim` or `vdim` other than
            `embed_dim`, `add_bias_kv`, `add_zero_attn`, an activation other than relu
            and gelu, several dropouts in a layer, or whatever a hook or a `forward` of
            its own makes of it.
    """
    with torch.device("meta"):
        ours = _made(_ours, module)
        _check_parts(module, _theirs_of(ours))
    state = {}
    for name, x in module.state_dict(keep_vars=True).items():
        if "in_proj_" in name:
            for part, third in zip(PROJECTIONS, x.chunk(3), strict=True):
                state[name.replace("in_proj_", f"{part}.")] = (third, x)
        else:
            state[name] = (x, x)
    names = {_theirs(name, ours): name for name, _ in ours.named_parameters()}
    return _filled(module, ours, {names[n]: x for n, x in state.items()})


def to_torch(module: nn.Module) -> Any:
    """Make torch's module from ours, with `batch_first=True`: the same numbers.

    torch has no grouped-query attention: each shared key/value head is copied to every
    head that reads it. The result is exact, but as large as attention without groups.

    Args:
        module: `MultiHeadAttention`, `Block`, `Encoder`, `Decoder` or `EncoderDecoder`.

    Returns:
        the torch module that `from_torch` would make it from.

    Raises:
        TypeError: `module` is none of these.
        ValueError: it computes what torch's does not, such as a window, a gate, RMSNorm
            or a `forward` of its own.
    """
    with torch.device("meta"):
        theirs = _made(_theirs_of, module)
    state = {}
    for name, part in module.named_modules():
        if isinstance(part, MultiHeadAttention):
            at = f"{name}." if name else ""
            projections = [getattr(part, each) for each in PROJECTIONS]
            state[f"{at}in_proj_weight"] = _joined(
                part, [p.weight for p in projections]
            )
            state[f"{at}out_proj.weight"] = (part.out_proj.weight,) * 2
            biases = [p.bias for p in (*projections, part.out_proj)]
            if any(bias is not None for bias in biases):  # torch knows all or none
                q, k, v, out = (
                    p.weight.detach().new_zeros(len(p.weight)) if b is None else b
                    for p, b in zip((*projections, part.out_proj), biases, strict=True)
                )
                state[f"{at}in_proj_bias"] = _joined(part, [q, k, v])
                state[f"{at}out_proj.bias"] = (out, out)
    for name, x in module.named_parameters():
        if not any(f".{each}." in f".{name}" for each in (*PROJECTIONS, "out_proj")):
            state[name] = (x, x)
    return _filled(module, theirs, {_theirs(n, module): x for n, x in state.items()})


def _made(make: Callable[[Any], Any], old: nn.Module) -> Any:
    try:
        return make(old)
    except AttributeError as error:  # of a part that is of another kind
        raise ValueError(f"module has a part of another kind: {error}") from error


def _check_parts(old: nn.Module, again: nn.Module) -> None:
    """Raise unless torch's module has the parts that the same sizes give it again."""
    parts, wanted_parts = (
        {n: x for n, x in m.named_modules() if not n.endswith("activation")}
        for m in (old, again)
    )
    for name, wanted in wanted_parts.items():
        part = parts.pop(name, None)
        same = isinstance(part, type(wanted)) and part.extra_repr() == (
            wanted.extra_repr()
        )
        if isinstance(wanted, nn.MultiheadAttention) and same:
            same = part.dropout == wanted.dropout  # which its repr does not say
        if not same:
            raise ValueError(f"{name or 'module'} ({part!r}) must be {wanted!r}")
    for name, part in parts.items():
        raise ValueError(f"{name} ({part!r}) is a part that torch's module has not")


def _joined(part: MultiHeadAttention, xs: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Lay what makes q, k, v one above the other: (3 · D, …); and what was first."""
    q, k, v = xs
    copies = part.num_heads // part.num_kv_heads
    each = [
        x.view(part.num_kv_heads, -1, *x.shape[1:])
        .repeat_interleave(copies, 0)
        .flatten(0, 1)
        for x in (k, v)
    ]
    return torch.cat((q, *each)), q


def _theirs(name: str, module: nn.Module) -> str:
    """Say what torch calls a parameter of this module of ours."""
    at, last, rest = name.rpartition("feed_forward_norm.")
    if last:  # the second norm of a layer, or after cross-attention the third
        block = module.get_submodule(at.removesuffix("."))
        return f"{at.replace('blocks.', 'layers.')}norm{2 + _crosses(block)}.{rest}"
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def _crosses(block: nn.Module) -> bool:
    return isinstance(block, Block) and block.cross_attention is not None


def _filled(old: nn.Module, new: nn.Module, state: Mapping[str, Any]) -> nn.Module:
    """Give the new module its weights, and hold it to the old one on some numbers."""
    weights = {name: nn.Parameter(x.detach().clone()) for name, (x, _) in state.items()}
    new.load_state_dict(weights, assign=True)
    for name, parameter in new.named_parameters():
        parameter.requires_grad_(state[name][1].requires_grad)
    new.train(old.training)
    weight = next(new.parameters())
    if not weight.is_meta:
        _check_same(old, new, weight)
    return new


def _check_same(old: nn.Module, new: nn.Module, like: Tensor) -> None:
    """Raise unless both compute the same: a hook or a forward of its own would show."""
    kinds = (nn.MultiheadAttention, MultiHeadAttention)
    attention = next(part for part in new.modules() if isinstance(part, kinds))
    width = attention.out_proj.out_features
    x = torch.linspace(-1, 1, 6 * width, device=like.device).view(2, 3, width)
    x = x.to(like.dtype)
    modes = [(m, m.training) for m in (*old.modules(), *new.modules())]
    # torch's fast path takes every nn.GELU for the exact one, tanh's too.
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            one, two = (_call(m.eval(), x) for m in (old, new))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, training in modes:
            module.training = training
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-3}.get(like.dtype, 0.1)
    if not torch.allclose(one, two, rtol=tolerance, atol=tolerance):
        raise ValueError(
            f"module ({type(old).__name__}) computes what its class does not, off by "
            f"{float((one - two).abs().max()):.2g}: a hook, or a forward of its own?"
        )


def _call(module: nn.Module, x: Tensor) -> Tensor:
    """Give a module x (B, T, D) for each of its inputs, in the order of its axes."""
    theirs = [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]
    if theirs and not theirs[0].batch_first:
        return _output(module, x.transpose(0, 1)).transpose(0, 1)
    return _output(module, x)


def _output(module: nn.Module, x: Tensor) -> Tensor:
    if isinstance(module, nn.MultiheadAttention):
        return module(x, x, x)[0]
    if isinstance(module, Decoder | nn.TransformerDecoder | nn.TransformerDecoderLayer):
        return module(x, x)
    if isinstance(module, EncoderDecoder | nn.Transformer) or _crosses(module):
        return module(x, x)
    return module(x)


def _ours(old: Any) -> Any:
    """Make our module of the sizes of torch's; what is not of its kind is an error."""
    if isinstance(old, nn.MultiheadAttention):
        for name, width in (("kdim", old.kdim), ("vdim", old.vdim)):
            if width != old.embed_dim:
                raise ValueError(
                    f"{name} ({width}) must be embed_dim ({old.embed_dim})"
                )
        if old.bias_k is not None or old.add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn must be False")
        bias = old.in_proj_bias is not None
        D, H, dropout = old.embed_dim, old.num_heads, old.dropout
        return MultiHeadAttention(D, H, bias=bias, dropout=dropout)
    if isinstance(old, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        return _block(old)
    for kind, stack in STACKS.items():
        if isinstance(old, kind):
            theirs: Any = old
            norm = None if theirs.norm is None else _norm(theirs.norm, LayerNorm)
            return stack([_block(layer) for layer in theirs.layers], norm)
    if isinstance(old, nn.Transformer):
        return EncoderDecoder(_ours(old.encoder), _ours(old.decoder))
    raise TypeError(f"module must be one of torch's kinds, not {type(old).__name__}")


def _block(old: Any) -> Block:
    attention = _ours(old.self_attn)
    dropouts = {old.dropout1.p, old.dropout2.p, old.self_attn.dropout}
    if len(dropouts) > 1:
        raise ValueError(f"dropout ({sorted(dropouts)}) must be one for the layer")
    block = transformer_block(
        attention.d_model,
        attention.num_heads,
        old.linear1.out_features,
        cross_attention=isinstance(old, nn.TransformerDecoderLayer),
        dropout=old.dropout1.p,
        ff_dropout=old.dropout.p,
        activation=_activation(old.activation),
        norm_first=old.norm_first,
        eps=_eps(old.norm1),
        bias=old.linear1.bias is not None,
    )
    return block


def _norm(old: Any, kind: Callable[..., nn.Module]) -> nn.Module:
    eps = _eps(old)
    return kind(len(old.weight), eps, bias=old.bias is not None)


def _eps(norm: Any) -> float:
    if not isinstance(norm, nn.LayerNorm | LayerNorm):
        raise ValueError(f"norm ({type(norm).__name__}) must be LayerNorm")
    if norm.weight is None:
        raise ValueError("norm has no weight (elementwise_affine=False)")
    return norm.eps


def _activation(activation: Any) -> str:
    if activation in (functional.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is functional.gelu:
        return "gelu"
    if isinstance(activation, nn.GELU):
        return "gelu" if activation.approximate == "none" else "gelu_tanh"
    if isinstance(activation, partial) and activation.func is functional.gelu:
        tanh = activation.keywords.get("approximate") == "tanh"
        return "gelu_tanh" if tanh else "gelu"
    name = getattr(activation, "__name__", repr(activation))
    raise ValueError(f"activation ({name}) must be relu or gelu")


def _theirs_of(old: Any) -> Any:
    """Make torch's module of the sizes of ours; what it cannot have is an error."""
    if isinstance(old, MultiHeadAttention):
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
    if isinstance(old, Block):
        return _layer(old)
    for kind, stack in STACKS.items():
        if type(old) is stack:
            ours: Any = old
            # A nested tensor would leave zeros at padding, where ours have numbers.
            nested = {} if stack is Decoder else {"enable_nested_tensor": False}
            new = kind(_layer(ours.blocks[0]), 1, **nested)
            new.layers = nn.ModuleList(_layer(block) for block in ours.blocks)
            new.num_layers = len(ours.blocks)
            new.norm = None if ours.norm is None else _norm(ours.norm, nn.LayerNorm)
            return new
    if isinstance(old, EncoderDecoder):
        encoder, decoder = _theirs_of(old.encoder), _theirs_of(old.decoder)
        attention = decoder.layers[0].self_attn
        return nn.Transformer(
            attention.embed_dim,
            attention.num_heads,
            custom_encoder=encoder,
            custom_decoder=decoder,
            batch_first=True,
        )
    raise TypeError(f"module must be one of ours, not {type(old).__name__}")


def _layer(old: Block) -> nn.Module:
    attention: Any = old.attention
    network: Any = old.feed_forward
    norm: Any = old.attention_norm
    fits = isinstance(network, FeedForward) and old.placement in ("pre", "post")
    if not (fits and isinstance(attention, MultiHeadAttention)):
        raise ValueError("module has a part or a placement that torch's has not")
    activations: dict[str, Any] = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": nn.GELU(approximate="tanh"),
    }
    if network.activation not in activations:
        raise ValueError(f"activation ({network.activation!r}) must be relu or gelu")
    kind = nn.TransformerDecoderLayer if _crosses(old) else nn.TransformerEncoderLayer
    new = kind(
        attention.d_model,
        attention.num_heads,
        network.linear1.out_features,
        getattr(old.dropout, "p", 0.0),
        activations[network.activation],
        _eps(norm),
        batch_first=True,
        norm_first=old.placement == "pre",
        bias=network.linear1.bias is not None,
    )
    new.dropout.p = getattr(network.dropout, "p", 0.0)
    for theirs, ours in (
        ("self_attn", attention),
        ("multihead_attn", old.cross_attention),
    ):
        if ours is not None:
            setattr(new, theirs, _theirs_of(ours))
    return new
