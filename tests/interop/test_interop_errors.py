"""What cannot be converted, with the message that names option and value."""

import pytest
import torch
import torch.nn.functional as functional
from torch import nn

from tformer import (
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
)
from tformer.interop import from_torch, to_torch
from tformer.runs.model import ablate

D, H, F = 12, 3, 7

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def layer(**options):
    return nn.TransformerEncoderLayer(D, H, F, **options)


def changed(name, part, kind=nn.TransformerEncoderLayer):
    module = kind(D, H, F)
    setattr(module, name, part)
    return module


class OtherLayer(nn.TransformerEncoderLayer):
    def forward(self, src):
        return src


class OtherNorm(nn.LayerNorm):
    def forward(self, x):
        return x


class SameLayer(nn.TransformerEncoderLayer):
    """A subclass that computes the same."""


OWN = "without a forward of its own"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.MultiheadAttention(D, H, kdim=5),
            "kdim (5) must be embed_dim (12)",
        ),
        (
            lambda: nn.MultiheadAttention(D, H, vdim=9),
            "vdim (9) must be embed_dim (12)",
        ),
        (
            lambda: nn.MultiheadAttention(D, H, add_bias_kv=True),
            "add_bias_kv (True) must be False: ours adds no key",
        ),
        (
            lambda: nn.MultiheadAttention(D, H, add_zero_attn=True),
            "add_zero_attn (True) must be False: ours adds no key",
        ),
        (
            lambda: nn.MultiheadAttention(D, H, dropout=1.0),
            "dropout (1.0) must be in [0, 1)",
        ),
        (
            lambda: layer(activation=functional.silu),
            "activation (silu) must be relu or gelu",
        ),
        (
            lambda: changed("norm1", nn.RMSNorm(D)),
            f"norm1 (RMSNorm) must be LayerNorm, {OWN}",
        ),
        (
            lambda: changed("norm3", nn.Identity(), nn.TransformerDecoderLayer),
            f"norm3 (Identity) must be LayerNorm, {OWN}",
        ),
        (
            lambda: changed("norm2", OtherNorm(D)),
            f"norm2 (OtherNorm) must be LayerNorm, {OWN}",
        ),
        (
            lambda: changed("norm2", nn.LayerNorm(D, elementwise_affine=False)),
            "norm2.elementwise_affine (False) must be True",
        ),
        (
            lambda: changed("norm2", nn.LayerNorm((5, D))),
            "norm2.normalized_shape (5, 12) must be one width",
        ),
        (
            lambda: changed("linear1", nn.Identity()),
            f"linear1 (Identity) must be Linear, {OWN}",
        ),
        (
            lambda: changed("linear2", nn.Bilinear(2, 2, 2)),
            f"linear2 (Bilinear) must be Linear, {OWN}",
        ),
        (
            lambda: changed("self_attn", nn.Identity()),
            f"self_attn (Identity) must be MultiheadAttention, {OWN}",
        ),
        (
            lambda: changed(
                "multihead_attn", nn.Identity(), nn.TransformerDecoderLayer
            ),
            f"multihead_attn (Identity) must be MultiheadAttention, {OWN}",
        ),
        (
            lambda: changed("dropout", nn.AlphaDropout()),
            f"dropout (AlphaDropout) must be Dropout, {OWN}",
        ),
        (
            lambda: changed("dropout1", nn.Dropout(1.0)),
            "dropout1 (1.0) must be in [0, 1)",
        ),
        (
            lambda: OtherLayer(D, H, F),
            f"module (OtherLayer) must be TransformerEncoderLayer, {OWN}",
        ),
        (
            lambda: nn.TransformerEncoder(OtherLayer(D, H, F), 2),
            f"layers.0 (OtherLayer) must be TransformerEncoderLayer, {OWN}",
        ),
        (
            lambda: nn.TransformerDecoder(layer(), 1),
            "layers.0 (TransformerEncoderLayer) must be TransformerDecoderLayer, "
            f"{OWN}",
        ),
        (
            lambda: nn.TransformerEncoder(layer(), 1, nn.RMSNorm(D)),
            f"norm (RMSNorm) must be LayerNorm, {OWN}",
        ),
        (
            lambda: nn.TransformerEncoder(layer(), 0),
            "num_layers (0) must be at least 1",
        ),
        (
            lambda: nn.Transformer(D, H, 1, 1, F, custom_encoder=nn.Identity()),
            f"custom_encoder (Identity) must be TransformerEncoder, {OWN}",
        ),
        (
            lambda: nn.Transformer(D, H, 1, 1, F, custom_decoder=nn.Identity()),
            f"custom_decoder (Identity) must be TransformerDecoder, {OWN}",
        ),
    ],
)
def test_from_torch(raises, make, message):
    with raises(ValueError, message):
        from_torch(make())


