"""How good a model is: loss, perplexity, bits per byte, exact match, BLEU."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from tformer.checks import require
from tformer.data.batch import Batch
from tformer.data.vocabulary import Vocabulary
from tformer.generate.evaluating import evaluating
from tformer.generate.translate import translate_to_ids
from tformer.models.transformer import Transformer
from tformer.training.loop import batch_loss, pad_id_of


class MeanLoss(NamedTuple):
    """The loss over many batches."""

    loss: float  # nats a token
    tokens: int  # how many it is the mean of

    @property
    def perplexity(self) -> float:
        """e^loss: among so many tokens a guess at random would do as well."""
        return math.exp(self.loss) if self.loss < 700 else math.inf  # no float is e^710


def mean_loss(model: nn.Module, batches: Iterable[Batch]) -> MeanLoss:
    """Compute the mean cross-entropy of all tokens that the batches ask for.

    Every token counts once, whatever batch it is in: the mean of the batches' means
    would give tokens of short batches more weight. Without a token: a ValueError.
    """
    pad_id = pad_id_of(model)
    total, tokens = 0.0, 0
    with evaluating(model), torch.no_grad():
        for batch in batches:
            count = batch.num_tokens(pad_id)
            total += batch_loss(model, batch).item() * count
            tokens += count
    if not tokens:
        raise ValueError("batches must hold at least one token")
    return MeanLoss(total / tokens, tokens)


def bits_per_byte(nats: float, num_bytes: int) -> float:
    """Compute how many bits per byte of a text costs: nats / (ln 2 · bytes).

    The loss is that of the whole text: the mean of a token, times the tokens. A loss a
    token cannot be compared between vocabularies: a token of BPE holds more.
    """
    return nats / (math.log(2) * num_bytes)


def exact_match(
    model: Transformer,
    vocabulary: Vocabulary,
    pairs: Sequence[tuple[str, str]],
    *,
    max_len: int,
) -> float:
    """Compute the fraction of sources whose target the model writes without mistake.

    At most `max_len` tokens are written, the end token included. A ValueError says that
    there is no pair, or that one has an unknown character.
    """
    if not pairs:
        raise ValueError("pairs must hold at least one")
    sources, targets = zip(*pairs, strict=True)
    written = translate_to_ids(model, vocabulary, sources, max_len=max_len)
    return matches(vocabulary, written, targets) / len(pairs)


def matches(
    vocabulary: Vocabulary, written: Sequence[Sequence[int]], targets: Sequence[str]
) -> int:
    """Count the answers, ids from `translate_to_ids`, that are right to the last token.

    One that does not end is wrong, and so is one with padding or the start token in
    it, even if the text that is left is the right one.
    """
    right = 0
    for ids, target in zip(written, targets, strict=True):
        ended = ids[-1] == vocabulary.eos_id
        clean = not {vocabulary.pad_id, vocabulary.bos_id}.intersection(ids)
        right += ended and clean and vocabulary.decode(ids) == target
    return right


class Bleu(NamedTuple):
    """BLEU of a test, from 0 to 100."""

    score: float
    interval: float  # half of the 95 % interval
    signature: str  # how words were cut: two numbers with the same can be compared


def bleu(written: Sequence[str], targets: Sequence[str]) -> Bleu:
    """Compute BLEU by sacreBLEU (Post 2018, arXiv:1804.08771).

    The interval is that of tests drawn out of this one, so many sentences with
    replacement, a thousand times (Koehn 2004, "Statistical Significance Tests for
    Machine Translation Evaluation"): of another test, not of another training.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: there are not as many of both, or none.
    """
    if len(written) != len(targets) or not targets:
        raise ValueError(f"{len(written)} texts written for {len(targets)} targets")
    metric = require("sacrebleu.metrics").BLEU()
    texts = list(written), [list(targets)]
    score = float(metric.corpus_score(*texts).score)
    signature = str(metric.get_signature())  # before it speaks of the drawing
    drawn = metric.corpus_score(*texts, n_bootstrap=1000)
    return Bleu(score, float(drawn._ci), signature)
