"""`tformer generate`: let a trained language model write on."""

from typing import Annotated

import torch
import typer

from tformer.cli.options import LARGEST, Device, Model
from tformer.cli.translate import check_kind, ready_to_write
from tformer.data.text_files import clean_text
from tformer.data.vocabulary import Vocabulary
from tformer.generate.sampling import sample
from tformer.models.causal_lm import CausalLM
from tformer.runs.folder import RunError
from tformer.runs.trained import load_trained
from tformer.training.distributed import choose_device

SIDE_BY_SIDE = 256  # texts; more are written one batch after the other


def generate(
    model: Model,
    prompt: Annotated[str, typer.Option(help="The text to go on from.")] = "\n",
    max_new_tokens: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Write at most so many.")
    ] = 500,
    temperature: Annotated[
        float, typer.Option(help="Above 0; below 1 the likely become likelier.")
    ] = 0.8,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Of the k likeliest.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Of the fewest whose probabilities sum to p.")
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(help="Of those at least p times as probable as the likeliest."),
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End after this character, or other token.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=LARGEST, help="How many texts.")] = 1,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same texts."),
    ] = 0,
    device: Device = "auto",
) -> None:
    """Let a model write on from a prompt, token by token, drawn at random.

    tformer generate runs/book --prompt "Once upon" --temperature 0.7 --top-p 0.9
    """
    trained = load_trained(model)
    check_kind(trained, (CausalLM,), "generate")
    vocabulary = trained.vocabulary
    ids = _encoded(vocabulary, "--prompt", clean_text(prompt))
    stops = [
        _one_token(_encoded(vocabulary, "--stop", text), text) for text in stop or []
    ]
    if not ids:
        raise RunError("--prompt must hold at least one character")
    chosen = choose_device(device)
    ready_to_write(trained, chosen)
    context = trained.model.max_len
    generator = torch.Generator(chosen).manual_seed(seed)
    for first in range(0, count, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, count - first)
        written = sample(
            trained.model,
            torch.tensor([ids[-context:]] * rows, device=chosen),
            max_len=max_new_tokens,
            eos_id=[vocabulary.eos_id, *stops],
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            generator=generator,
            window=max(1, context // 2),
        )
        for number, row in enumerate(written.tolist(), first + 1):
            if count > 1:
                typer.echo(f"--- {number}")
            typer.echo(prompt + vocabulary.decode(row))


def _encoded(vocabulary: Vocabulary, option: str, text: str) -> list[int]:
    try:
        return vocabulary.encode(text)
    except ValueError as error:
        raise RunError(f"{option}: {error}") from error


def _one_token(ids: list[int], text: str) -> int:
    if len(ids) != 1:
        raise RunError(f"--stop {text!r} must be one token, and is {len(ids)}")
    return ids[0]
