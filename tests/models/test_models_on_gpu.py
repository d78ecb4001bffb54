"""Every module and model on the GPU: the processor's numbers, and no waiting.

Equality is asked of each machine, on its GPU if it has one; the rest on a GPU only.
"""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from brute_force import WAYS, tiny_gpt, tiny_transformer
from every_module import LANGUAGE_MODELS, MODULES, ids, tensors
from gpu import DEVICE, moved, no_waiting, on_gpu
from tformer import label_smoothed_cross_entropy
from tformer.nn import ALiBi, Experts, Router

everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
# Each expert is called with its tokens, whose number the host needs; the slopes of
# ALiBi, which may be set, lie on the processor.
WAITS = {Experts, ALiBi}


def first(output):
    found = tensors(output)
    return found if isinstance(found, torch.Tensor) else found[0]


@everywhere
def test_a_module_computes_what_the_processor_does(kind):
    make, draw = MODULES[kind]
    module, inputs = make().eval().double(), draw(2, 5)
    wide = [moved(x, torch.float64, "cpu") for x in inputs]
    there = deepcopy(module).to(DEVICE)
    found = first(there(*(moved(x, torch.float64) for x in inputs)))
    assert_close(found.cpu(), first(module(*wide)), atol=1e-9, rtol=1e-9)
    if kind is not Router:  # which may choose others
        with torch.autocast(DEVICE, torch.bfloat16):
            half = first(there.float()(*(moved(x, torch.float32) for x in inputs)))
        assert half.isfinite().all()


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_and_its_gradient(name):
    model, (text,) = LANGUAGE_MODELS[name]().double(), ids(2, 9)
    there = deepcopy(model).to(DEVICE)
    losses = []
    for one, tokens in ((model, text), (there, text.to(DEVICE))):
        logits = one(tokens[:, :-1])
        losses.append(label_smoothed_cross_entropy(logits, tokens[:, 1:]))
        losses[-1].backward()
    assert_close(losses[1].cpu(), losses[0].detach(), check_dtype=False)
    for ours, theirs in zip(there.parameters(), model.parameters(), strict=True):
        if theirs.grad is not None:
            assert_close(ours.grad.cpu(), theirs.grad, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("way", ["greedy", "beam"])
@pytest.mark.parametrize("make", [tiny_gpt, tiny_transformer])
def test_it_writes_what_the_processor_writes(make, way):
    for seed in range(5):
        model = make(seed).double()
        given, start = torch.randint(1, 4, (3, 2)), {}
        if make is tiny_transformer:
            start = {"bos_id": 1}
        here = WAYS[way](model, given, max_len=5, **start)
        there = WAYS[way](model.to(DEVICE), given.to(DEVICE), max_len=5, **start)
        assert torch.equal(there.cpu(), here)


@on_gpu
@everywhere
def test_a_module_waits_for_nothing(kind):
    """A GPU that the host waits for stands still until the next call reaches it."""
    make, draw = MODULES[kind]
    module, inputs = make().eval().to(DEVICE), [moved(x) for x in draw(2, 5)]
    first(module(*inputs))  # tables are made, and moved, in the first call
    with no_waiting():
        if kind in WAITS:
            with pytest.raises(RuntimeError, match="synchronizing"):
                module(*inputs)
        else:
            module(*inputs)


@on_gpu
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_step_of_training_waits_for_nothing(name):
    model, (text,) = LANGUAGE_MODELS[name]().to(DEVICE), map(moved, ids(2, 9))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = model(text[:, :-1])
            loss = label_smoothed_cross_entropy(logits, text[:, 1:], pad_id=0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    with no_waiting():
        if name in ("experts", "ALiBi"):
            with pytest.raises(RuntimeError, match="synchronizing"):
                step()
        else:
            step()


@on_gpu
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_compiled_it_computes_the_same(name):
    model, (text,) = LANGUAGE_MODELS[name]().to(DEVICE).eval(), map(moved, ids(2, 9))
    with torch.no_grad():
        assert_close(torch.compile(model)(text), model(text), atol=1e-4, rtol=1e-4)
