"""Which pods a forecast takes for pods that stay as they are, by what their kubelets have said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.observed import Live, live
from resources.cluster_model.pods import is_refused_just_now, stays_as_it_is
from resources.model.pod_facts import facts_of

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
RUNNING: dict[str, Any] = {"name": "main", "started": True, "state": {"running": {}}}


def stays(minutes: int, unready_since: str, *, container: dict[str, Any] = RUNNING, root: Live | None = None) -> bool:
    """Whether a pod stays unready that has been on a node for so long."""
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": unready_since}]
    status = {"startTime": AT_ONCE, "conditions": conditions, "containerStatuses": [{**container, "ready": False}]}
    metadata = {"name": "p", "namespace": "ml", "uid": "u"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n"}, "status": status}
    return stays_as_it_is(facts_of(live(pod)), START + timedelta(minutes=minutes), root)


@pytest.mark.parametrize(
    ("minutes", "since", "expected"),
    [(30, AT_ONCE, False), (90, AT_ONCE, True), (30, LATER, True), (30, "x", True), (30, "2026-01-01T00:00:00", True)],
)
def test_a_pod_that_was_never_ready_may_still_load_its_model_and_one_that_was_ready_has_failed(
    minutes: int, since: str, *, expected: bool
) -> None:
    assert stays(minutes, since) is expected


@pytest.mark.parametrize(("delay", "expected"), [("10m", True), ("4h", False), ("", False), (7, False)])
def test_a_pod_stays_unready_where_its_gang_is_recycled_before_a_model_has_loaded(delay: object, *, expected: bool) -> None:
    template = {"terminationDelay": delay} if delay else {}
    root = live({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "s"}, "spec": {"template": template}})

    assert stays(5, AT_ONCE, root=root) is expected


@pytest.mark.parametrize(("reason", "expected"), [("ErrImagePull", True), ("ContainerCreating", False)])
def test_a_pod_stays_whose_container_cannot_start(reason: str, *, expected: bool) -> None:
    assert stays(1, AT_ONCE, container={"name": "main", "state": {"waiting": {"reason": reason}}}) is expected


@pytest.mark.parametrize(("since", "expected"), [(AT_ONCE, True), ("2025-12-31T00:00:00Z", False), ("x", False), (7, False), (None, False)])
def test_a_scheduler_has_refused_a_pod_just_now_if_it_says_when(since: object, *, expected: bool) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml", "uid": "u"},
        "status": {"conditions": [condition]},
    }

    assert is_refused_just_now(facts_of(live(pod)), START) is expected
