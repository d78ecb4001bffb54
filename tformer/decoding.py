"""Decoding: from a trained model's scores to a target, one token at a time.

B batch · S source length · T target length so far · V vocabulary
"""

# --8<-- [start:imports]
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.data.vocabulary import CharacterVocabulary
from tformer.transformer import Transformer

# --8<-- [end:imports]


# --8<-- [start:greedy]
def greedy(
    model: Transformer,
    src: Tensor,
    *,
    bos_id: int,
    eos_id: int,
    max_len: int,
    src_key_mask: Tensor | None = None,
) -> Tensor:
    """Append the likeliest next token, argmax p(next | so far), until the end token.

    The source is encoded once. The model is asked in `eval()`, without gradients, and
    left in the mode in which it came. A row that has ended is filled up with padding,
    and the loop ends with the last of them.

    Args:
        model: the trained Transformer.
        src: ids (B, S).
        bos_id: the start token, which the target begins with.
        eos_id: the end token.
        max_len: write at most so many tokens, the end token included.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.

    Returns:
        int64 (B, T), T <= max_len: what follows the start token, with the end token, if
        it came, and after it `pad_id` (`eos_id` if the model has no padding).

    Raises:
        TypeError: `max_len` is not an int, or the mask is not boolean.
        ValueError: `max_len` is below 1 or beyond learned positions; an id is outside
            its vocabulary; the source is empty.
    """
    config = model.config
    check_positive(max_len=max_len)
    if config.positions == "learned" and max_len > config.max_len:
        raise ValueError(
            f"max_len ({max_len}) must be at most the model's learned positions "
            f"({config.max_len})"
        )
    V = model.tgt_embedding.vocab_size
    for name, token in (("bos_id", bos_id), ("eos_id", eos_id)):
        if not 0 <= token < V:
            raise ValueError(f"{name} ({token}) must be in [0, vocab_size = {V})")
    pad_id = eos_id if config.pad_id is None else config.pad_id

    with evaluating(model), torch.no_grad():
        src_key_mask = model.source_mask(src, src_key_mask)  # (B, S)
        memory = model.encode(src, src_key_mask=src_key_mask)  # (B, S, D)
        tgt = src.new_full((len(src), 1), bos_id, dtype=torch.int64)  # (B, 1)
        ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)  # (B,)
        for _ in range(max_len):
            logits = model.decode(tgt, memory, memory_key_mask=src_key_mask)
            newest = logits[:, -1].argmax(dim=-1).masked_fill(ended, pad_id)  # (B,)
            tgt = torch.cat((tgt, newest[:, None]), dim=1)  # (B, T + 1)
            ended = ended | (newest == eos_id)
            if ended.all():
                break
    return tgt[:, 1:]  # (B, T)
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


# --8<-- [start:translate]
def translate(
    model: Transformer,
    vocabulary: CharacterVocabulary,
    texts: Sequence[str],
    *,
    max_len: int,
    batch_size: int = 500,
) -> list[str]:
    """Decode texts greedily, from text to text.

    Args:
        model: the trained Transformer.
        vocabulary: the characters that it was trained with.
        texts: the sources.
        max_len: write at most so many characters for each, the end token included.
        batch_size: how many are decoded side by side.

    Returns:
        The targets, in the order of the sources.

    Raises:
        ValueError: a text has an unknown character, or a size is below 1.
    """
    check_positive(batch_size=batch_size)
    device = model.src_embedding.weight.device
    targets = []
    for start in range(0, len(texts), batch_size):
        batch = vocabulary.encode_batch(texts[start : start + batch_size], eos=True)
        ids = greedy(
            model,
            batch.to(device),
            bos_id=vocabulary.bos_id,
            eos_id=vocabulary.eos_id,
            max_len=max_len,
        )
        targets += [vocabulary.decode(row) for row in ids.tolist()]
    return targets
    # --8<-- [end:translate]
