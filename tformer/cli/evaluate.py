"""`tformer evaluate`: how good a trained model is."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tformer.cli.options import LARGEST, Device, LengthPenalty, Model
from tformer.cli.translate import (
    check_lines,
    decoder,
    longest_target,
)
from tformer.data.batch import Batch
from tformer.data.pairs import read_pairs
from tformer.data.text_files import read_text
from tformer.data.token_stream import unknown_character
from tformer.files import finite_or_null
from tformer.generate.translate import translate_to_ids
from tformer.models.bert import BERT
from tformer.models.causal_lm import CausalLM
from tformer.models.transformer import Transformer
from tformer.runs.batches import hidden_windows, pairs_in_order, windows_in_order
from tformer.runs.evaluation import check_name, save_evaluation
from tformer.runs.folder import RunError
from tformer.runs.trained import Trained, load_trained
from tformer.tasks import SPLITS, TASKS
from tformer.training.distributed import choose_device
from tformer.training.evaluation import (
    bits_per_byte,
    bleu,
    matches,
    mean_loss,
)
from tformer.training.processes import not_finite

MISTAKES = 20  # so many are kept


def evaluate(
    context: typer.Context,
    model: Model,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A text for a GPT, CausalLM or BERT; sources and targets, line by "
            "line, for a model that translates. For a model of a task none: its test "
            "is drawn.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Of a task: test or validation; of dates also new-years, new-formats, "
            "long-texts, and locale-fr and the like."
        ),
    ] = "test",
    count: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Pairs to draw of a task.")
    ] = 2000,
    beams: Annotated[int, typer.Option(min=1, max=LARGEST, help="1 is greedy.")] = 1,
    length_penalty: LengthPenalty = 0.6,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Keep it in the run's folder as evaluations/NAME.json, and some wrong "
            "answers with it.",
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Print loss, perplexity, bits per byte; exact match, and sacreBLEU of own files.

    tformer evaluate runs/dates

    tformer evaluate runs/dates --split new-years --save new-years

    tformer evaluate runs/de-en test.de test.en --beams 4

    tformer evaluate runs/book another-book.txt
    """
    trained = load_trained(model)
    _check_used(context, trained, files or [])
    if save is not None:
        check_name(save)  # before anything is computed
        if trained.folder is None:
            raise RunError(f"{model} is no folder of a run: --save has no place there")
        if not trained.manifest:
            raise RunError(f"the run in {model} is not finished: --save is for its end")
    chosen = choose_device(device)
    trained.model.to(chosen)
    decode = decoder(beams, length_penalty)
    mistakes: list[dict[str, str]] = []
    if isinstance(trained.model, CausalLM):
        result = _of_text(trained, files or [])
    elif isinstance(trained.model, BERT):
        result = _of_hidden(trained, files or [])
    else:
        pairs = _pairs(trained, files or [], split, count)
        result = _of_pairs(
            trained, pairs, decode, with_bleu=bool(files), mistakes=mistakes
        )
    _warn_if_not_finite(trained, result)
    if save is not None and trained.folder is not None:
        asked: dict[str, Any] = {"files": [file.name for file in files or []]}
        if isinstance(trained.model, Transformer):
            of_task = {} if files else {"split": split, "count": count}
            decoding = {"beams": beams, "length_penalty": length_penalty}
            asked |= {**of_task, **decoding}
        save_evaluation(
            trained.folder,
            save,
            asked=asked,
            result=finite_or_null(result),
            mistakes=mistakes[:MISTAKES],
            device=chosen,
        )
    if as_json:
        typer.echo(json.dumps(finite_or_null(result), indent=2, allow_nan=False))
    else:
        for name, value in result.items():
            typer.echo(
                f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            )


def _warn_if_not_finite(trained: Trained, result: dict[str, Any]) -> None:
    """Say on stderr which numbers are none, and, where it is known, why."""
    names = [name for name, value in finite_or_null(result).items() if value is None]
    if names:
        parameter = not_finite(trained.model.named_parameters())
        why = "" if parameter is None else f": {parameter} holds NaN or inf"
        typer.echo(f"warning: {' and '.join(names)} not finite{why}", err=True)


