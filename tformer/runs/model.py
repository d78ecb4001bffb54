"""The model of a run: made, trained without parts, and loaded again."""

import json
import shlex
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from tformer.data.vocabulary import Vocabulary
from tformer.files import Json, read_json
from tformer.models.bert import BERT, BERTConfig
from tformer.models.building import Model
from tformer.models.config import TransformerConfig
from tformer.models.families import custom
from tformer.models.folder import OURS, read_model
from tformer.models.transformer import Transformer
from tformer.nn.heads import MultiHeadAttention
from tformer.pretrained import load_pretrained, pretrained_names
from tformer.runs.checkpoints import load_state, read_facts, saved_states
from tformer.runs.data import run_vocabulary
from tformer.runs.downloaded import Words, is_downloaded, read_words, vocabulary_size
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.rules import ABLATIONS
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint, read_manifest
from tformer.training.muon import muon
from tformer.training.optimizer import adamw

# What may change while a run goes on: what is written down and measured, how a step is
# computed, as machines differ, and where the data lie, of which there is a hash.
MAY_CHANGE = {"save_every", "keep", "evaluate_every", "evaluate_examples"}
MAY_CHANGE |= {"test_examples", "accumulate", "compile", "files"}


def build_model(settings: RunSettings, vocabulary: Vocabulary) -> Model:
    """Make the model of a run, whole, with the weights that its seed gives.

    A ValueError says that sizes do not fit, such as heads that do not divide.
    """
    torch.manual_seed(settings.seed)
    size = len(vocabulary) + (settings.model == "bert")  # a token that hides others
    sizes = settings.sizes(vocab_size=size, pad_id=vocabulary.pad_id)
    if settings.model == "bert":
        return BERT(BERTConfig(**sizes))
    if settings.model != "transformer":
        return custom.build(sizes)
    layers = sizes.pop("num_layers")
    sizes |= {"num_encoder_layers": layers, "num_decoder_layers": layers}
    config = TransformerConfig(norm_first=settings.norm_first, **sizes)
    return Transformer(config)


def ablate(model: nn.Module, *parts: str) -> None:
    """Take parts out of a model, by hooks: its code and its weights stay as they are.

    "mask": the decoder sees the target's future. "scale": the scores are not divided by
    √d_k. "positions": nothing is added to the embeddings.

    Raises:
        ValueError: a part is unknown, or the model no Transformer.
    """
    for part in parts:
        if part not in ABLATIONS or not isinstance(model, Transformer):
            raise ValueError(f"part ({part!r}) must be one of {', '.join(ABLATIONS)}")
        if part == "mask":
            model.decoder.register_forward_pre_hook(
                lambda _, args, options: (args, {**options, "is_causal": False}),
                with_kwargs=True,
            )
        elif part == "positions":
            for positions in (model.src_positions, model.tgt_positions):
                positions.register_forward_hook(lambda _, came, __: came[0])
        else:
            for module in model.modules():
                if isinstance(module, MultiHeadAttention):
                    root = module.head_dim**0.5
                    module.q_proj.register_forward_hook(lambda _, __, q, r=root: q * r)


def build_optimizer(settings: RunSettings, model: nn.Module) -> torch.optim.Optimizer:
    """Make the optimizer of a run."""
    make = muon if settings.optimizer == "muon" else adamw
    return make(model, weight_decay=settings.weight_decay, betas=(0.9, settings.beta2))


