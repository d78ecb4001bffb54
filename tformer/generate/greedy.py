"""Greedy decoding: the likeliest next token, one at a time.

B batch · S length of a source · P of a prompt · T of what is written
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tformer.generate.evaluating import evaluating
from tformer.generate.prefix import Prefix
from tformer.generate.writer import Writer
from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT
from tformer.models.transformer import Transformer


def greedy(
    model: Transformer | GPT | CausalLM,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    eos_id: int | Sequence[int] | None = None,
    bos_id: int | None = None,
    src_key_mask: Tensor | None = None,
    window: int | None = None,
    prefix: Prefix | None = None,
) -> Tensor:
    """Append the likeliest next token, argmax p(next | so far), until the end token.

    The source is encoded once, and keys and values are kept in a cache. The model is
    asked in `eval()`, without gradients, and left in the mode in which it came. A row
    that has ended is filled up with padding, and the loop ends with the last of them.

    Args:
        model: a trained Transformer, GPT or CausalLM.
        given: of a Transformer the sources, ids (B, S). Of the others the prompts, ids
            (B, P), or a list of them where they differ in length.
        max_len: write at most so many tokens, the end token included.
        eos_id: the end token, or several; without one every row has `max_len` tokens.
        bos_id: the start token, with which a Transformer's target begins.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
        window: where a GPT's positions are used up, or a CausalLM's `max_len`, let it
            read its newest `window` tokens anew, from position 0, and forget what was
            before them.
        prefix: what all prompts begin with, read once; `given` is what follows it.

    Returns:
        int64 (B, T), T <= max_len: what follows the start token or the prompt, with the
        end token, if it came, and after it `pad_id` (`eos_id` if the model has no
        padding).

    Raises:
        TypeError: a size or a token is not an int, or the mask is not boolean.
        ValueError: `max_len` is below 1 or beyond learned positions; an id is outside
            its vocabulary; the source is empty; an argument is for the other model.
        FloatingPointError: the model's scores are NaN or infinite.
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
            prefix=prefix,
        )
        return writer.write(lambda logits: logits.argmax(dim=-1))
