"""Reasons are part of the interface: the page about reports lists them all."""

import re
from pathlib import Path

from engine.reason import BLOCKERS, REMEDIES, Reason

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"


def test_the_page_about_reports_has_every_reason() -> None:
    section = PAGE.read_text("utf-8").partition("## Reasons")[2].partition("\n## ")[0]

    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [reason.value for reason in Reason if reason is not Reason.UNSPECIFIED]


def test_only_what_blocks_has_a_remedy() -> None:
    assert BLOCKERS >= REMEDIES.keys()
