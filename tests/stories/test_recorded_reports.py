"""What `engine diff` says about six changes is what is recorded (`golden_reports`)."""

import pytest

from tests.stories import golden_reports

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", golden_reports.CASES)
async def test_the_report_of_a_change_is_the_recorded_one(name: str) -> None:
    assert await golden_reports.computed(name) == golden_reports.recorded(name)


@pytest.mark.parametrize("name", golden_reports.CASES)
def test_no_report_says_a_sentence_twice(name: str) -> None:
    remarks = [line.strip() for line in golden_reports.recorded(name).splitlines() if line.strip().startswith(("note:", "! "))]

    assert len(set(remarks)) == len(remarks)


@pytest.mark.parametrize("name", ["update", "scale-in"])
async def test_on_demand_every_operation_follows_and_hashes_are_never_shown(name: str) -> None:
    brief, full = golden_reports.recorded(name), await golden_reports.computed(name, verbose=True)

    operations = [line for line in full.splitlines() if line.startswith(("  - ", "  ~ "))]
    assert len(operations) >= 4 and len(full) > len(brief)
    assert "hash" not in full.lower()
