"""Saving: what could not be loaded again is refused, and nothing is replaced by it."""

import pytest
import torch
from torch import nn

from checkpoint_files import make_model, same
from small_models import SIZES, small_gpt
from tformer import CausalLM, load_checkpoint, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary

V, D = SIZES["vocab_size"], SIZES["d_model"]
HEADS = "blocks.0.attention"


class Marked(torch.Tensor):
    """A tensor of another kind, of which safetensors would save only the numbers."""


class Subclass(CausalLM):
    """Whatever it does otherwise, no config says it."""


def weight(x):
    def change(model):
        model.embedding.weight = nn.Parameter(x, requires_grad=False)

    return change


def parametrize(model):
    nn.utils.parametrizations.weight_norm(model.blocks[0].attention.q_proj)


def other_class(model):
    model.__class__ = Subclass


def hook(model):
    model.blocks[1].feed_forward.register_forward_hook(lambda _, __, out: 1.1 * out)


def one_block_twice(model):
    model.blocks[1] = model.blocks[0]


def attribute(path, value):
    """Make a function that gives a part another attribute."""
    part, _, name = path.rpartition(".")
    return lambda model: setattr(model.get_submodule(part), name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (parametrize, "could not be loaded again: .*parametrizations"),
        (other_class, "it is another class than tformer's CausalLM"),
        (weight(torch.zeros(V + 1, D)), r"size mismatch for embedding\.weight"),
        (weight(torch.zeros(V, D, device="meta")), "on meta, which cannot be saved"),
        (weight(torch.zeros(V, D).as_subclass(Marked)), "weight is a Marked of"),
        (hook, "would be another once loaded: off by"),
        (one_block_twice, "weights that its config keeps apart are one here"),
        (attribute("pad_id", 3), "pad_id of CausalLM is 3, and its config"),
        (attribute(f"{HEADS}.window", 9), "window of MultiHeadAttention is 9"),
        (attribute("config", {}), "was built without a config"),
    ],
)
def test_what_could_not_be_loaded_again_is_refused_before_all_else(
    tmp_path, change, message
):
    model = small_gpt()
    save_checkpoint(tmp_path, model)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    model.reset_parameters(1.0)  # so that each part counts
    change(model)
    for place in (tmp_path, tmp_path / "new"):
        with pytest.raises(ValueError, match=rf"(?s){message}"):
            save_checkpoint(place, model)
    assert before == {file: file.read_bytes() for file in tmp_path.iterdir()}
    load_checkpoint(tmp_path)


def test_a_compiled_model_is_saved_as_itself_and_not_compiled_for_it(tmp_path):
    def backend(*_):
        raise AssertionError("the compiler was asked")

    model, in_place = small_gpt(), small_gpt()
    in_place.compile(backend=backend)
    for each in (torch.compile(model, backend=backend), in_place):
        save_checkpoint(tmp_path, each)
        loaded = load_checkpoint(tmp_path).model
        assert same(loaded, in_place if each is in_place else model)


@pytest.mark.parametrize("text", ['{"my": "settings"}', "no JSON", "[]"])
def test_the_config_of_others_is_not_replaced(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FileExistsError, match=r"config\.json is no checkpoint's"):
        save_checkpoint(tmp_path, small_gpt())
    assert [file.read_text() for file in tmp_path.iterdir()] == [text]


class LowerCase(CharacterVocabulary):
    """Comes back as another, which does not do this."""

    def encode(self, text, **options):
        return super().encode(text.lower(), **options)


@pytest.mark.parametrize(
    "given",
    [
        {"vocabulary": LowerCase("abc")},
        {"vocabulary": CharacterVocabulary("a\ud800")},
        {"facts": {"odd": object()}},
        {"facts": {"sha256": "mine"}},
    ],
)
def test_what_could_not_be_read_again_replaces_nothing(tmp_path, given):
    save_checkpoint(tmp_path, make_model(0), vocabulary=CharacterVocabulary("ab"))
    with pytest.raises((TypeError, ValueError)):
        save_checkpoint(tmp_path, make_model(1), **given)
    loaded = load_checkpoint(tmp_path)
    assert same(loaded.model, make_model(0))
    assert loaded.vocabulary.characters == "ab"
    assert len(list(tmp_path.iterdir())) == 2
