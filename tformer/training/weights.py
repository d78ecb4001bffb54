"""The weights of a model: which can be saved, and whether they make the same model."""

from collections.abc import Mapping
from copy import deepcopy

import torch

from tformer.generate.evaluating import evaluating
from tformer.models.building import Model, build_model
from tformer.models.folder import saved_of
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.models.weight_files import DTYPES
from tformer.nn.embedding import TokenEmbedding


def tensors_of(model: Model) -> dict[str, torch.Tensor]:
    """Name what is to be saved. A matrix under two names comes once."""
    tensors = saved_of(model)
    for name, x in tensors.items():
        plain = type(x.data) is torch.Tensor and not x.is_meta
        if not plain or x.dtype not in DTYPES.values():
            what = f"{type(x).__name__} of {x.dtype} on {x.device}"
            raise ValueError(f"{name} is a {what}, which cannot be saved")
    return {name: x.detach().contiguous() for name, x in tensors.items()}


def check_loads_the_same(model: Model, config: Mapping[str, object]) -> None:
    """Raise unless a new model of the config, with these weights, computes the same.

    A hook, a replaced method or a changed attribute would be lost: both are asked for
    the same scores.
    """
    name = type(model).__name__
    mixed = len({parameter.dtype for parameter in model.parameters()}) > 1
    # A copy on the same weights: the compiler, which takes its time, is not asked.
    shared = [] if mixed else [*model.parameters(), *model.buffers()]
    model = deepcopy(model, {id(x): x for x in shared})
    model = model.float() if mixed else model  # two dtypes may not compute together
    try:
        with torch.random.fork_rng():
            again = build_model(config)
        if type(model) is not (kind := type(again)):
            raise ValueError(f"it is another class than tformer's {kind.__name__}")
        first = next(model.parameters())
        again = again.to(first.device, first.dtype)
        # Not a copy: elsewhere in memory, or turned, sums would be rounded otherwise.
        again.load_state_dict(model.state_dict(), assign=True)
        if saved_of(again).keys() != saved_of(model).keys():
            raise ValueError("weights that its config keeps apart are one here")
    except (RuntimeError, TypeError, ValueError) as error:
        what = f"could not be loaded again: {error}"
        raise ValueError(f"model ({name}) {what}") from error
    # The scores below do not show a dropout, a `pad_id`, a window of 100.
    for one, two in zip(model.modules(), again.modules(), strict=True):
        held = settings_of(one)
        for n, x in settings_of(two).items():
            if n != "training" and held.get(n) != x:
                of = f"{n} of {type(one).__name__}"
                raise ValueError(f"{of} is {held.get(n)!r}, and its config says {x!r}")
    embeddings = [m for m in model.modules() if isinstance(m, TokenEmbedding)]
    ids = torch.arange(min(64, model.max_len), device=first.device)[None]
    ids = ids % min(embedding.vocab_size for embedding in embeddings)
    inputs = (ids, ids) if isinstance(model, Seq2SeqLM) else (ids,)
    with evaluating(model), evaluating(again), torch.no_grad():
        wanted, got = model(*inputs), again(*inputs)
    if not torch.equal(wanted, got) and not wanted.isnan().any():
        off = float((wanted - got).abs().max())
        raise ValueError(
            f"model ({name}) would be another once loaded: off by {off:.2g}"
        )


def settings_of(module: torch.nn.Module) -> dict[str, object]:
    """Name what a module holds in numbers and words, such as its dropout."""
    kinds = (bool, int, float, str, dict, type(None))
    own = vars(module).items()
    return {n: x for n, x in own if n[0] != "_" and isinstance(x, kinds)}
