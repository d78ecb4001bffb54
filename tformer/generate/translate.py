"""Translation: from texts to texts, by any way of decoding.

B batch · T of what is written
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from tformer.checks import check_positive
from tformer.data.vocabulary import Vocabulary
from tformer.generate.sampling import greedy
from tformer.models.seq2seq_lm import Seq2SeqLM


def translate(
    model: Seq2SeqLM, vocabulary: Vocabulary, texts: Sequence[str], **options: Any
) -> list[str]:
    """Decode texts as `translate_to_ids`, from text to text."""
    rows = translate_to_ids(model, vocabulary, texts, **options)
    return [vocabulary.decode(row) for row in rows]


def translate_to_ids(
    model: Seq2SeqLM,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    *,
    max_len: int,
    batch_size: int = 500,
    decode: Callable[..., Tensor] = greedy,
) -> list[list[int]]:
    """Decode texts in batches.

    Args:
        model: the trained Transformer.
        vocabulary: the one that it was trained with.
        texts: the sources.
        max_len: write at most so many tokens for each, the end token included.
        batch_size: how many are decoded side by side.
        decode: `greedy`, or what takes the same arguments and returns ids (B, T).

    Returns:
        The ids of each target, in the order of the sources, up to the end token and
        with it, if it came.
    """
    check_positive(batch_size=batch_size)
    device, end, written = model.src_embedding.weight.device, vocabulary.eos_id, []
    for start in range(0, len(texts), batch_size):
        batch = vocabulary.encode_batch(texts[start : start + batch_size], eos=True)
        options = {"bos_id": vocabulary.bos_id, "eos_id": end, "max_len": max_len}
        for row in decode(model, batch.to(device), **options).tolist():
            written.append(row[: row.index(end) + 1] if end in row else row)
    return written
