"""What Argo CD and Flux conclude from statuses, with the checks of `deploy/gitops`."""

from typing import Any, Final

import pytest
import yaml
from cel_expr_python import cel
from lupa import LuaRuntime

from tests.test_layout import ROOT

FOLDER: Final = ROOT / "deploy" / "gitops"
CEL_NAMES: Final = {"Healthy": "current", "Degraded": "failed", "Progressing": "inProgress"}


def pcs(status: dict[str, Any] | None, replicas: int | None = 2) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"kind": "PodCliqueSet", "metadata": {"generation": 3}, "spec": spec, "status": status or {}}


def graph(**ready: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "message": "text", **ready}] if ready else []
    return {"kind": "DynamoGraphDeployment", "metadata": {"generation": 3}, "spec": {}, "status": {"conditions": conditions}}


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
    "graph without a status": (graph(), "Progressing"),
    "graph that is ready": (graph(status="True", reason="all_resources_are_ready", observedGeneration=3), "Healthy"),
    "graph that was edited": (graph(status="True", reason="all_resources_are_ready", observedGeneration=2), "Progressing"),
    "graph that comes up": (graph(status="False", reason="some_resources_are_not_ready", observedGeneration=3), "Progressing"),
    "graph that is invalid": (graph(status="False", reason="ValidationFailed", observedGeneration=3), "Degraded"),
    "graph that was invalid": (graph(status="False", reason="ValidationFailed", observedGeneration=2), "Progressing"),
}


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_argo_cd_sees_the_health(body: dict[str, Any], health: str) -> None:
    lua = LuaRuntime()
    lua.globals()["obj"] = lua.table_from(body, recursive=True)

    answer = lua.execute((FOLDER / f"{body['kind'].lower()}.lua").read_text())

    assert answer["status"] == health and answer["message"]


@pytest.mark.parametrize(("body", "health"), CASES.values(), ids=CASES)
def test_flux_sees_the_same(body: dict[str, Any], health: str) -> None:
    (checks,) = [each for each in yaml.safe_load((FOLDER / "flux.yaml").read_text())["healthCheckExprs"] if each["kind"] == body["kind"]]
    variables = {name: body[name] for name in ("metadata", "spec", "status")}
    environment = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))
    asked = [name for name in ("inProgress", "failed", "current") if name in checks]

    results = {name: environment.compile(checks[name]).eval(data=variables) for name in asked}

    assert all(result.type() != cel.Type.ERROR for result in results.values())
    assert next((name for name, result in results.items() if result.value() is True), "inProgress") == CEL_NAMES[health]