def test_a_subclass_that_computes_the_same_is_taken():
    theirs = SameLayer(D, H, F, batch_first=True).eval()
    x = torch.randn(2, 5, D)
    torch.testing.assert_close(from_torch(theirs)(x), theirs(x))


@pytest.mark.parametrize("module", [nn.Linear(2, 2), EncoderLayer(D, H, F), None])
def test_from_torch_of_something_else(raises, module):
    message = (
        "module must be one of MultiheadAttention, TransformerEncoderLayer, "
        "TransformerEncoder, TransformerDecoderLayer, TransformerDecoder, Transformer, "
        f"not {type(module).__name__}"
    )
    with raises(TypeError, message):
        from_torch(module)


class OtherAttention(MultiHeadAttention):
    def forward(self, query):
        return query


def mixed_orders():
    ours = EncoderLayer(D, H, F)
    ours.self_attn_residual.norm_first = True
    return ours


def other_encoder():
    ours = Encoder(D, H, F, 2)
    ours.layers[1] = nn.Identity()
    return ours


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: OtherAttention(D, H),
            f"module (OtherAttention) must be MultiHeadAttention, {OWN}",
        ),
        (mixed_orders, "norm_first (True and False) must be one for the whole layer"),
        (other_encoder, f"layers.1 (Identity) must be EncoderLayer, {OWN}"),
        (
            lambda: EncoderDecoder(nn.Identity(), nn.Identity()),
            f"encoder (Identity) must be Encoder, {OWN}",
        ),
    ],
)
def test_to_torch(raises, make, message):
    with raises(ValueError, message):
        to_torch(make())


def test_to_torch_of_something_else(raises):
    message = (
        "module must be one of MultiHeadAttention, EncoderLayer, Encoder, "
        "DecoderLayer, Decoder, EncoderDecoder, not Transformer"
    )
    with raises(TypeError, message):
        to_torch(Transformer(TransformerConfig.tiny(vocab_size=3)))


def my_hook(*_):
    """Does nothing, but a copy would not do it."""


class MyHook:
    def __call__(self, *_):
        pass


HOOKS = {
    "forward hook": lambda part, hook: part.register_forward_hook(hook),
    "forward pre-hook": lambda part, hook: part.register_forward_pre_hook(hook),
    "backward hook": lambda part, hook: part.register_full_backward_hook(hook),
    "backward pre-hook": lambda part, hook: part.register_full_backward_pre_hook(hook),
}


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize(
    ("make", "name", "convert"),
    [
        (lambda: MultiHeadAttention(D, H), "q_proj", to_torch),
        (lambda: Encoder(D, H, F, 2), "layers.1.feed_forward", to_torch),
        (lambda: Encoder(D, H, F, 2), "layers", to_torch),
        (lambda: nn.TransformerDecoderLayer(D, H, F), "multihead_attn", from_torch),
        (lambda: nn.MultiheadAttention(D, H), "", from_torch),
    ],
)
def test_a_hook_is_not_lost(raises, make, name, convert, kind):
    module = make()
    handle = HOOKS[kind](module.get_submodule(name), my_hook)
    where = f"module.{name}" if name else "module"
    with raises(
        ValueError, f"{where} has a {kind} (my_hook), which would be lost: remove it"
    ):
        convert(module)
    handle.remove()
    convert(module)


def test_a_hook_without_a_name_is_named_by_its_class(raises):
    module = MultiHeadAttention(D, H)
    module.register_forward_hook(MyHook())
    with raises(
        ValueError, "module has a forward hook (MyHook), which would be lost: remove it"
    ):
        to_torch(module)


def test_what_an_ablated_model_leaves_out_is_not_lost():
    """Its hooks take a part out: without them it would compute something else."""
    model = Transformer(TransformerConfig.tiny(vocab_size=3))
    ablate(model, "scale")
    attention = next(m for m in model.modules() if isinstance(m, MultiHeadAttention))
    with pytest.raises(ValueError, match=r"module\.q_proj has a forward hook"):
        to_torch(attention)


@pytest.mark.parametrize("name", ["", "layers.0.linear1"])
def test_a_forward_of_one_object_is_not_lost(raises, name):
    module = nn.TransformerEncoder(layer(), 1)
    part = module.get_submodule(name)
    part.forward = lambda x: x
    where = f"module.{name}" if name else "module"
    kind = type(part).__name__
    with raises(ValueError, f"{where} ({kind}) must have no forward of its own"):
        from_torch(module)
