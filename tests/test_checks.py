import json.decoder
import sys

import numpy as np
import pytest

from tformer.checks import (
    check_at_least_0,
    check_divisible,
    check_positive,
    check_probability,
    require,
)


def test_good_values_pass():
    check_positive(length=1, width=np.int64(7))
    check_at_least_0(start=0, seed=5)
    check_probability(dropout=0, other=0.999)
    check_divisible(d_model=12, num_heads=3)


@pytest.mark.parametrize("value", [0, -3])
def test_a_size_is_at_least_one(raises, value):
    with raises(ValueError, f"width ({value}) must be at least 1"):
        check_positive(length=1, width=value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2.0, "float"), (True, "bool"), ("2", "str"), (None, "NoneType")],
)
def test_a_size_is_an_int(raises, value, kind):
    with raises(TypeError, f"width must be an int, not {kind}"):
        check_positive(width=value)


def test_a_count_is_a_whole_number_from_zero(raises):
    with raises(ValueError, "start (-1) must be at least 0"):
        check_at_least_0(seed=1, start=-1)
    with raises(TypeError, "start must be an int, not float"):
        check_at_least_0(start=0.0)
    with raises(TypeError, "start must be an int, not bool"):
        check_at_least_0(start=False)


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, 2.5, float("nan")])
def test_a_probability_is_in_its_range(raises, value):
    with raises(ValueError, f"dropout ({value}) must be in [0, 1)"):
        check_probability(fine=0.5, dropout=value)


def test_a_multiple_leaves_no_remainder(raises):
    with raises(ValueError, "d_model (30) must be divisible by num_heads (4)"):
        check_divisible(d_model=30, num_heads=4)


def test_a_module_of_a_package_is_found():
    assert require("json.decoder") is json.decoder


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(ImportError, match=r"babel: pip install 'tformer\[train\]'"):
        require("babel.dates")


def test_another_fault_of_the_package_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "halfinstalled.py").write_text("import needed_but_missing")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="needed_but_missing"):
        require("halfinstalled")
