"""No module needs float64 on a device, as MPS has none."""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tformer import (
    BERT,
    GPT,
    BERTConfig,
    CausalLM,
    CausalLMConfig,
    GPTConfig,
    Parts,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
)

V = 11
SMALL = {"vocab_size": V, "d_model": 16, "num_heads": 4, "num_layers": 1}


class No64(TorchDispatchMode):
    """Let the device "meta" stand for one without float64."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for x in output if isinstance(output, tuple | list) else [output]:
            if isinstance(x, torch.Tensor) and x.device.type == "meta":
                assert x.dtype != torch.float64, f"{function} made a float64"
        return output


def causal(positions):
    return CausalLM(CausalLMConfig.tiny(**SMALL, parts=Parts(positions=positions)))


def ids():
    return (torch.ones(2, 5, dtype=torch.int64),)


MODELS = {
    "sinusoids": (
        lambda: SinusoidalPositionalEncoding(16),
        lambda: [torch.ones(2, 5, 16)],
    ),
    "longer than the table": (
        lambda: SinusoidalPositionalEncoding(16, max_len=3),
        lambda: [torch.ones(2, 5, 16)],
    ),
    "GPT": (lambda: GPT(GPTConfig.tiny(**SMALL)), ids),
    "BERT": (lambda: BERT(BERTConfig.tiny(**SMALL)), ids),
    "Transformer": (
        lambda: Transformer(TransformerConfig.tiny(vocab_size=V)),
        lambda: ids() * 2,
    ),
    **{
        f"CausalLM, {positions}": (partial(causal, positions), ids)
        for positions in ("rotary", "learned", "sinusoidal", "alibi", "t5", "none")
    },
}


@pytest.mark.parametrize("begins_there", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_no_float64_on_a_device_that_may_lack_it(name, begins_there):
    make, draw = MODELS[name]
    with No64():
        with torch.device("meta" if begins_there else "cpu"):
            module = make()
        module = module.to("meta")
        with torch.device("meta"):
            output = module(*draw())
        if output.requires_grad:
            output.square().sum().backward()
    assert output.device.type == "meta"
    assert all(x.device.type == "meta" for x in module.buffers())


def test_the_stand_in_finds_a_float64():
    with No64(), pytest.raises(AssertionError, match="made a float64"):
        torch.arange(3, device="meta", dtype=torch.float64)
