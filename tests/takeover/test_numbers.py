"""Every rule about take-overs has a row in docs/behaviour/take-over.md and a test that is named after it."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "behaviour" / "take-over.md"


def test_every_rule_has_a_test_of_its_name() -> None:
    rows = re.findall(r"^\| <a id=\"m\d+\"></a>(M\d+) \|", PAGE.read_text(), re.MULTILINE)
    tested = {name for file in TESTS.glob("test_*.py") for name in re.findall(r"def test_(M\d+)_", file.read_text())}

    assert rows == [f"M{number}" for number in range(1, len(rows) + 1)]
    assert tested == set(rows)
