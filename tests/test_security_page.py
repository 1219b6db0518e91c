"""The page about security names tests that exist: a threat without a test is a claim."""

import re

import pytest

from tests.test_layout import ROOT

PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
THREATS = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 4 and not line.startswith("| attacker")]


@pytest.mark.parametrize("row", THREATS)
def test_each_threat_has_a_test(row: str) -> None:
    cited = re.findall(r"`(tests/[\w/.]+)`", row)

    assert cited or row.endswith("| the same |")
    assert [path for path in cited if not (ROOT / path).exists()] == []
