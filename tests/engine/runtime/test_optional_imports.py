"""Optional imports: what a library imports if it can is left out in one block only."""

import importlib
import sys

import pytest

from engine.runtime.optional_imports import without

SELDOM = "this"
"""A module of Python that nothing imports."""


def test_in_the_block_the_module_cannot_be_imported() -> None:
    with without(SELDOM), pytest.raises(ImportError):
        importlib.import_module(SELDOM)

    assert SELDOM not in sys.modules


def test_a_module_that_is_imported_already_stays() -> None:
    with without("json"):
        assert importlib.import_module("json") is sys.modules["json"]

    assert sys.modules["json"] is not None
