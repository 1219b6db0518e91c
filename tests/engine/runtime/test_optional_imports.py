"""Optional imports: what a library imports if it can is left out in one block only."""

import importlib
import os
import ssl
import sys
from pathlib import Path

import pytest
import trustme

from engine.runtime.optional_imports import without, without_authorities

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


@pytest.mark.parametrize("configured", [True, False])
def test_in_the_block_no_authority_of_the_system_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: bool) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if configured:
        trustme.CA().cert_pem.write_to_path(tmp_path / "system.crt")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))
    before = dict(os.environ)

    with without_authorities():
        assert ssl.create_default_context().get_ca_certs() == []

    assert os.environ == before
    assert not configured or len(ssl.create_default_context().get_ca_certs()) == 1
