import ast
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tformer
import tformer.reference as reference
from tformer.reference import from_torch, record_weights
from tformer.reference.weights import numbered, only_weight, parts, weight_and_bias

B, T, S, D, H, F = 2, 5, 7, 12, 3, 11


def test_the_twin_does_without_torch():
    program = (
        "import sys, tformer.reference as r, numpy as np\n"
        "x = np.eye(3)[None, None]\n"
        "r.scaled_dot_product_attention(x, x, x, is_causal=True)\n"
        "r.SinusoidalPositionalEncoding(4)(np.ones((1, 2, 4)))\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_public_names():
    assert sorted(reference.__all__) == reference.__all__
    assert len({id(getattr(reference, name)) for name in reference.__all__}) == len(
        reference.__all__
    )
    twins = {"TransformerConfig"} ^ set(tformer.__all__) & set(dir(reference))
    assert {"MultiHeadAttention", "Transformer", "causal_mask"} <= twins
    assert {"attention_weights", "record_weights"} <= twins


def test_no_file_of_the_twin_names_torch():
    """Nor does one import a module of ours that does: see the test above."""
    for file in Path(reference.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in getattr(node, "names", [])]
            names.append(getattr(node, "module", None) or "")
            assert not any(name.split(".")[0] == "torch" for name in names), file


@pytest.mark.parametrize(
    "name", ["EncoderLayer", "DecoderLayer", "Residual", "LayerNorm", "TokenEmbedding"]
)
def test_what_is_not_given_is_as_in_the_original(name):
    of_twin = inspect.signature(getattr(reference, name)).parameters
    of_original = inspect.signature(getattr(tformer, name)).parameters
    shared = of_twin.keys() & of_original.keys()
    assert {"eps", "scale"} & shared
    for option in shared:
        assert of_twin[option].default == of_original[option].default


@pytest.mark.parametrize("name", ["Encoder", "Decoder"])
def test_a_stack_hands_its_eps_to_every_norm(new_parity, name):
    module = new_parity().module(getattr(tformer, name)(D, H, F, 2, final_norm=True))
    weights = {key: tensor.numpy() for key, tensor in module.state_dict().items()}
    for given, eps in (({}, 1e-5), ({"eps": 0.1}, 0.1)):
        twin = getattr(reference, name)(weights, H, **given)
        norms = [layer.feed_forward_residual.norm for layer in twin.layers]
        assert [norm.eps for norm in (*norms, twin.norm)] == [eps] * 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_dtype_is_kept(dtype):
    module = tformer.LayerNorm(7).to(dtype)
    assert str(from_torch(module).weight.dtype) == str(dtype).removeprefix("torch.")


def test_bfloat16_becomes_float32(new_parity):
    module = new_parity("bfloat16").module(tformer.LayerNorm(7))
    weight = from_torch(module).weight
    assert weight.dtype == np.float32
    np.testing.assert_array_equal(weight, module.weight.detach().float().numpy())


def test_weights_are_copied():
    module = tformer.LayerNorm(7)
    twin = from_torch(module)
    with torch.no_grad():
        module.weight.fill_(3.0)
    np.testing.assert_array_equal(twin.weight, np.ones(7))


def test_classes_are_known_by_name(new_parity):
    """A class pasted from a chapter is not in `tformer`; one made from ours is ours."""
    parity = new_parity()
    pasted = type("LayerNorm", (torch.nn.Module,), {})()
    pasted.weight, pasted.eps = torch.nn.Parameter(torch.ones(7)), 0.5
    assert from_torch(pasted).eps == 0.5
    made = type("MyAttention", (tformer.MultiHeadAttention,), {})
    module = parity.module(made(D, H))
    array, tensor = parity.numbers(B, T, D)
    parity.same(from_torch(module)(array), module(tensor))


def test_torchs_norm_and_linear(parity):
    array, tensor = parity.numbers(B, T, D)
    for module in (torch.nn.LayerNorm(D, 0.1), torch.nn.Linear(D, F)):
        parity.module(module)
        parity.same(from_torch(module)(array), module(tensor))


@pytest.mark.parametrize(
    ("module", "name"),
    [(torch.nn.Dropout(), "Dropout"), (torch.nn.Module(), "Module"), ("x", "str")],
)
def test_modules_without_twin(module, name):
    with pytest.raises(TypeError, match=rf"module must be one of .*, not {name}"):
        from_torch(module)


@pytest.mark.parametrize("norm_first", [False, True])
def test_torchs_own_stacks(parity, norm_first):
    pytest.importorskip("tformer.interop")
    options = {"dim_feedforward": F, "norm_first": norm_first, "activation": "gelu"}
    options |= {"batch_first": True, "dropout": 0.0, "layer_norm_eps": 0.1}
    encoder_layer = torch.nn.TransformerEncoderLayer(D, H, **options)
    decoder_layer = torch.nn.TransformerDecoderLayer(D, H, **options)
    final = torch.nn.LayerNorm(D, 0.2)
    encoder = torch.nn.TransformerEncoder(
        encoder_layer, 2, final, enable_nested_tensor=False
    )
    decoder = torch.nn.TransformerDecoder(decoder_layer, 3, final)
    whole = torch.nn.Transformer(
        D, H, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    )
    (x, x_tensor), (memory, memory_tensor) = (
        parity.numbers(B, length, D) for length in (T, S)
    )
    for module in (encoder_layer, encoder):
        parity.module(module)
        parity.same(from_torch(module)(x), module(x_tensor))
    for module in (decoder_layer, decoder):
        parity.module(module)
        parity.same(from_torch(module)(x, memory), module(x_tensor, memory_tensor))
    parity.module(whole)
    parity.same(from_torch(whole)(memory, x), whole(memory_tensor, x_tensor))


def test_torchs_own_heads(parity):
    pytest.importorskip("tformer.interop")
    module = torch.nn.MultiheadAttention(D, H, batch_first=True)
    parity.module(module)
    inputs = [parity.numbers(B, length, D) for length in (T, S, S)]
    arrays, tensors = zip(*inputs, strict=True)
    output, weights = module(*tensors, average_attn_weights=False)
    twin = from_torch(module)
    with record_weights(twin) as kept:
        parity.same(twin(*arrays), output)
    parity.same(kept[twin], weights)


def test_parts():
    a, b, c = np.ones(1), np.ones(2), np.ones(3)
    weights = {"norm.weight": a, "norm.bias": b, "layers.0.norm.bias": c}
    of = parts(weights, "norm", optional=("layers", "output"))
    assert of == {
        "norm": {"weight": a, "bias": b},
        "layers": {"0.norm.bias": c},
        "output": {},
    }
    assert numbered(of["layers"]) == [{"norm.bias": c}]
    assert weight_and_bias({"weight": b, "bias": b}, "D") == (b, b)
    assert weight_and_bias({"weight": b}, "D") == (b, None)
    assert only_weight({"weight": b}, "D") is b


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: parts({"norm.bias": np.ones(1)}, "norm", "output"),
            ValueError,
            "weights must be of norm, output; missing: output; unknown: none",
        ),
        (
            lambda: parts({"norm.bias": 0, "gate.weight": 0}, "norm"),
            ValueError,
            "weights must be of norm; missing: none; unknown: gate",
        ),
        (
            lambda: weight_and_bias({"bias": np.ones(2)}, "D"),
            ValueError,
            "weights must be of weight, bias; missing: weight",
        ),
        (
            lambda: weight_and_bias({"weight": np.ones(2)}, "O", "I"),
            ValueError,
            r"weight must be \(O, I\), not \(2,\)",
        ),
        (
            lambda: weight_and_bias(
                {"weight": np.ones((2, 3)), "bias": np.ones(3)}, *"OI"
            ),
            ValueError,
            r"bias must be \(2,\), not \(3,\)",
        ),
        (
            lambda: weight_and_bias({"weight": torch.ones(2)}, "D"),
            TypeError,
            "weight must be a NumPy array, not Tensor",
        ),
        (
            lambda: only_weight({"weight": np.ones(2), "bias": np.ones(2)}, "D"),
            ValueError,
            "unknown: bias",
        ),
    ],
)
def test_bad_weights(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_a_twin_may_say_itself_how_it_is_made(monkeypatch):
    class Doubler(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
            self.power = 3

    class Twin:
        def __init__(self, weights, power):
            self.weights, self.power = weights, power

        @staticmethod
        def from_torch(module, weights):
            return Twin(weights, module.power)

    monkeypatch.setattr(tformer.reference, "Doubler", Twin, raising=False)
    twin = tformer.reference.from_torch(Doubler())
    assert twin.power == 3
    np.testing.assert_array_equal(twin.weights["weight"], [2.0, 3.0])
