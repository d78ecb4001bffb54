"""Families with experts and linear attention: what is theirs alone.

What holds of every family is in test_parity_whole.
"""

import math

import pytest
import torch

from double_everywhere import DoubleEverywhere
from published_sizes import COUNTS, EACH
from tformer.interop import from_huggingface
from tformer.models.families import family_of
from theirs import V, equal, make
from theirs_sparse import MODELS

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

B, T = 2, 11


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


@pytest.mark.parametrize("name", MODELS)
def test_experts_in_one_tensor(name, tmp_path):
    """A file may hold the tensors of a model in memory, by their names there."""
    theirs, ids = make(name), torch.randint(V, (B, T))
    theirs.save_pretrained(tmp_path)
    [file] = tmp_path.glob("*.safetensors")
    held = {n: x.contiguous().clone() for n, x in theirs.state_dict().items()}
    safetensors.save_file(held, file)
    equal(from_huggingface(tmp_path)(ids), theirs(ids).logits)


@pytest.mark.parametrize("kind", COUNTS)
def test_what_a_config_leaves_out_is_as_theirs(kind):
    theirs = transformers.AutoConfig.for_model(kind).to_dict()
    with torch.device("meta"):
        # Half of GLM's head, as it is by default, would be 21: an odd number.
        small = {"num_hidden_layers": 4, "vocab_size": 3, "head_dim": 128}
        ours = family_of({"model_type": kind}).build(small).config
    known = family_of({"model_type": kind}).DEFAULTS
    told = {word: x for word, x in known.items() if x is not None and word in theirs}
    for word, value in told.items():
        if word not in small and word != "sliding_window":
            assert value == theirs[word], word
    rope = {**(ours["rope_parameters"] or {})}
    rope.setdefault("rope_theta", known["rope_theta"])
    rope.setdefault("rope_type", "default")
    if (part := known["partial_rotary_factor"]) != 1:
        rope["partial_rotary_factor"] = part
    assert rope == theirs.get("rope_parameters", rope)  # of Kimi nothing is rotated


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_published_sizes_have_as_many_parameters_as_their_class(kind, name):
    config = transformers.AutoConfig.for_model(
        kind, **family_of({"model_type": kind}).SIZES[name]
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    count = sum(math.prod(x.shape) for x in model.state_dict().values())
    assert count == COUNTS[kind][name]
