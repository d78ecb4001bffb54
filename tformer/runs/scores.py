"""How good the model of a run is, while it is trained and at the end."""

import math
from typing import Any

import torch

from tformer.generate.evaluating import evaluating
from tformer.runs.run_data import RunData
from tformer.training.evaluation import bits_per_byte, exact_match, mean_loss
from tformer.training.finite import not_finite
from tformer.training.loop import batch_loss


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


def check_useful(model: Any, data: RunData, device: torch.device) -> None:
    """Raise if nobody could go on from a model, as its next loss is not finite.

    Weights can be finite and so large that what is computed from them is not. One
    batch shows it; a loss that is only bad is no reason to stop. Weights that are not
    finite are left to `save_state`, which names them.

    Raises:
        FloatingPointError: it is not.
    """
    with evaluating(model), torch.no_grad():
        loss = batch_loss(model, data.validation[0].to(device)).item()
    if not math.isfinite(loss) and not_finite(model) is None:
        raise FloatingPointError(
            f"the loss of the validation's first batch is {loss}, and no checkpoint is "
            "made. A lower learning rate or a longer warm-up may help"
        )


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
