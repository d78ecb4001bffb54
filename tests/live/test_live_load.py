"""A model that cannot be had is told in a sentence, and what is right is loaded."""

import hashlib
import json
from importlib.resources import files

import pytest
import torch
from safetensors.torch import save

LOAD = """async () => {
  const { Transformer } = await import('/live/engine/transformer.js');
  try {
    const model = await Transformer.load('/live/models/dates-as-typed');
    return ['loaded', model.config.vocabSize];
  } catch (error) {
    return [error.name, error.message];
  }
}"""
FOLDER = files("tformer.pretrained").joinpath("dates-as-typed")
WEIGHTS = FOLDER.joinpath("model.safetensors").read_bytes()
CONFIG = json.loads(FOLDER.joinpath("config.json").read_text("utf-8"))
FILES = ("config.json", "model.safetensors")
JSON, TENSORS = (f"/live/models/dates-as-typed/{name}" for name in FILES)


def described(weights: bytes) -> str:
    """The config of these weights, as whoever changed both would write it."""
    of_file = {"bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()}
    return json.dumps({**CONFIG, "tformer": {**CONFIG["tformer"], **of_file}})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {JSON: None},
            "The file config.json of the model is missing (the server says 404).",
        ),
        (
            {TENSORS: WEIGHTS[:100_000]},
            "The weights of the model came only in part: 100000 of 511152 bytes.",
        ),
        (
            {TENSORS: WEIGHTS[:-1] + b"x"},
            "The weights of the model are not those that its config describes.",
        ),
        ({JSON: "<!doctype html>"}, "The config of the model cannot be read."),
        (
            {JSON: json.dumps({**CONFIG, "model_type": "gpt2"})},
            "The model has model_type “gpt2”; this page can only run “transformer”.",
        ),
        (
            {JSON: json.dumps({**CONFIG, "activation": "gelu"})},
            "The model has activation “gelu”; this page can only run “relu”.",
        ),
        (
            {TENSORS: b"x" * 99, JSON: described(b"x" * 99)},
            "The weights of the model cannot be read.",
        ),
        (
            {
                TENSORS: (few := save({"src_embedding.weight": torch.ones(2, 3)})),
                JSON: described(few),
            },
            "In the weights src_embedding.weight is (2,3), but its model has (269,64).",
        ),
        (
            {TENSORS: (none := save({"x": torch.ones(2)})), JSON: described(none)},
            "The weights of the model lack src_embedding.weight.",
        ),
    ],
)
def test_a_model_that_cannot_be_had(live_page, live_site, changed, told):
    page = live_page(expected=("404",) if None in changed.values() else ())
    live_site.changed |= changed
    name, message = page.evaluate(LOAD)
    assert name == "LoadError"
    assert message.startswith(told)


def test_a_server_that_cannot_be_reached(live_page, live_site):
    page = live_page(fresh=True, expected=("ERR_",))
    page.evaluate("() => import('/live/engine/transformer.js')")
    page.context.set_offline(True)
    name, message = page.evaluate(LOAD)
    assert name == "LoadError"
    assert message == "The file config.json of the model could not be fetched."
    page.context.set_offline(False)
    assert page.evaluate(LOAD)[0] == "loaded"