def _check_used(context: typer.Context, trained: Trained, files: list[Path]) -> None:
    """Raise if an option was given that does nothing for this model or these files."""
    drawn = trained.task in TASKS and not files
    translates = isinstance(trained.model, Transformer)
    for names, used, what in (
        (("split", "count"), drawn, "the test of a task"),
        (("beams", "length_penalty"), translates, "a model that translates"),
    ):
        for name in names:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE" and not used:
                option = name.replace("_", "-")
                raise typer.BadParameter(f"--{option} is for {what}")


def _pairs(
    trained: Trained, files: list[Path], split: str, count: int
) -> list[tuple[str, str]]:
    task = trained.task
    if not files and task in TASKS:
        known = (*SPLITS[1:], *getattr(TASKS[task], "more_splits", ()))
        if split not in known:
            raise typer.BadParameter(f"--split must be one of {', '.join(known)}")
        return list(TASKS[task].pairs(split, count, seed=0))
    if len(files) != 2:
        raise typer.BadParameter("name two files: the sources and their targets")
    return list(read_pairs(*files))


def _of_pairs(
    trained: Trained,
    pairs: list[tuple[str, str]],
    decode: Any,
    *,
    with_bleu: bool,
    mistakes: list[dict[str, str]],
) -> dict[str, Any]:
    sources, targets = (list(texts) for texts in zip(*pairs, strict=True))
    for texts in (sources, targets):
        check_lines(trained, texts)
    vocabulary = trained.vocabulary
    batches = pairs_in_order(vocabulary, pairs)
    loss = mean_loss(trained.model, _on_device(trained, batches))
    result: dict[str, Any] = {
        "pairs": len(pairs),
        "exact_match": math.nan,
        "loss": loss.loss,
        "perplexity": loss.perplexity,
    }
    try:
        written = translate_to_ids(
            trained.model,
            vocabulary,
            sources,
            max_len=longest_target(trained),
            decode=decode,
        )
    except FloatingPointError:  # what it wrote would be no answer of the model
        return result
    result["exact_match"] = matches(vocabulary, written, targets) / len(pairs)
    texts = [vocabulary.decode(ids) for ids in written]
    mistakes += [
        {"source": source, "target": target, "written": text}
        for source, target, text in zip(sources, targets, texts, strict=True)
        if text != target
    ]
    if with_bleu:
        measured = bleu(texts, targets)
        result["bleu"], result["signature"] = measured.score, measured.signature
        result["bleu_interval"] = measured.interval
    return result


def _of_text(trained: Trained, files: list[Path]) -> dict[str, Any]:
    ids, context = _ids(trained, files), trained.model.max_len
    batches = windows_in_order(ids, context, len(ids))
    loss = mean_loss(trained.model, _on_device(trained, batches))
    rows = (row for batch in batches for row in batch.targets.tolist())
    size = sum(map(trained.vocabulary.num_bytes, rows))
    return {
        "tokens": loss.tokens,
        "loss": loss.loss,
        "perplexity": loss.perplexity,
        "bits_per_byte": bits_per_byte(loss.loss * loss.tokens, size),
    }


def _of_hidden(trained: Trained, files: list[Path]) -> dict[str, Any]:
    """Of a BERT: the loss of tokens that are hidden by chance, always the same ones."""
    ids, context = _ids(trained, files), trained.model.max_len
    windows = max(1, len(ids) // context)
    batches = hidden_windows(ids, trained.vocabulary, context, windows)
    loss = mean_loss(trained.model, _on_device(trained, batches))
    return {
        "hidden_tokens": loss.tokens,
        "loss": loss.loss,
        "perplexity": loss.perplexity,
    }


def _ids(trained: Trained, files: list[Path]) -> list[int]:
    if len(files) != 1:
        raise typer.BadParameter("name one file: the text to evaluate on")
    text = read_text(files[0])
    try:
        ids = trained.vocabulary.encode(text)
    except ValueError:
        raise unknown_character(trained.vocabulary, files[0], text) from None
    context = trained.model.max_len
    if len(ids) <= context:
        raise RunError(f"{files[0]} has {len(ids)} tokens: too few for {context}")
    return ids


def _on_device(trained: Trained, batches: Iterable[Batch]) -> Iterator[Batch]:
    device = next(trained.model.parameters()).device
    return (batch.to(device) for batch in batches)
