"""Optional packages: found, or named when they are missing."""

import json.decoder
import sys

import pytest

from tformer.checks import require


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
