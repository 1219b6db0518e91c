"""Quantities in the one form in which the server writes them."""

import pytest

from grove_sandbox.types import quantity


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("1", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("0", "0"),
        ("100M", "100M"),
        ("1n", "1n"),
        ("-1.5", "-1500m"),
        ("8192Mi", "8Gi"),
        ("512", "512"),
        ("1000000", "1M"),
        ("1e-3", "1e-3"),
        ("1.5Ki", "1536"),
        ("0.1Ki", "102400m"),
        ("1e4", "10e3"),
        ("12e5", "1200e3"),
    ],
)
def test_a_quantity_has_one_form(sent: str, written: str) -> None:
    assert quantity.canonical(sent) == written


@pytest.mark.parametrize("sent", ["", "lots", "1 Gi", "1gi", "--1", "1.2.3"])
def test_what_is_no_quantity_is_refused(sent: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        quantity.canonical(sent)
