"""How Hugging Face's weights become ours: cuts, experts, names that are absent."""

import re

import pytest
import torch
from torch.testing import assert_close

from tformer.models.families.renaming import (
    GATE_UP,
    HALVES,
    IN_TURN,
    Cut,
    Renaming,
    ending,
)

X = torch.arange(24.0).view(12, 2)


def test_rows_of_one_piece_of_several_and_in_turn():
    halves = Cut({"a": 1, "b": 1})(X)
    assert_close(halves, {"a": X[:6], "b": X[6:]})
    heads = Cut({"a": 1, "b": 2}, pieces=2)(X)  # 2 rows, then 4, twice
    assert_close(heads["a"], X[[0, 1, 6, 7]])
    assert_close(heads["b"], X[[2, 3, 4, 5, 8, 9, 10, 11]])
    in_turn = GATE_UP._replace(pieces=None)(X)
    assert_close(in_turn, {"gate_proj": X[0::2], "up_proj": X[1::2]})


@pytest.mark.parametrize(("rows", "pieces"), [(11, 1), (9, 2), (6, 2), (0, 1)])
def test_rows_that_cannot_be_cut(rows, pieces):
    rename = Renaming((), cuts=lambda _: {"qk": Cut({"q": 1, "k": 1}, pieces)})
    told = f"x.qk.weight has wrong rows: {rows} rows cannot be cut into {pieces} times"
    with pytest.raises(ValueError, match=re.escape(told)):
        rename({"x.qk.weight": torch.ones(rows, 2)}, {})


@pytest.mark.parametrize(("cuts", "turned"), [(HALVES, False), (IN_TURN, True)])
def test_experts_in_one_tensor_are_those_that_stand_one_by_one(cuts, turned):
    end = "experts." if turned else "/"
    rename = Renaming((("mlp.", "net."),), cuts=lambda _: cuts, turned=(end,))
    gate, up = torch.randn(2, 3, 5, 4)  # (E, F, D) each
    both = torch.cat((gate, up), dim=1)
    if turned:
        both = torch.stack((gate, up), dim=2).flatten(1, 2).mT
    bias = torch.randn(3, 5)
    state = {"mlp.experts.gate_up_proj": both, "mlp.experts.down_proj_bias": bias}
    ours = rename(state, {})
    for i in range(3):
        before = f"net.experts.{i}."
        assert_close(ours.pop(f"{before}gate_proj.weight"), gate[i])
        assert_close(ours.pop(f"{before}up_proj.weight"), up[i])
        assert_close(ours.pop(f"{before}down_proj.bias"), bias[i])
    assert not ours


def test_experts_that_cannot_be_taken_apart():
    rename, name = Renaming((), cuts=lambda _: HALVES), "experts.gate_up_proj"
    with pytest.raises(ValueError, match=f"{name} holds 5000 experts: at most 4096"):
        rename({name: torch.ones(5000, 0)}, {})
    with pytest.raises(IndexError):
        rename({name: torch.ones(())}, {})


def test_a_name_that_is_absent_stays_and_one_that_is_left_out_goes():
    rename = Renaming(
        (("a.", "b."),),
        {"deep": True},
        absent=lambda c: ("a.x.",) if c["deep"] else (),
        left_out=ending(".mask"),
    )
    state = {"a.x.w": X, "a.y.w": X, "a.y.mask": X}
    assert [*rename(state, {})] == ["a.x.w", "b.y.w"]
    assert [*rename(state, {"deep": False})] == ["b.x.w", "b.y.w"]


def test_a_convolution_has_one_axis_fewer():
    rename = Renaming((), convolutions=("conv.weight",))
    [y] = rename({"conv.weight": X[:, None]}, {}).values()
    assert_close(y, X)
    for wrong in (X, X[None], X.view(3, 4, 2)):
        with pytest.raises(ValueError, match=r"conv\.weight must be \(C, 1, K\), not"):
            rename({"conv.weight": wrong}, {})
