"""What Argo CD and Flux conclude from statuses, with the checks of `deploy/gitops`."""

from typing import Any, Final

import pytest

from tests.gitops_tools import argo_cd, flux

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


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_argo_cd_sees_the_health(body: dict[str, Any], health: str) -> None:
    assert argo_cd(body) == health


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_flux_sees_the_same(body: dict[str, Any], health: str) -> None:
    assert flux(body) == CEL_NAMES[health]


def test_lost_pods_fail_a_wave_of_argo_cd_and_not_the_wait_of_flux() -> None:
    body = ours(condition("Ready", "False", "MinAvailableBreached"), condition("Reconciling", reason="MinAvailableBreached"))

    assert (argo_cd(body), flux(body)) == ("Degraded", "inProgress")
