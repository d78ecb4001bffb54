"""Tree verification: drafts that share their beginnings, checked in one forward.

N nodes of a tree · R tokens read with it · L of a text · D d_model · V vocabulary
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.decode import check_finite
from tformer.generate.drafts import Trunk, check_heads
from tformer.generate.evaluating import evaluating
from tformer.generate.given import check_given
from tformer.generate.speculative import Speculation
from tformer.models.causal_lm import CausalLM
from tformer.models.multi_token import MultiTokenHeads
from tformer.nn.cache import ModelCache
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.rotary import RotaryEmbedding


class DraftTree(NamedTuple):
    """Proposed tokens, each after its parent: a draft for every path from the text."""

    tokens: list[int]  # (N,)
    parents: list[int]  # (N,): the index of the node before it; -1 is the text's end


def tree_mask(parents: Sequence[int]) -> Tensor:
    """Let each node see itself and its ancestors: bool (N, N), True = may attend.

    Miao et al. 2024, section 4.2 (arXiv:2305.09781). A row's sum is a node's depth.

    Args:
        parents: (N,), of each node an earlier one, or -1.
    """
    mask = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            rule = f"must be an earlier node, or -1: below {node}"
            raise ValueError(f"parents[{node}] ({parent}) {rule}")
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def tree_states(
    model: CausalLM, newest: Tensor, tree: DraftTree, cache: ModelCache
) -> Tensor:
    """Read the newest tokens of a text, and a tree after them, in one forward.

    A node stands at the position that it would have in its own text, and sees what that
    text has. So its state is the one that the text would give.

    Args:
        model: with full attention; see `check_full_attention`.
        newest: ids (1, R), what the cache has not read; R is at least 1.
        tree: proposed after them.
        cache: is filled with all; `truncate` forgets the tree.

    Returns:
        (1, R + N, D), as `model.states`.
    """
    R, start = newest.shape[1], cache.length
    after = [R + parent for parent in tree.parents]  # -1 is the newest token
    mask = tree_mask([*range(-1, R - 1), *after]).to(newest.device)  # (R + N, R + N)
    depth = mask.sum(dim=1) - 1
    seen = mask.new_ones(len(mask), start)
    mask = torch.cat((seen, mask), dim=1)  # (R + N, start + R + N)
    ids = torch.cat((newest, newest.new_tensor([tree.tokens])), dim=1)  # (1, R + N)
    return model.states(ids, cache=cache, positions=start + depth, attn_mask=mask)


def check_full_attention(model: CausalLM) -> None:
    """Raise unless what a token sees is said by the mask and its position alone."""
    rule = "tree verification needs"
    if not isinstance(model, CausalLM):
        raise ValueError(f"{rule} a CausalLM, not {type(model).__name__}")
    for i, block in enumerate(model.blocks):
        attention = getattr(block, "attention", None)
        if not isinstance(attention, MultiHeadAttention):
            kind = type(attention).__name__
            raise ValueError(f"{rule} MultiHeadAttention; blocks[{i}] has {kind}")
        for name in ("window", "relative"):
            if getattr(attention, name) is not None:
                raise ValueError(f"{rule} attention without {name}; blocks[{i}] has it")
        if not isinstance(attention.rotary, RotaryEmbedding | None):
            kind = type(attention.rotary).__name__
            raise ValueError(f"{rule} RotaryEmbedding; blocks[{i}] has {kind}")


def grow_tree(
    model: CausalLM,
    heads: MultiTokenHeads,
    state: Tensor,
    newest: Tensor,
    widths: Sequence[int],
) -> DraftTree:
    """Propose of every node its likeliest next tokens, with one head a level.

    Args:
        model: the trunk.
        heads: at least as many as there are widths.
        state: (1, 1, D), the trunk's, from which it chose the newest token.
        newest: ids (1, 1).
        widths: how many children each node of a level gets.
    """
    tree, level = DraftTree([], []), [-1]
    tokens = newest  # (1, M), of the nodes of a level
    for head, width in zip(heads.heads, widths, strict=False):
        state = head(state, model.embedding(tokens))  # (1, M, D)
        tokens = model.logits(state).topk(width, dim=-1).indices.flatten(1)  # (1, M·W)
        state = state.repeat_interleave(width, dim=1)  # (1, M·W, D)
        tree.parents.extend(parent for parent in level for _ in range(width))
        first = len(tree.tokens)
        tree.tokens.extend(tokens[0].tolist())
        level = [*range(first, len(tree.tokens))]
    return tree


def accepted_path(tree: DraftTree, chosen: Sequence[int]) -> tuple[list[int], int]:
    """Follow a tree as long as it has what the model chose.

    Args:
        tree: N nodes.
        chosen: (N + 1,), what the model writes after the text, and after each node.

    Returns:
        the tokens to write, of which the last is the model's own; and the last node
        that was accepted, or -1.
    """
    node, tokens = -1, [chosen[0]]
    for other, (token, parent) in enumerate(zip(*tree, strict=True)):
        if (parent, token) == (node, tokens[-1]):
            node = other
            tokens.append(chosen[1 + node])
    return tokens, node


def tree_greedy(
    model: CausalLM,
    heads: MultiTokenHeads,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    widths: Sequence[int] = (3, 2, 1),
    eos_id: int | Sequence[int] | None = None,
) -> Speculation:
    """Write as `greedy` does, with a tree of drafts checked in each forward.

    Cai et al. 2024, section 2.1.2 (arXiv:2401.10774): all nodes of a level have as many
    children; section 2.3.3 has other trees. What was accepted is read again with the
    next tree, and its keys are not moved in the cache.

    Args:
        model: a trained CausalLM with full attention; its text is written.
        heads: trained beside it, at least as many as `widths`.
        given: one prompt, ids (1, P) or a list with one.
        max_len: write at most so many tokens, the end token included.
        widths: how many children a node gets, level by level; (1, 1) is a chain of two.
        eos_id: the end token, or several; without one `max_len` tokens are written.

    Returns:
        `checked` counts the levels up to the first in which nothing was accepted.
    """
    check_positive(**{f"widths[{i}]": width for i, width in enumerate(widths)})
    check_full_attention(model)
    check_heads(heads, model, **{"len(widths)": len(widths)})
    with evaluating(model), evaluating(heads), torch.no_grad():
        asked = check_given(model, given, max_len=max_len, eos_id=eos_id)
        if len(asked.prompts) != 1:
            raise ValueError(f"given must be one prompt, not {len(asked.prompts)}")
        if max(widths, default=0) > asked.vocab_size:
            rule = f"must be at most vocab_size ({asked.vocab_size})"
            raise ValueError(f"widths ({max(widths)}) {rule}")
        text = asked.prompts  # (1, P), and then what is written
        P, forwards, checked, accepted = text.shape[1], 0, 0, 0
        nodes = sum(accumulate(widths, mul))  # of all levels
        room = asked._replace(cache=model.new_cache(P + max_len + nodes))
        trunk = Trunk(model, room, 0)
        cache, state = trunk.cache, trunk.state_after(P - 1)  # (1, 1, D)
        while text.shape[1] < P + max_len:
            L, new = text.shape[1], text[:, cache.length :]  # (1, R)
            levels = widths[: P + max_len - L - 1]
            tree = grow_tree(model, heads, state, text[:, -1:], levels)
            states = tree_states(model, new, tree, cache)[:, new.shape[1] - 1 :]
            logits = model.logits(states)[0]  # (1 + N, V)
            check_finite([logits.amax(dim=-1)])
            written, last = accepted_path(tree, logits.argmax(dim=-1).tolist())
            state = states[:, 1 + last : 2 + last]
            cache.truncate(L)
            forwards, kept = forwards + 1, len(written) - 1
            checked, accepted = checked + min(kept + 1, len(levels)), accepted + kept
            text = torch.cat((text, text.new_tensor([written])), dim=1)
            ends = [i for i, token in enumerate(written, L + 1) if token in asked.stops]
            if ends:
                text = text[:, : ends[0]]
                break
    return Speculation(text[:, P:], forwards, checked, accepted)
