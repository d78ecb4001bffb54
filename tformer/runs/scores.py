"""How good the model of a run is, while it is trained and at the end."""

import math
from typing import Any

import torch

from tformer.runs.run_data import RunData
from tformer.training.evaluation import bits_per_byte, exact_match, mean_loss


def validation_scores(
    model: Any, data: RunData, device: torch.device
) -> dict[str, float]:
    """Measure a model on the validation data: its loss, and how often it is right.

    Raises:
        FloatingPointError: the loss, or a score of a next token, is not finite.
    """
    loss = mean_loss(model, (batch.to(device) for batch in data.validation)).loss
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"the validation loss is {loss}. A lower learning rate or a longer warm-up "
            "may help"
        )
    scores = {"validation_loss": loss}
    if data.validation_pairs:
        scores["validation_exact_match"] = exact_match(
            model,
            data.vocabulary,
            data.validation_pairs,
            max_len=data.max_target_len,
        )
    return scores


def test_scores(model: Any, data: RunData, device: torch.device) -> dict[str, Any]:
    """Measure a model on the test data; of a text, in bits per byte as well."""
    of_test = mean_loss(model, (batch.to(device) for batch in data.test))
    scores = {"test_loss": of_test.loss, "test_tokens": of_test.tokens}
    if data.test_pairs:
        scores["test_pairs"] = len(data.test_pairs)
        scores["test_exact_match"] = exact_match(
            model, data.vocabulary, data.test_pairs, max_len=data.max_target_len
        )
    if data.test_bytes:
        nats = of_test.loss * of_test.tokens
        scores["test_bits_per_byte"] = bits_per_byte(nats, data.test_bytes)
    return scores
