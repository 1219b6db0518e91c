"""The health of a root in one word, as its status says it."""

from typing import Any

import pytest

from engine.conditions import condition
from resources.reports.health_summary import HealthState, HealthSummary, health_of
from tests.engine.test_health import root

READY = condition("Ready", True, "AllReplicasAvailable", "3 of 3", generation=2)
UNREADY = condition("Ready", False, "Unschedulable", "0 of 3", generation=2)
RECONCILING = condition("Reconciling", True, "Unschedulable", "0 of 3", generation=2)
TAKEN = condition("Ready", False, "NameConflict", "taken", generation=2)
STALLED = condition("Stalled", True, "NameConflict", "taken", generation=2)
EARLIER = HealthSummary(HealthState.RECONCILING, "NotObserved", "its status is about an earlier generation")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((READY,), HealthSummary(HealthState.READY)),
        ((UNREADY, RECONCILING), HealthSummary(HealthState.RECONCILING, "Unschedulable", "0 of 3")),
        (
            (condition("Ready", False, "NameConflict", "taken", generation=2), STALLED),
            HealthSummary(HealthState.STALLED, "NameConflict", "taken"),
        ),
        ((UNREADY,), HealthSummary(HealthState.NOT_READY, "Unschedulable", "0 of 3")),
        (
            ({**READY, "observedGeneration": 1},),
            HealthSummary(HealthState.RECONCILING, "NotObserved", "its status is about an earlier generation"),
        ),
        ((), HealthSummary(HealthState.UNKNOWN)),
        (("text", 1), HealthSummary(HealthState.UNKNOWN)),
    ],
)
def test_the_word_is_that_of_the_conditions_and_of_this_generation(conditions: tuple[Any, ...], expected: HealthSummary) -> None:
    assert health_of(root(*conditions)) == expected
