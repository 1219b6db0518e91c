"""Stuck roots: which workloads of graphs without Grove more time does not settle, by their controllers and their pods."""

from datetime import timedelta
from typing import Any

import pytest

from engine.observed import Live, Observed, World, live, slice_of
from engine.tick import Plans
from resources.base import kinds
from resources.cluster_model.component_pods import of_newest_template
from resources.preview.facts import FirstPass
from resources.preview.stuck_roots import stuck_roots
from tests.laws.toy import CONFIGURATION, START

GRAPH = kinds.DYNAMO_GRAPH.id("ml", "llm")
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def observed(kind: Any, name: str, **more: Any) -> Live:
    """An object of that kind."""
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "generation": 1}
    return live({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **more})


def pod(name: str, template: str, minute: int, *, waits: bool = False, deleting: bool = False) -> Live:
    """A pod of a Deployment, which was created in that minute."""
    metadata = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-{name}",
        "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z",
        "labels": {"pod-template-hash": template},
        **({"deletionTimestamp": "2026-01-01T01:00:00Z"} if deleting else {}),
    }
    status = {"phase": "Pending", "conditions": [REFUSED]} if waits else {"phase": "Running"}
    return live({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {} if waits else {"nodeName": "n0"}, "status": status})


def stuck(condition: tuple[str, str] | None, *pods: Live) -> bool:
    """Whether the graph of a Deployment with this condition is stuck."""
    conditions = [{"type": condition[0], "status": condition[1]}] if condition else []
    component = observed(kinds.DEPLOYMENT, "llm-decode", spec={"replicas": 1}, status={"observedGeneration": 1, "conditions": conditions})
    root = observed(kinds.DYNAMO_GRAPH, "llm", spec={})
    world = World((Observed(root, {"": slice_of([component])}),))
    first = FirstPass(START + timedelta(minutes=5), world, Plans(()), CONFIGURATION)
    return GRAPH in stuck_roots(first, [GRAPH], assume_nodes=False, component_pods={GRAPH: [*of_newest_template(pods)]})


@pytest.mark.parametrize(
    ("condition", "expected"), [(("ReplicaFailure", "True"), True), (("Progressing", "False"), False), (("Progressing", "True"), False)]
)
def test_a_deadline_that_a_loading_model_has_missed_is_no_end_and_a_refusal_of_pods_is(condition: tuple[str, str], expected: bool) -> None:
    assert stuck(condition, pod("new", "b", 2)) is expected


@pytest.mark.parametrize(
    ("made", "minute", "expected"), [((), 2, True), (({"name": "rack"},), 2, False), ((), 5, False)], ids=["refused", "made", "young"]
)
def test_a_pod_whose_claim_is_not_made_for_long_waits_for_ever(made: tuple[dict[str, str], ...], minute: int, expected: bool) -> None:
    waiting = pod("new", "b", minute)
    claims = [{"name": "rack", "resourceClaimTemplateName": "t"}, {"name": "own", "resourceClaimName": "c"}]
    body = {**waiting.body, "spec": {"resourceClaims": claims}, "status": {"phase": "Pending", "resourceClaimStatuses": [*made]}}

    assert stuck(None, live(body)) is expected


@pytest.mark.parametrize(
    ("reason", "expected"), [("ImagePullBackOff", True), ("CreateContainerConfigError", True), ("ContainerCreating", False)]
)
def test_a_pod_whose_container_cannot_start_needs_somebody(reason: str, expected: bool) -> None:
    body = pod("new", "b", 2).body
    waiting = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason}}}]}

    assert stuck(None, live({**body, "status": waiting})) is expected


def test_only_pods_of_the_newest_template_hold_up_an_update() -> None:
    earlier, new = pod("old", "a", 1, waits=True), pod("new", "b", 2)

    assert stuck(None, earlier)
    assert not stuck(None, earlier, new)
    assert stuck(None, pod("old", "a", 1), pod("new", "b", 2, waits=True))
    assert stuck(None, earlier, pod("new", "b", 2, deleting=True))
