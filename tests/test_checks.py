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


NAN = float("nan")


@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (check_positive, {"a": 1, "width": 0}, "width (0) must be at least 1"),
        (check_positive, {"width": -3}, "width (-3) must be at least 1"),
        (check_positive, {"width": 2.0}, "width must be an int, not float"),
        (check_positive, {"width": True}, "width must be an int, not bool"),
        (check_positive, {"width": None}, "width must be an int, not NoneType"),
        (check_at_least_0, {"a": 0, "start": -1}, "start (-1) must be at least 0"),
        (check_at_least_0, {"start": False}, "start must be an int, not bool"),
        (check_probability, {"a": 0.5, "dropout": 1}, "dropout (1) must be in [0, 1)"),
        (check_probability, {"dropout": -0.1}, "dropout (-0.1) must be in [0, 1)"),
        (check_probability, {"dropout": NAN}, "dropout (nan) must be in [0, 1)"),
        (
            check_divisible,
            {"d": 30, "heads": 4},
            "d (30) must be divisible by heads (4)",
        ),
    ],
)
def test_what_is_refused(raises, check, given, message):
    with raises(TypeError if " an int" in message else ValueError, message):
        check(**given)


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
