"""What the server's answers about new components of graphs say of their gangs."""

from datetime import UTC, datetime

import pytest

from engine.answer import TrialOutcome, Trials, TrialVerdict
from engine.operation import Cause, Create
from engine.paths import absent
from engine.resource import Body, Want
from resources.base import kinds
from resources.blueprints.component_trials import new_components, remarks_on
from tests.resources.dynamo.objects.test_group_scheduler import decode, made_of, without_group

ROOT = kinds.DYNAMO_GRAPH.id("ns", "g")


@pytest.mark.parametrize("keeps", [True, False], ids=["LeaderWorkerSet 0.9", "an older one"])
def test_that_a_server_would_drop_the_group_of_pods_is_told_before_they_are_created(keeps: bool) -> None:
    want = made_of(decode(replicas=2))["LeaderWorkerSet/g-decode-0"]
    assert isinstance(want, Want) and want.body is not None
    stored: Body = want.body if keeps else without_group(want.body)
    components = new_components((), [(ROOT, Create(want.id, "", Cause.INTENT, manifest=want.body))])[ROOT]
    verdict = TrialVerdict(TrialOutcome.ACCEPTED, "", datetime(2026, 1, 1, tzinfo=UTC), frozenset(absent(want.body, stored)))

    remarks = list(remarks_on(components, Trials({components[0].trials[0].key: verdict})))

    assert remarks == [] if keeps else "the LeaderWorkerSets of decode would lose schedulingGroup" in str(remarks[0])
