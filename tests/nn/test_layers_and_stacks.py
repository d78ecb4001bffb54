"""What holds for every layer and stack: copies, dropout, autocast, compilers."""

import copy
import pickle
from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

from tformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    MultiHeadAttention,
    causal_mask,
    record_weights,
)

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13

KINDS = {
    "attention": lambda **options: MultiHeadAttention(D, H, dropout=options["dropout"]),
    "encoder layer": lambda **options: EncoderLayer(D, H, F, **options),
    "encoder": lambda **options: Encoder(D, H, F, 2, **options),
    "decoder layer": lambda **options: DecoderLayer(D, H, F, **options),
    "decoder": lambda **options: Decoder(D, H, F, 2, **options),
    "both": lambda **options: EncoderDecoder(
        Encoder(D, H, F, 1, **options), Decoder(D, H, F, 2, **options)
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make(kind, randomised):
    def make(*, dropout=0.0, **options):
        return randomised(KINDS[kind](dropout=dropout, **options))

    return make


@pytest.fixture
def inputs(kind):
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    if kind == "both":
        return memory, x
    return (x, memory) if kind.startswith("decoder") else (x,)


@pytest.fixture
def causal(kind):
    """The options that hide the future: an encoder has no flag for it."""
    if kind.startswith("encoder"):
        return {"attn_mask": causal_mask(T)}
    return {"is_causal": True}


def test_copies_compute_the_same(make, inputs):
    module, other = make(), make()
    assert not torch.allclose(other(*inputs), module(*inputs))
    other.load_state_dict(module.state_dict())
    copies = (other, copy.deepcopy(module), pickle.loads(pickle.dumps(module)))
    for twin in copies:
        assert torch.equal(twin(*inputs), module(*inputs))
        parameters = zip(twin.parameters(), module.parameters(), strict=True)
        assert all(a is not b for a, b in parameters)


def test_evaluation_is_deterministic_and_training_is_not(make, inputs):
    module = make(dropout=0.4)
    assert not torch.equal(module(*inputs), module(*inputs))
    module.eval()
    output = module(*inputs)
    assert torch.equal(module(*inputs), output)
    plain = make()
    plain.load_state_dict(module.state_dict())
    assert torch.equal(plain(*inputs), output)


@pytest.mark.parametrize("recording", [nullcontext, record_weights])
def test_autocast(make, inputs, causal, recording):
    module = make()
    with torch.autocast("cpu", torch.bfloat16), recording(module):
        output = module(*inputs, **causal)
    wanted = module(*inputs, **causal)
    assert not torch.equal(output, wanted)
    assert_close(output.float(), wanted, atol=0.1, rtol=0.1)
    output.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in module.parameters())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_precisions(make, inputs, causal, dtype):
    module = make()
    wanted = module(*inputs, **causal)
    output = module.to(dtype)(*(x.to(dtype) for x in inputs), **causal)
    assert output.dtype == dtype
    assert_close(output.float(), wanted, atol=0.1, rtol=0.1)


def test_every_parameter_learns(make, inputs):
    module = make(norm_first=True)
    output = module(*inputs)
    (output * torch.randn_like(output)).sum().backward()
    for name, parameter in module.named_parameters():
        # A bias of the keys adds the same to every score of a query.
        if not name.endswith("k_proj.bias"):
            assert parameter.grad.abs().max() > 1e-6, name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["attention", "encoder layer", "decoder layer"], indirect=True
)
def test_the_compiler_sees_one_graph_of_any_length(make, inputs, kind):
    module = make()
    options = {} if kind == "encoder layer" else {"is_causal": True}
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for shorter in (0, 1, 2):
        cut = [x[:, shorter:] for x in inputs]
        assert_close(compiled(*cut, **options), module(*cut, **options))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["encoder layer", "decoder"], indirect=True)
def test_export_with_any_length(make, inputs):
    module = make().eval()
    dims = [torch.export.Dim(name, min=2, max=4096) for name in ("length", "source")]
    program = torch.export.export(
        module, inputs, dynamic_shapes=[{1: dim} for dim in dims[: len(inputs)]]
    )
    cut = [x[:, 2:] for x in inputs]
    assert_close(program.module()(*cut), module(*cut))
