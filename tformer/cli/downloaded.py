"""A downloaded model on the command line: what its folder holds, how good it is."""

from collections import Counter
from math import nan
from pathlib import Path

import torch

from tformer.data.text_files import read_text
from tformer.models.building import config_of
from tformer.models.cache_size import cache_nbytes
from tformer.models.causal_lm import CausalLM
from tformer.models.folder import describe
from tformer.runs.data import windows_in_order
from tformer.runs.downloaded import Words, read_words, vocabulary_size
from tformer.runs.folder import RunError
from tformer.runs.metrics import parameter_counts
from tformer.runs.model import Trained
from tformer.training.evaluation import bits_per_byte, mean_loss

CONTEXT = 1024  # tokens of a window, if no other number is asked for


def downloaded_facts(folder: Path) -> dict[str, str]:
    """Say what a folder holds, without reading its weights; the first has no name.

    Raises:
        OSError, ValueError: as `read_model`, and as `read_words`.
    """
    model, saved, places, _ = describe(folder)
    files = {*places.values()}
    counts = parameter_counts(model)
    active = counts.get("active_parameters")
    used = "" if active is None else f", of which a token uses {active:,}"
    config = config_of(model)
    kind, family = type(model).__name__, config["model_type"]
    about = f"model {folder}: {family}, a {kind} of {counts['parameters']:,} parameters"
    facts = {"": about + used}
    facts |= {name: str(value) for name, value in config.items()}
    dtypes = Counter(str(x.dtype).removeprefix("torch.") for x in saved.values())
    (most, _), *others = dtypes.most_common()
    more = "".join(f"; {count} tensors {name}" for name, count in others)
    facts["weights"] = most + more
    total = sum(file.stat().st_size for file in files)
    facts["files"] = f"{len(files)} of weights, {total:,} bytes"
    if isinstance(model, CausalLM):
        model = model.to(next(iter(saved.values())).dtype)
        one, two, full = (cache_nbytes(model, n) for n in (1, 2, model.max_len))
        rest = f"{full:,} bytes for max_len = {model.max_len:,}"
        facts["cache"] = f"{two - one:,} bytes a token, {rest}"
    if not (folder / "tokenizer.json").exists():
        return facts | {"tokenizer": "none: tokenizer.json is missing"}
    return facts | words_facts(read_words(folder, vocabulary_size(model)))


def words_facts(words: Words) -> dict[str, str]:
    """Say what turns text into ids, and where an answer ends."""
    long = "none" if words.template is None else f"{len(words.template):,} characters"
    ends = (f"{i} ({words.tokenizer.token_of(i)})" for i in words.stops)
    return {
        "tokenizer": f"{len(words.tokenizer):,} tokens",
        "chat template": long,
        "stop tokens": ", ".join(ends) or "none",
    }


def text_scores(trained: Trained, file: Path, context: int | None) -> dict[str, object]:
    """Measure a downloaded language model on a text, in windows side by side.

    The first token of a window is read and not asked for; what is left over at the end
    of the text is left out.

    Args:
        trained: a downloaded CausalLM.
        file: of the text.
        context: how many tokens a window has; if None 1,024, or fewer where the model
            or the text has no more.
    """
    model, words = trained.model, trained.words
    if words is None or not isinstance(model, CausalLM):
        kind = type(model).__name__
        raise RunError(f"{trained.name} is a {kind}: evaluate is for language models")
    text = read_text(file)
    pairs = words.tokenizer.encode_with_ends(text, bos=True)
    most = min(model.max_len, len(pairs) - 1)
    if most < 1:
        raise RunError(f"{file} has {len(pairs)} tokens: too few to ask for one")
    if context is not None and context > most:
        rule = f"at most {most}, as the model's max_len is {model.max_len}"
        raise RunError(f"--context ({context}) must be {rule} and {file} so long")
    context = min(CONTEXT, most) if context is None else context
    ids = torch.tensor([i for i, _ in pairs])
    batches = windows_in_order(ids.numpy(), context, len(ids))
    device = next(model.parameters()).device
    rows = [row for batch in batches for row in batch.split(len(batch))]
    loss = mean_loss(model, (row.to(device) for row in rows))
    ends = [end for _, end in pairs[: len(rows) * context + 1]]
    asked = len(text[ends[0] : max(ends)].encode())  # special tokens end at 0
    return {
        "tokens": loss.tokens,
        "context": context,
        "loss": loss.loss,
        "perplexity": loss.perplexity,
        "bits_per_byte": bits_per_byte(loss.loss * loss.tokens, asked)
        if asked
        else nan,
    }
