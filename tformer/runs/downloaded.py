"""A model that was downloaded: what lies beside its weights, so that text goes in.

A folder of Hugging Face's: config.json and safetensors, which `models.folder` reads;
tokenizer.json, tokenizer_config.json, chat_template.jinja and generation_config.json,
which are read here. All may be a stranger's.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from tformer.data.chat import render_chat
from tformer.data.tokenizer_file import FileTokenizer
from tformer.files import Json, read_json, read_whole
from tformer.models.bert import BERT
from tformer.models.building import Model
from tformer.models.causal_lm import CausalLM
from tformer.models.folder import OURS
from tformer.runs.folder import RunError

MOST_TEMPLATE = 2**20  # bytes; the longest in use have 20,000


class Words(NamedTuple):
    """What turns text into a downloaded model's ids, and tells where an answer ends."""

    tokenizer: FileTokenizer
    template: str | None  # of a conversation, in Jinja's language
    special_tokens: Mapping[str, str]  # by name: bos_token, eos_token and others
    stops: tuple[int, ...]  # the end tokens

    def chat(self, text: str) -> list[int]:
        """Return the ids of a conversation that begins with this text of a user.

        Raises:
            ValueError: there is no chat template, or it fails.
        """
        if self.template is None:
            folder = self.tokenizer.path.parent
            raise RunError(
                f"{folder} has no chat template, neither chat_template.jinja nor in "
                "tokenizer_config.json: leave out --chat"
            )
        messages = [{"role": "user", "content": text}]
        written = render_chat(self.template, messages, self.special_tokens)
        return self.tokenizer.encode(written)  # it has the special tokens in it

    def continued(
        self, prompt: list[int], written: list[int], ends: Collection[int]
    ) -> str:
        """Return what was written after a prompt, up to the first end token.

        Both are decoded together: alone, the first word might lose its space.
        """
        last = next((n for n, i in enumerate(written) if i in ends), len(written))
        written = written[: last + 1]
        begun, whole = map(self.tokenizer.decode, (prompt, prompt + written))
        if whole.startswith(begun):
            return whole.removeprefix(begun)
        return self.tokenizer.decode(written)


def is_downloaded(folder: Path) -> bool:
    """Tell a folder of Hugging Face's from those of ours, which have a config, too.

    Raises:
        OSError, ValueError: what is called config.json cannot be read, or is no config.
    """
    if not (folder / "config.json").exists():
        return False
    config = read_json(folder / "config.json")
    return "model_type" in config and OURS not in config


def vocabulary_size(model: Model) -> int:
    """Return how many ids a model knows; of two kinds those that it writes."""
    if isinstance(model, CausalLM | BERT):
        return model.vocab_size
    return model.tgt_embedding.vocab_size


def read_words(folder: Path, vocab_size: int) -> Words:
    """Read the tokenizer, the chat template and the end tokens of a folder.

    Args:
        folder: of a downloaded model.
        vocab_size: of the model; every end token must be below it.

    Raises:
        OSError: tokenizer.json is missing, or a file is no regular one.
        ValueError: a file is damaged, or holds what does not fit. The message names it.
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file, so no text can be read")
    tokenizer = FileTokenizer(path, vocab_size)
    config = optional_json(folder / "tokenizer_config.json")
    special = {
        name: token
        for name in config
        if (token := token_text(config, name)) is not None
    }
    template = chat_template(folder, config)
    stops = stop_ids(folder, vocab_size)
    if (
        not stops
        and (last := tokenizer.id_of(special.get("eos_token", ""))) is not None
    ):
        stops = (last,) if last < vocab_size else ()
    return Words(tokenizer, template, special, stops)


def optional_json(path: Path) -> Json:
    """Read an object from a file, or take an empty one if there is none."""
    return read_json(path) if path.exists() else {}


def token_text(config: Json, name: str) -> str | None:
    """Return how a special token is spelled, which stands there in one of two ways."""
    value = config[name]
    if isinstance(value, dict):
        value = value.get("content")
    return value if name.endswith("_token") and isinstance(value, str) else None


def chat_template(folder: Path, config: Json) -> str | None:
    """Find the chat template: a file of its own, or a word of tokenizer_config.json.

    There it may be a list of several by name; the "default" is taken.
    """
    path = folder / "chat_template.jinja"
    if path.exists():
        try:
            return read_whole(path, MOST_TEMPLATE).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}") from error
    found = config.get("chat_template")
    if isinstance(found, list):
        named = [x for x in found if isinstance(x, dict) and x.get("name") == "default"]
        found = named[0].get("template") if named else None
    if found is not None and not isinstance(found, str):
        wrong = f"is a {type(found).__name__}, no text"
        raise ValueError(f"{folder / 'tokenizer_config.json'}: chat_template {wrong}")
    return found


def stop_ids(folder: Path, vocab_size: int) -> tuple[int, ...]:
    """Read the end tokens: of generation_config.json, or else of config.json."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        value = optional_json(path).get("eos_token_id")
        if value is None:
            continue
        ids = value if isinstance(value, list) else [value]
        for i in ids:
            if type(i) is not int or not 0 <= i < vocab_size:
                rule = f"must be ids in [0, vocab_size = {vocab_size})"
                raise ValueError(f"{path}: eos_token_id ({repr(value)[:99]}) {rule}")
        return tuple(ids)
    return ()
