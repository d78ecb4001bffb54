"""`tformer generate`: a language model writes on from a text."""

from typing import Annotated

import torch
import typer

from tformer.cli.asking import ready
from tformer.cli.options import Device, Model, counted
from tformer.data.text_files import clean_text
from tformer.data.vocabulary import Vocabulary
from tformer.generate.sampling import sample
from tformer.models.causal_lm import CausalLM
from tformer.runs.folder import RunError

SIDE_BY_SIDE = 256  # texts; more are generated one batch after the other


def generate(
    model: Model,
    text: Annotated[
        str | None,
        typer.Argument(help="The text to go on from.", show_default=False),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="The same; a line end if none is given.")
    ] = None,
    chat: Annotated[
        bool,
        typer.Option(
            "--chat", help="It is what a user says to a downloaded chat model."
        ),
    ] = False,
    max_new_tokens: Annotated[int, counted("Write at most so many.")] = 500,
    temperature: Annotated[
        float, typer.Option(help="Above 0; below 1 the likeliest becomes likelier.")
    ] = 0.8,
    top_k: Annotated[int | None, counted("Of the k likeliest.")] = None,
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
    count: Annotated[int, counted("How many texts.")] = 1,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same texts."),
    ] = 0,
    device: Device = "auto",
) -> None:
    """Let a model write on from a prompt, token by token, drawn at random.

    tformer generate runs/book --prompt "Once upon" --temperature 0.7 --top-p 0.9

    tformer generate Qwen3-0.6B "Why is the sky blue?" --chat
    """
    if text is not None and prompt is not None:
        raise typer.BadParameter("give the text or --prompt, not both")
    prompt = next((given for given in (text, prompt) if given is not None), "\n")
    trained, chosen = ready(model, CausalLM, "generate", device)
    vocabulary, words = trained.vocabulary, trained.words
    if words is None and chat:
        raise RunError(f"{model} is no downloaded chat model: leave out --chat")
    if words is not None and chat:
        ids = words.chat(prompt)
    else:
        # Ours read what files were cleaned to; others read it as it is, after a start
        # token, if their file says so.
        read = clean_text(prompt) if words is None else prompt
        ids = _encoded(vocabulary, "--prompt", read, bos=words is not None)
    ends = [vocabulary.eos_id] if words is None else [*words.stops]
    for each in stop or []:
        tokens = _encoded(vocabulary, "--stop", each)
        if len(tokens) != 1:
            raise RunError(f"--stop {each!r} must be one token, and is {len(tokens)}")
        ends += tokens
    if not ids:
        raise RunError("--prompt must hold at least one character")
    context = trained.model.max_len
    generator = torch.Generator(chosen).manual_seed(seed)
    for first in range(0, count, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, count - first)
        written = sample(
            trained.model,
            torch.tensor([ids[-context:]] * rows, device=chosen),
            max_len=max_new_tokens,
            eos_id=ends,
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
            if words is None:
                typer.echo(prompt + vocabulary.decode(row))
            else:
                after = words.continued(ids, row, ends)
                typer.echo(after if chat else prompt + after)


def _encoded(
    vocabulary: Vocabulary, option: str, text: str, *, bos: bool = False
) -> list[int]:
    try:
        return vocabulary.encode(text, bos=bos)
    except ValueError as error:
        raise RunError(f"{option}: {error}") from error
