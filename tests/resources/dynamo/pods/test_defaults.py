"""Defaults of each component type."""

from typing import Any

import pytest

from tests.resources.dynamo.pods.graphs import graph_of, main_of, pod, value_of


def probe(path: str, port: str, period: int, timeout: int, failures: int, **more: int) -> dict[str, Any]:
    times = {"periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures}
    return {"httpGet": {"path": path, "port": port}, **more, **times}


def test_every_container_knows_its_graph() -> None:
    main = main_of({"componentType": "other"})

    assert (main["name"], main["command"]) == ("main", ["/bin/sh", "-c"])
    assert {env["name"]: env["value"] for env in main["env"]} == {
        "DYN_NAMESPACE": "dynamo-g",
        "DYN_PARENT_DGD_K8S_NAME": "g",
        "DYN_PARENT_DGD_K8S_NAMESPACE": "ai",
    }
    assert not {"args", "ports", "livenessProbe", "readinessProbe", "startupProbe", "resources"} & main.keys()


def test_the_dynamo_namespace_of_the_service_is_used() -> None:
    assert value_of(main_of({"dynamoNamespace": "shared"}), "DYN_NAMESPACE") == "shared"


@pytest.mark.parametrize("component_type", ["worker", "prefill", "decode", "Decode"])
def test_a_worker_has_its_system_port_and_three_probes(component_type: str) -> None:
    main = main_of({"componentType": component_type})

    assert main["ports"] == [{"name": "system", "containerPort": 9090, "protocol": "TCP"}]
    assert main["livenessProbe"] == probe("/live", "system", 5, 4, 1)
    assert main["readinessProbe"] == probe("/health", "system", 10, 4, 3)
    assert main["startupProbe"] == probe("/live", "system", 10, 5, 720)
    assert value_of(main, "DYN_SYSTEM_PORT") == "9090"
    assert value_of(main, "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS") == '["generate"]'


def test_a_frontend_serves_http() -> None:
    main = main_of({"componentType": "frontend"})

    assert (main["command"], main["args"]) == (["python3"], ["-m", "dynamo.frontend"])
    assert main["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]
    assert main["livenessProbe"] == probe("/live", "http", 10, 1, 3, initialDelaySeconds=15)
    assert main["readinessProbe"] == probe("/health", "http", 10, 3, 3, initialDelaySeconds=10)
    assert "startupProbe" not in main
    assert (value_of(main, "DYNAMO_PORT"), value_of(main, "DYN_HTTP_PORT")) == ("8000", "8000")


def test_a_planner_has_metrics_and_its_service_account() -> None:
    main = main_of({"componentType": "planner"})

    assert main["ports"] == [{"name": "metrics", "containerPort": 9085, "protocol": "TCP"}]
    assert value_of(main, "PLANNER_PROMETHEUS_PORT") == "9085"
    assert pod(graph_of({"componentType": "planner"})).spec["serviceAccountName"] == "planner-serviceaccount"
    own = {"componentType": "planner", "extraPodSpec": {"serviceAccountName": "own"}}
    assert pod(graph_of(own)).spec["serviceAccountName"] == "own"


def test_a_pod_restarts_and_has_a_minute_to_end() -> None:
    spec = pod(graph_of({})).spec

    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 60)
    assert not {"serviceAccountName", "securityContext", "schedulerName", "imagePullSecrets"} & spec.keys()