def check_unchanged(folder: RunFolder, settings: RunSettings) -> None:
    """Raise if a run would go on with other settings than it was begun with.

    Else its first steps would be of one training and its last of another. The newest
    checkpoint has the settings, or, where there is none any more, the model. With
    "inverse-sqrt", which does not ask for `steps`, they may change too. A ValueError
    says which was changed, or that the checkpoint or the manifest is damaged.
    """
    saved = saved_states(folder.checkpoints)
    made = saved[-1] if saved else folder.saved_model()
    if made is None:
        return
    facts = read_facts(made) if saved else read_manifest(made)
    was = RunSettings.from_json(facts.get("settings", {})).flat()
    now, free = settings.flat(), set(MAY_CHANGE)
    if settings.schedule == "inverse-sqrt":
        free.add("steps")
    for name in sorted((now.keys() & was.keys()) - free):
        if now[name] != was[name]:
            raise RunError(
                f"{folder.config} has {name} {json.dumps(now[name])}, but {made.name} "
                f"was made with {json.dumps(was[name])}: a run goes on as it began. "
                "Put it back, or begin another run"
            )


class Trained(NamedTuple):
    """A trained model, and what is needed to ask it."""

    name: str
    model: Any  # in eval(); of which kind the commands ask
    vocabulary: Vocabulary
    manifest: Json  # empty while its run is not finished
    settings: RunSettings | None = None  # of the run that made it
    folder: RunFolder | None = None  # of that run
    words: Words | None = None  # of a downloaded model

    @property
    def task(self) -> str | None:
        """What it was trained for, if a run made it: a name in TASKS, text or pairs."""
        return None if self.settings is None else self.settings.task


def load_trained(name: str | Path) -> Trained:
    """Load a trained model, without the parts that it was trained without.

    The name is the folder of a run or of a model, ours or downloaded, a file that ends
    in ".safetensors", of an older version, or the name of a model of the package. Of an
    unfinished run the newest checkpoint is loaded, and a warning says so.

    Raises:
        OSError: a file is missing.
        ValueError: there is no such model, its run has made no checkpoint, or it is
            damaged.
    """
    path, folder = Path(name), None
    if is_downloaded(path):
        model = read_model(path)
        words = read_words(path, vocabulary_size(model))
        return Trained(str(name), model, words.tokenizer, {}, words=words)
    if path.is_dir() and not is_model(path):
        folder = RunFolder.open(path)
        saved = folder.saved_model()
        if saved is None:
            return _unfinished(str(name), folder)
        checkpoint = load_checkpoint(saved)
    elif path.is_dir() or path.suffix == ".safetensors":
        checkpoint = load_checkpoint(path)
    elif str(name) in pretrained_names():
        checkpoint = load_pretrained(str(name))
    else:
        raise RunError(
            f"{name} is neither the folder of a run or of a model, nor a .safetensors "
            f"file, nor a model of the package: {', '.join(pretrained_names())}"
        )
    model, vocabulary, manifest = checkpoint
    if vocabulary is None:
        raise RunError(f"{name} has no vocabulary, so no text can be read")
    settings = None
    if (asked := manifest.get("settings")) is not None:
        settings = RunSettings.from_json(asked)
        ablate(model, *settings.without)
    return Trained(str(name), model, vocabulary, manifest, settings, folder)


def is_model(folder: Path) -> bool:
    """Tell the folder of a model from that of a run: both have a config.json."""
    with suppress(OSError, ValueError):
        return OURS in read_json(folder / "config.json")
    return False


def _unfinished(name: str, folder: RunFolder) -> Trained:
    """Load the newest checkpoint of a run."""
    begun = f"the run in {name} is not finished"
    go_on = f"go on with tformer train --resume {shlex.quote(str(folder.path))}"
    saved = saved_states(folder.checkpoints)
    if not saved:
        raise RunError(f"{begun}, and has no checkpoint: {go_on}")
    settings = folder.settings()
    check_unchanged(folder, settings)
    vocabulary = run_vocabulary(settings, folder.path)
    model = build_model(settings, vocabulary)
    load_state(saved[-1], model)
    ablate(model, *settings.without)
    newest = f"this is its newest checkpoint, {saved[-1].name}"
    warnings.warn(f"{begun}: {newest}; {go_on}", stacklevel=2)
    return Trained(name, model.eval(), vocabulary, {}, settings, folder)
