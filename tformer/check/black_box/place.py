"""Where a leak first shows, and what its numbers say about it.

B batch · T length · D width
"""

from typing import NamedTuple

from torch import Tensor, nn

from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import module_in
from tformer.check.black_box.future import Leak


class Place(NamedTuple):
    """The first tensor that a later token changes at earlier positions."""

    number: int  # among all that go into modules or come out
    name: str  # of the module
    module: nn.Module
    enters: bool  # it goes into the module; else it comes out
    before: Tensor
    after: Tensor
    axis: int  # of the positions


def like_a_norm(box: Box, place: Place | None, leak: Leak) -> bool:
    """Say whether the change is one factor and one shift for all earlier positions.

    Channel by channel, as of a mean or a spread that is taken over the positions.
    """
    if place is None:
        both = [box(text[None])[0] for text in (leak.before, leak.after)]
    else:
        both = [z.movedim(place.axis, 0) for z in (place.before, place.after)]
    x, y = (z.double().cpu()[: leak.j].flatten(1) for z in both)
    if len(x) < 4:
        return False
    flat = x - x.mean(0)
    factor = (flat * (y - y.mean(0))).sum(0) / (flat.square().sum(0) + 1e-30)
    rest = (y - y.mean(0) - factor * flat).abs().max()
    return bool(rest < 1e-3 * (y - x).abs().max())


def heads_of(box: Box, place: Place, leak: Leak) -> str:
    """Name the columns that leak, if they are whole heads and not all of them."""
    if not place.enters or place.before.ndim != 3:
        return ""
    x, y = (z[0, : leak.j].double().cpu() for z in (place.before, place.after))
    far = ((x - y).abs() > box.near * x.square().mean().sqrt()).any(0)
    columns, D = far.nonzero().flatten().tolist(), far.numel()
    if not columns or len(columns) == D or len(columns) != columns[-1] - columns[0] + 1:
        return ""
    said = f"columns {columns[0]} to {columns[-1]} of {D}"
    parent = (module_in(box.model) or nn.Module()).get_submodule(
        place.name.rpartition(".")[0]
    )
    for name in (
        "num_heads",
        "n_head",
        "n_heads",
        "heads",
        "nhead",
        "num_attention_heads",
    ):
        heads = getattr(parent, name, 0)
        if isinstance(heads, int) and heads > 1 and D % heads == 0:
            width = D // heads
            first, last = columns[0] // width, columns[-1] // width
            which = f"head {first}" if first == last else f"heads {first} to {last}"
            return f"{which} of {heads} ({said})"
    return said
