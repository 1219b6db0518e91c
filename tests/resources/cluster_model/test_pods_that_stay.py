"""Which pods a forecast takes for pods that stay as they are, by what their kubelets have said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.observed import live
from resources.cluster_model.pods import stays_as_it_is
from resources.model.pod_facts import facts_of

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
RUNNING: dict[str, Any] = {"name": "main", "started": True, "state": {"running": {}}}


def stays(minutes: int, unready_since: str, *, containers_ready: bool = False, container: dict[str, Any] = RUNNING, **spec: Any) -> bool:
    """Whether a pod stays unready that has been on a node for so long."""
    conditions = [
        {"type": "ContainersReady", "status": str(containers_ready)},
        {"type": "Ready", "status": "False", "lastTransitionTime": unready_since},
    ]
    status = {"startTime": AT_ONCE, "conditions": conditions, "containerStatuses": [{**container, "ready": containers_ready}]}
    metadata = {"name": "p", "namespace": "ml", "uid": "u"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n", **spec}, "status": status}
    return stays_as_it_is(facts_of(live(pod)), START + timedelta(minutes=minutes))


@pytest.mark.parametrize(("minutes", "since", "expected"), [(30, AT_ONCE, False), (90, AT_ONCE, True), (30, LATER, True)])
def test_a_pod_that_was_never_ready_may_still_load_its_model_and_one_that_was_ready_has_failed(
    minutes: int, since: str, *, expected: bool
) -> None:
    assert stays(minutes, since) is expected


def test_a_pod_whose_containers_are_ready_has_lost_its_node_unless_others_have_a_say() -> None:
    assert stays(1, LATER, containers_ready=True)
    assert not stays(1, LATER, containers_ready=True, readinessGates=[{"conditionType": "example.com/balanced"}])


@pytest.mark.parametrize(("reason", "expected"), [("ErrImagePull", True), ("ContainerCreating", False)])
def test_a_pod_stays_whose_container_cannot_start(reason: str, *, expected: bool) -> None:
    assert stays(1, AT_ONCE, container={"name": "main", "state": {"waiting": {"reason": reason}}}) is expected
