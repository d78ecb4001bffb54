"""Models of Hugging Face, from a folder or from memory, as ours; and the way back."""

from pathlib import Path

import torch
from torch import nn

from tformer.checks import require
from tformer.files import write_json
from tformer.interop.equivalents import in_their_words
from tformer.interop.way_back import their_weights
from tformer.models.building import Model
from tformer.models.families import family_of
from tformer.models.folder import (
    check_names,
    fill,
    fitted,
    on_meta,
    read_model,
    saved_of,
)
from tformer.models.transformer import Transformer


def from_huggingface(
    source: str | Path | nn.Module, dtype: torch.dtype | None = None
) -> Model:
    """Build the same model, with its weights, in `eval()`.

    Called with ids it returns logits; a model from sequence to sequence with those of
    the source and of the target. A BERT without a head has `states`.

    Args:
        source: a folder with config.json and safetensors, sharded or not, or a model of
            `transformers` in memory.
        dtype: of the model; that of the source if None.

    Raises:
        OSError: a file is missing.
        ValueError: the architecture or an option is unknown here, or a weight is
            missing, superfluous or wrongly shaped. The message names it.
    """
    if not isinstance(source, nn.Module):
        model = read_model(Path(source), dtype=dtype)
        if isinstance(model, Transformer):
            raise ValueError(f"{source} is no language model of Hugging Face")
        return model
    state = source.state_dict()
    config = fitted(source.config.to_dict(), state)  # type: ignore[operator, union-attr]
    model, kind = on_meta(config, len(state)), Path(config["model_type"])
    ours = family_of(config).rename(state, config)
    check_names(kind, saved_of(model), ours, tied=True)
    fill(model, ours, dtype, kind, copy=True)
    return model.eval()


def to_huggingface(model: Model, folder: str | Path, **words: object) -> None:
    """Write a folder that `transformers` loads to a model with the same logits.

    `AutoModelForCausalLM`, `AutoModelForSeq2SeqLM` or `AutoModelForMaskedLM` loads it,
    and `from_huggingface`. A model of a family is that of this family; the paper's
    Transformer becomes a Marian, whose features stand in another order; a BERT stays
    one; a model of chosen parts (`model_type` "tformer") becomes a GPT-2, a Llama, a
    Mistral or a Qwen3, if these have the parts. Where theirs has a bias and ours has
    none, it is 0. In training they may drop other numbers than ours.

    Args:
        model: with weights.
        folder: where to; it is made, and must be empty.
        words: further ones of config.json, such as eos_token_id.

    Raises:
        FileExistsError: the folder holds files.
        ValueError: no family computes the same: the message names the part. Or a word
            is one that the model itself says.
    """
    folder = Path(folder)
    config, weights = in_their_words(model)
    for name in words.keys() & config.keys():
        raise ValueError(f"{name} ({words[name]!r}) is {config[name]!r} in the model")
    family = family_of(config)
    like = saved_of(on_meta(config, len(weights)))
    first = next(iter(weights.values()))
    for name, x in like.items():
        if name not in weights and name.endswith("bias"):
            weights[name] = torch.zeros(x.shape, dtype=first.dtype, device=first.device)
    check_names(folder, like, weights, tied=False)
    theirs = their_weights(family, config, weights)
    folder.mkdir(parents=True, exist_ok=True)
    for held in folder.iterdir():
        raise FileExistsError(f"{folder} must be empty, and holds {held.name}")
    dtype = str(first.dtype).removeprefix("torch.")
    theirs = {name: x.contiguous() for name, x in theirs.items()}
    own_words = vars(family).get("OWN_WORDS", ())
    config = {name: x for name, x in config.items() if name not in own_words}
    save = require("safetensors.torch").save_file
    save(theirs, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", {**config, "dtype": dtype, **words})
