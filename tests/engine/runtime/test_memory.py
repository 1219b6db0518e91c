"""Memory: the architecture names each field that is an exception of the rule that memory lives in the cluster."""

import re
from pathlib import Path

from engine.runtime.execution import WriterMemory

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
DERIVED = {"memo", "world", "completed", "proposed", "observed", "failures", "record", "unpublished", "publishing"}
"""What a process that starts computes again from what it lists, or what it has still to publish, and where."""


def test_each_exception_is_named_in_the_architecture() -> None:
    table = PAGE.read_text("utf-8").partition("### What a process remembers")[2].partition("\n\n**")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}

    assert named == set(WriterMemory.__struct_fields__) - DERIVED
