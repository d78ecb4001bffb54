"""Decoding: from a trained model's scores to a text, one token at a time.

B batch · S length of a source · P of a prompt · T of what is written
"""

# --8<-- [start:imports]
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.data.vocabulary import Vocabulary
from tformer.gpt import GPT
from tformer.transformer import Transformer
from tformer.writer import Writer

# --8<-- [end:imports]


# --8<-- [start:greedy]
def greedy(
    model: Transformer | GPT,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    eos_id: int | Sequence[int] | None = None,
    bos_id: int | None = None,
    src_key_mask: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    """Append the likeliest next token, argmax p(next | so far), until the end token.

    The source is encoded once, and keys and values are kept in a cache. The model is
    asked in `eval()`, without gradients, and left in the mode in which it came. A row
    that has ended is filled up with padding, and the loop ends with the last of them.

    Args:
        model: a trained Transformer, or a GPT.
        given: of a Transformer the sources, ids (B, S). Of a GPT the prompts, ids
            (B, P), or a list of them where they differ in length.
        max_len: write at most so many tokens, the end token included.
        eos_id: the end token, or several; without one every row has `max_len` tokens.
        bos_id: the start token, with which a Transformer's target begins.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
        window: where a GPT's positions are used up, let it read its newest `window`
            tokens anew, from position 0, and forget what was before them.

    Returns:
        int64 (B, T), T <= max_len: what follows the start token or the prompt, with the
        end token, if it came, and after it `pad_id` (`eos_id` if the model has no
        padding).

    Raises:
        TypeError: `max_len` is not an int, or the mask is not boolean.
        ValueError: `max_len` is below 1 or beyond learned positions; an id is outside
            its vocabulary; the source is empty; an argument is for the other model.
    """
    with evaluating(model), torch.no_grad():
        writer = Writer(
            model,
            given,
            max_len=max_len,
            eos_id=eos_id,
            bos_id=bos_id,
            src_key_mask=src_key_mask,
            window=window,
        )
        return writer.write(lambda logits: logits.argmax(dim=-1))
    # --8<-- [end:greedy]


# --8<-- [start:evaluating]
@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put every module into `eval()`, and afterwards into the mode that it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
    # --8<-- [end:evaluating]


# --8<-- [start:turn_weights]
def turn_weights(model: nn.Module) -> nn.Module:
    """Turn the matrices of a model in memory, so that a CPU writes one text faster.

    A linear layer multiplies by Wᵀ. For a single token MKL reads a W (O, I) that lies
    in memory as (I, O) about 1.3 times as fast. Shapes and numbers stay; nothing is
    gained for many rows at once, or on a GPU.

    Args:
        model: whose parameters to turn, in place. Turning twice is as turning once.

    Returns:
        The model.
    """
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.data = parameter.data.t().contiguous().t()
    return model
    # --8<-- [end:turn_weights]


# --8<-- [start:translate]
def translate(
    model: Transformer,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    *,
    max_len: int,
    batch_size: int = 500,
    decode: Callable[..., Tensor] = greedy,
) -> list[str]:
    """Decode texts, from text to text.

    Args:
        model: the trained Transformer.
        vocabulary: the one that it was trained with.
        texts: the sources.
        max_len: write at most so many tokens for each, the end token included.
        batch_size: how many are decoded side by side.
        decode: `greedy`, or what takes the same arguments and returns ids (B, T).

    Returns:
        The targets, in the order of the sources.

    Raises:
        ValueError: a text has an unknown character, or a size is below 1.
    """
    rows = translate_to_ids(
        model,
        vocabulary,
        texts,
        max_len=max_len,
        batch_size=batch_size,
        decode=decode,
    )
    return [vocabulary.decode(row) for row in rows]


def translate_to_ids(
    model: Transformer,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    *,
    max_len: int,
    batch_size: int = 500,
    decode: Callable[..., Tensor] = greedy,
) -> list[list[int]]:
    """Decode texts as `translate` does, and return the ids that the model writes.

    Returns:
        A list for each text, up to the end token and with it, if it came.
    """
    check_positive(batch_size=batch_size)
    device = model.src_embedding.weight.device
    written = []
    for start in range(0, len(texts), batch_size):
        batch = vocabulary.encode_batch(texts[start : start + batch_size], eos=True)
        ids = decode(
            model,
            batch.to(device),
            bos_id=vocabulary.bos_id,
            eos_id=vocabulary.eos_id,
            max_len=max_len,
        )
        for row in ids.tolist():
            ends = (
                row.index(vocabulary.eos_id) + 1 if vocabulary.eos_id in row else None
            )
            written.append(row[:ends])
    return written
    # --8<-- [end:translate]
