"""What Argo CD and Flux conclude from statuses, with the checks of `deploy/gitops`."""

import json
from collections.abc import Iterable
from typing import Any, Final

import pytest
from lupa import LuaError

from engine.resource import Body
from resources.install.webhooks import convert_service
from resources.schema.crds import Conversion, crds
from tests.builders import clique, podcliqueset
from tests.gitops_tools import acted, actions, argo_cd, flux
from tests.kstatus import kstatus

CEL_NAMES: Final = {"Healthy": "current", "Degraded": "failed", "Progressing": "inProgress"}


def pcs(status: dict[str, Any] | None, replicas: int | None = 2) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"kind": "PodCliqueSet", "metadata": {"generation": 3}, "spec": spec, "status": status or {}}


def graph(*others: str, **ready: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "message": "text", **ready}] if ready else []
    conditions += [condition(each) for each in others]
    return {"kind": "DynamoGraphDeployment", "metadata": {"generation": 3}, "spec": {}, "status": {"conditions": conditions}}


def condition(type: str, status: str = "True", reason: str = "Any", generation: int = 3) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": "text", "observedGeneration": generation}


def ours(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    """A set with the conditions that the engine writes."""
    return pcs({"observedGeneration": 3, "replicas": 2, "conditions": [*conditions]} | status)


FULL: Final = {"observedGeneration": 3, "replicas": 2, "availableReplicas": 2}
CASES: Final = {
    "no status": (pcs(None), "Progressing"),
    "created, not complete": (pcs({"replicas": 2, "availableReplicas": 0}), "Progressing"),
    "coming up": (pcs(FULL | {"availableReplicas": 1}), "Progressing"),
    "edited": (pcs(FULL | {"observedGeneration": 2}), "Progressing"),
    "updating": (pcs(FULL | {"updateProgress": {"updateStartedAt": "2026-11-27T12:00:00Z"}}), "Progressing"),
    "updated": (pcs(FULL | {"updateProgress": {"updateEndedAt": "2026-11-27T12:00:00Z"}}), "Healthy"),
    "settled": (pcs(FULL), "Healthy"),
    "one replica by default": (pcs({"observedGeneration": 3, "availableReplicas": 1}, None), "Healthy"),
    "none of one by default": (pcs({"observedGeneration": 3, "availableReplicas": 0}, None), "Progressing"),
    "scaled to zero": (pcs({"observedGeneration": 3, "replicas": 0}, 0), "Healthy"),
    "scaling to zero": (pcs(FULL, 0), "Progressing"),
    "ready": (ours(condition("Ready")), "Healthy"),
    "reconciling": (ours(condition("Ready", "False"), condition("Reconciling")), "Progressing"),
    "updating and ready in time": (ours(condition("Ready", "False"), condition("Reconciling"), availableReplicas=2), "Progressing"),
    "stalled": (ours(condition("Ready", "False"), condition("Stalled")), "Degraded"),
    "stalled in an update": (ours(condition("Ready", "False"), condition("Stalled"), updateProgress={"x": 1}), "Degraded"),
    "stalled before an edit": (ours(condition("Ready", "False", generation=2), condition("Stalled", generation=2)), "Progressing"),
    "ready, then with Grove's operator": (ours(condition("Ready", generation=2), availableReplicas=1), "Progressing"),
    "not ready, then with Grove's operator": (ours(condition("Ready", "False", generation=2), availableReplicas=2), "Healthy"),
    "graph that is stalled": (graph("Stalled", status="False", reason="some", observedGeneration=3), "Degraded"),
    "graph without a status": (graph(), "Progressing"),
    "graph that is ready": (graph(status="True", reason="all_resources_are_ready", observedGeneration=3), "Healthy"),
    "graph that was edited": (graph(status="True", reason="all_resources_are_ready", observedGeneration=2), "Progressing"),
    "graph that comes up": (graph(status="False", reason="some_resources_are_not_ready", observedGeneration=3), "Progressing"),
    "graph that is invalid": (graph(status="False", reason="ValidationFailed", observedGeneration=3), "Degraded"),
    "graph that was invalid": (graph(status="False", reason="ValidationFailed", observedGeneration=2), "Progressing"),
}


def child(kind: str, status: dict[str, Any] | None, **spec: Any) -> dict[str, Any]:
    """An object of Argo CD's tree below a set or a graph."""
    return {"kind": kind, "metadata": {"generation": 3}, "spec": spec, **({"status": status} if status is not None else {})}


SEEN: Final = {"observedGeneration": 3}
UPDATING: Final = {"updateProgress": {"updateStartedAt": "2026-11-27T12:00:00Z"}}
AVAILABLE: Final = {"conditions": [{"type": "Available", "status": "True"}]}
CHILDREN: Final = {
    "clique without a status": (child("PodClique", None, replicas=2), "Progressing"),
    "clique whose pods do not exist": (child("PodClique", {"readyReplicas": 2, "observedGeneration": 2}, replicas=2), "Progressing"),
    "clique that comes up": (child("PodClique", SEEN | {"readyReplicas": 1}, replicas=2, minAvailable=2), "Progressing"),
    "clique with its minimum": (child("PodClique", SEEN | {"readyReplicas": 1}, replicas=2, minAvailable=1), "Healthy"),
    "clique below its minimum by intent": (child("PodClique", SEEN | {"readyReplicas": 1}, replicas=1, minAvailable=2), "Healthy"),
    "clique that is updated": (child("PodClique", SEEN | UPDATING | {"readyReplicas": 2}, replicas=2), "Progressing"),
    "group without a status": (child("PodCliqueScalingGroup", None, replicas=2), "Progressing"),
    "group that comes up": (child("PodCliqueScalingGroup", SEEN | {"availableReplicas": 0}, replicas=2, minAvailable=1), "Progressing"),
    "group with its minimum": (child("PodCliqueScalingGroup", SEEN | {"availableReplicas": 1}, replicas=2, minAvailable=1), "Healthy"),
    "group that is updated": (child("PodCliqueScalingGroup", SEEN | UPDATING | {"availableReplicas": 2}, replicas=2), "Progressing"),
    "LWS without a status": (child("LeaderWorkerSet", None, replicas=2), "Progressing"),
    "LWS that is available": (child("LeaderWorkerSet", AVAILABLE | {"readyReplicas": 2, "updatedReplicas": 2}, replicas=2), "Healthy"),
    "LWS that was edited": (
        child("LeaderWorkerSet", AVAILABLE | {"readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 2}, replicas=2),
        "Progressing",
    ),
    "LWS that lacks a group": (child("LeaderWorkerSet", AVAILABLE | {"readyReplicas": 1, "updatedReplicas": 2}, replicas=2), "Progressing"),
    "LWS whose update waits at a partition": (
        child(
            "LeaderWorkerSet",
            AVAILABLE | {"readyReplicas": 2, "updatedReplicas": 1},
            replicas=2,
            rolloutStrategy={"rollingUpdateConfiguration": {"partition": 1}},
        ),
        "Healthy",
    ),
    "LWS that is updated": (child("LeaderWorkerSet", {"readyReplicas": 2, "updatedReplicas": 1}, replicas=2), "Progressing"),
    "LWS that is scaled to zero": (child("LeaderWorkerSet", {"replicas": 0}, replicas=0), "Healthy"),
}


@pytest.mark.parametrize(("body", "health"), CHILDREN.values(), ids=CHILDREN)
def test_argo_cd_sees_the_health_of_what_a_set_or_a_graph_consists_of(body: dict[str, Any], health: str) -> None:
    assert argo_cd(body) == health


@pytest.mark.parametrize("kind", ["PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "LeaderWorkerSet"])
def test_an_action_of_argo_cd_scales(kind: str) -> None:
    body = child(kind, None, replicas=2, minAvailable=1)

    assert "scale" in actions(body)
    assert acted(body, "scale", replicas="3") == child(kind, None, replicas=3, minAvailable=1)
    for wrong in ("", "many", "-1", "1.5"):
        with pytest.raises(LuaError, match="replicas must be"):
            acted(body, "scale", replicas=wrong)


def test_an_action_of_argo_cd_restarts_the_pods_of_a_set() -> None:
    body = podcliqueset("web", clique("a"), clique("b", 2))
    body["metadata"]["generation"] = 1

    restarted = acted(body, "restart")

    annotations = [each.pop("annotations") for each in restarted["spec"]["template"]["cliques"]]
    assert actions(body) == ["restart", "scale"] and restarted["spec"]["replicas"] == body["spec"]["replicas"]
    assert [each["name"] for each in restarted["spec"]["template"]["cliques"]] == ["a", "b"]
    assert [list(each) for each in annotations] == [["kubectl.kubernetes.io/restartedAt"]] * 2


def test_an_action_of_argo_cd_restarts_the_services_of_a_graph() -> None:
    given = {"id": "1", "strategy": {"type": "Parallel"}}
    body = {"kind": "DynamoGraphDeployment", "metadata": {"generation": 1}, "spec": {"restart": given}}

    restart = acted(body, "restart")["spec"]["restart"]

    assert actions(body) == ["restart"] and restart["id"] != "1" and restart["strategy"] == {"type": "Parallel"}


def test_an_action_of_argo_cd_restarts_the_groups_of_a_leader_worker_set() -> None:
    body = child("LeaderWorkerSet", None, leaderWorkerTemplate={"size": 2, "workerTemplate": {"metadata": {"annotations": {"x": "y"}}}})

    template = acted(body, "restart")["spec"]["leaderWorkerTemplate"]["workerTemplate"]

    assert template["metadata"]["annotations"].keys() == {"x", "kubectl.kubernetes.io/restartedAt"}


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_argo_cd_sees_the_health(body: dict[str, Any], health: str) -> None:
    assert argo_cd(body) == health


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_flux_sees_the_same(body: dict[str, Any], health: str) -> None:
    assert flux(body) == CEL_NAMES[health]


@pytest.mark.parametrize("kind", ["PodCliqueSet", "DynamoGraphDeployment"])
def test_an_object_whose_status_was_never_written_is_not_taken_for_healthy(kind: str) -> None:
    body = child(kind, None)

    assert kstatus(body) == "Current"
    assert (argo_cd(body), flux(body)) == ("Progressing", "inProgress")


def test_lost_pods_fail_a_wave_of_argo_cd_and_not_the_wait_of_flux() -> None:
    body = ours(condition("Ready", "False", "MinAvailableBreached"), condition("Reconciling", reason="MinAvailableBreached"))

    assert (argo_cd(body), flux(body)) == ("Degraded", "inProgress")


def test_only_the_graphs_of_a_whole_installation_are_too_large_for_the_annotation_of_a_client_side_apply() -> None:
    def too_large(definitions: Iterable[Body]) -> list[str]:
        return [body["metadata"]["name"] for body in definitions if len(json.dumps(body, separators=(",", ":"))) > 262_144]

    assert too_large(crds()) == []
    assert too_large(crds(Conversion(convert_service("grove-system", 9443)))) == ["dynamographdeployments.nvidia.com"]
