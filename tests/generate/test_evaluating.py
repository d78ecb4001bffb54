"""A model that is asked stands in `eval()`, whoever asks, and goes back afterwards."""

import threading

import pytest
import torch

from tformer.generate.evaluating import evaluating
from tformer.models.families import custom


@pytest.fixture
def model():
    model = custom.build({"dropout": 0.5})
    model.blocks[0].eval()
    return model


def modes(model):
    return [module.training for module in model.modules()]


def test_modes_come_back_after_an_error_too(model):
    before = modes(model)
    assert len(set(before)) == 2

    def ask_and_fail():
        with evaluating(model):
            assert not any(modes(model))
            with evaluating(model):
                pass
            assert not any(modes(model))
            raise KeyError

    with pytest.raises(KeyError):
        ask_and_fail()
    assert modes(model) == before


def test_a_second_thread_keeps_the_model_in_eval(model):
    before = modes(model)
    first_left, second_in = threading.Event(), threading.Event()
    seen = []

    def second():
        with evaluating(model):
            second_in.set()
            first_left.wait(10)
            seen.append(any(modes(model)))

    thread = threading.Thread(target=second)
    with evaluating(model):
        thread.start()
        assert second_in.wait(10)
    first_left.set()
    thread.join()
    assert seen == [False]
    assert modes(model) == before


def test_a_model_and_what_torch_compile_makes_of_it_are_one(model):
    compiled = torch.compile(model, backend="eager")
    first, second = evaluating(model), evaluating(compiled)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not any(module.training for module in model.modules())
    second.__exit__(None, None, None)
    assert model.training
