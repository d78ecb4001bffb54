"""`tformer evaluate`: how good a trained model is."""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from tformer.cli.asking import check_lines, decoder, longest_target
from tformer.cli.downloaded import text_scores
from tformer.cli.options import Beams, Device, LengthPenalty, Model, counted
from tformer.data.batch import Batch
from tformer.data.pairs import Pair, read_pairs
from tformer.data.text_files import read_text
from tformer.data.token_stream import unknown_character
from tformer.files import finite_or_null
from tformer.generate.translate import translate_to_ids
from tformer.models.bert import BERT
from tformer.models.transformer import Transformer
from tformer.runs.data import hidden_windows, pairs_in_order, windows_in_order
from tformer.runs.folder import RunError
from tformer.runs.metrics import check_name, save_evaluation, text_bits_per_byte
from tformer.runs.model import Trained, load_trained
from tformer.tasks import SPLITS, TASKS
from tformer.training.distributed import choose_device
from tformer.training.evaluation import MeanLoss, bleu, matches, mean_loss
from tformer.training.processes import not_finite

MISTAKES = 20  # so many are kept
Scores = dict[str, object]


def evaluate(
    command: typer.Context,
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
            "long-texts, and locale-fr and the like; of dates-as-typed also words, "
            "bare-words, numbers, two-digit-years and ordinals."
        ),
    ] = "test",
    count: Annotated[int, counted("Pairs to draw of a task.")] = 2000,
    context: Annotated[
        int | None,
        counted(
            "Of a downloaded model: windows of so many tokens; 1,024 if not given."
        ),
    ] = None,
    beams: Beams = 1,
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

    tformer evaluate Qwen3-0.6B another-book.txt
    """
    trained, files = load_trained(model), files or []
    _check_used(command, trained, files)
    if save is not None:
        check_name(save)  # before anything is computed
        if trained.folder is None:
            raise RunError(f"{model} is no folder of a run: --save has no place there")
        if not trained.manifest:
            raise RunError(f"the run in {model} is not finished: --save is for its end")
    chosen = choose_device(device)
    trained.model.to(chosen)
    asked: Scores = {"files": [file.name for file in files]}
    mistakes: list[dict[str, str]] = []
    if isinstance(trained.model, Transformer):
        pairs = _pairs(trained, files, split, count)
        decode = decoder(beams, length_penalty)
        result, mistakes = _of_pairs(trained, pairs, decode, with_bleu=bool(files))
        asked |= {} if files else {"split": split, "count": count}
        asked |= {"beams": beams, "length_penalty": length_penalty}
    else:
        result = _of_text(trained, files, context)
    finite = finite_or_null(result)
    if lost := [name for name, value in finite.items() if value is None]:
        parameter = not_finite(trained.model.named_parameters())
        why = "" if parameter is None else f": {parameter} holds NaN or inf"
        typer.echo(f"warning: {' and '.join(lost)} not finite{why}", err=True)
    if save is not None and trained.folder is not None:
        save_evaluation(
            trained.folder,
            save,
            asked=asked,
            result=finite,
            mistakes=mistakes[:MISTAKES],
            device=chosen,
        )
    if as_json:
        typer.echo(json.dumps(finite, indent=2, allow_nan=False))
        return
    for name, value in result.items():
        typer.echo(f"{name} {f'{value:.6g}' if isinstance(value, float) else value}")


def _check_used(command: typer.Context, trained: Trained, files: list[Path]) -> None:
    """Raise if an option was given that does nothing for this model or these files."""
    unused: dict[str, str] = {}
    if files or trained.task not in TASKS:
        unused |= dict.fromkeys(("split", "count"), "the test of a task")
    if not isinstance(trained.model, Transformer):
        unused |= dict.fromkeys(("beams", "length_penalty"), "a model that translates")
    if trained.words is None:
        unused["context"] = "a downloaded model"
    for name, what in unused.items():
        source = command.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} is for {what}")


def _pairs(trained: Trained, files: list[Path], split: str, count: int) -> list[Pair]:
    if not files and trained.task in TASKS:
        task = TASKS[trained.task]
        known = (*SPLITS[1:], *task.more_splits)
        if split not in known:
            raise typer.BadParameter(f"--split must be one of {', '.join(known)}")
        return task.pairs(split, count, seed=0)
    if len(files) != 2:
        raise typer.BadParameter("name two files: the sources and their targets")
    return read_pairs(*files)


def _of_pairs(
    trained: Trained,
    pairs: list[Pair],
    decode: Callable[..., Tensor],
    *,
    with_bleu: bool,
) -> tuple[Scores, list[dict[str, str]]]:
    """Return the scores, and the wrong answers."""
    vocabulary = trained.vocabulary
    sources, targets = (list(texts) for texts in zip(*pairs, strict=True))
    for texts in (sources, targets):
        check_lines(trained, texts)
    _, scores = _mean_loss(trained, pairs_in_order(vocabulary, pairs))
    result: Scores = {"pairs": len(pairs), "exact_match": math.nan, **scores}
    longest = longest_target(trained)
    try:
        written = translate_to_ids(
            trained.model, vocabulary, sources, max_len=longest, decode=decode
        )
    except FloatingPointError:  # what it wrote would be no answer of the model
        return result, []
    result["exact_match"] = matches(vocabulary, written, targets) / len(pairs)
    texts = [vocabulary.decode(ids) for ids in written]
    if with_bleu:
        measured = bleu(texts, targets)
        result |= {"bleu": measured.score, "signature": measured.signature}
        result["bleu_interval"] = measured.interval
    mistakes = [
        {"source": source, "target": target, "written": text}
        for source, target, text in zip(sources, targets, texts, strict=True)
        if text != target
    ]
    return result, mistakes


def _of_text(trained: Trained, files: list[Path], context: int | None) -> Scores:
    """Of a BERT: the loss of tokens that are hidden by chance, always the same ones."""
    if len(files) != 1:
        raise typer.BadParameter("name one file: the text to evaluate on")
    if trained.words is not None:
        return text_scores(trained, files[0], context)
    vocabulary, context = trained.vocabulary, trained.model.max_len
    text = read_text(files[0])
    try:
        ids = vocabulary.encode(text)
    except ValueError:
        raise unknown_character(vocabulary, files[0], text) from None
    if len(ids) <= context:
        raise RunError(f"{files[0]} has {len(ids)} tokens: too few for {context}")
    if isinstance(trained.model, BERT):
        hidden = hidden_windows(vocabulary, ids, context, len(ids) // context)
        loss, scores = _mean_loss(trained, hidden)
        return {"hidden_tokens": loss.tokens, **scores}
    batches = windows_in_order(ids, context, len(ids))
    loss, scores = _mean_loss(trained, batches)
    bits = text_bits_per_byte(vocabulary, batches, loss)
    return {"tokens": loss.tokens, **scores, "bits_per_byte": bits}


def _mean_loss(trained: Trained, batches: Iterable[Batch]) -> tuple[MeanLoss, Scores]:
    device = next(trained.model.parameters()).device
    loss = mean_loss(trained.model, (batch.to(device) for batch in batches))
    return loss, {"loss": loss.loss, "perplexity": loss.perplexity}
