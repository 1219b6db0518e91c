"""Defaults: what containers and pods of each component type have unless their user sets something else."""

from typing import Any, Final

from engine.diff import covers
from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.model.framework import WORKERS
from resources.dynamo.model.generation import SUFFIX_VARIABLE, generation_of
from resources.dynamo.model.graph import VERSIONS, GraphService, InferenceGraph
from resources.dynamo.model.runtime import image_of, runtime_of, version_of
from resources.ports.configuration import DynamoSettings

MAIN: Final = "main"
SYSTEM_PORT: Final = 9090
HTTP_PORT: Final = 8000
METRICS_PORT: Final = 9085
PLANNER_ACCOUNT: Final = "planner-serviceaccount"
GRACE_PERIOD: Final = 60
"""Seconds that a pod has to end."""


def default_container(graph: InferenceGraph, service: GraphService) -> dict[str, Any]:
    """The main container of a service's component type, without an image."""
    common = {"name": MAIN, "command": ["/bin/sh", "-c"], "env": _variables({
        "DYN_NAMESPACE": graph.dynamo_namespace,
        "DYN_PARENT_DGD_K8S_NAME": graph.name,
        "DYN_PARENT_DGD_K8S_NAMESPACE": graph.namespace,
    })}  # fmt: skip
    is_worker = service.component_type in WORKERS
    own = _CONTAINERS.get("worker" if is_worker else service.component_type, {})
    if is_worker and graph.knows_ranks and runtime_of(graph, service).is_at_least(*PATIENT_FROM):
        own = {**own, "livenessProbe": PATIENT_LIVENESS}
    generation = generation_of(graph, service)
    suffix = _variables({SUFFIX_VARIABLE: generation}) if generation else ()
    return {**common, **own, "env": [*common["env"], *own.get("env", ()), *suffix]}


def first_version_shown(pod: Body) -> str:
    """The version in which the graph of a worker's pod was first written, as the default probe shows it where the image says no version.

    Empty if the probe does not depend on it.
    """
    container = next((each for each in mappings(pod.get("containers")) if each.get("name") == MAIN), {})
    image = image_of(container)
    if image.is_official or version_of(image.tag) is not None:
        return ""
    probes = zip(VERSIONS, (_CONTAINERS["worker"]["livenessProbe"], PATIENT_LIVENESS), strict=True)
    return next((version for version, probe in probes if covers(probe, container.get("livenessProbe"))), "")


def default_pod(service: GraphService) -> dict[str, Any]:
    """The pod spec of a service's component type, without containers."""
    pod: dict[str, Any] = {"restartPolicy": "Always", "terminationGracePeriodSeconds": GRACE_PERIOD}
    return {**pod, "serviceAccountName": PLANNER_ACCOUNT} if service.component_type == "planner" else pod


def standard_variables(settings: DynamoSettings) -> list[Body]:
    """The variables of every container, with the addresses that the operator has configured."""
    values = {
        "NATS_SERVER": settings.nats_address,
        "ETCD_ENDPOINTS": settings.etcd_address,
        "MODEL_EXPRESS_URL": settings.model_express_url,
        "PROMETHEUS_ENDPOINT": settings.prometheus_endpoint,
    }
    return _variables({name: value for name, value in values.items() if value})


def _variables(values: dict[str, str]) -> list[Body]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _port(name: str, number: int) -> list[Body]:
    return [{"name": name, "containerPort": number, "protocol": "TCP"}]


def _probe(path: str, port: str, period: int, timeout: int, failures: int, delay: int = 0) -> Body:
    times = {"periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures}
    return {"httpGet": {"path": path, "port": port}, **({"initialDelaySeconds": delay} if delay else {}), **times}


PATIENT_FROM: Final = (1, 5, 0)
"""The version of the runtime from which workers from the third form on may fail several times before they count as dead."""
PATIENT_LIVENESS: Final = _probe("/live", "system", 5, 4, 3)
_CONTAINERS: Final[dict[str, dict[str, Any]]] = {
    "worker": {
        "ports": _port("system", SYSTEM_PORT),
        "livenessProbe": _probe("/live", "system", 5, 4, 1),
        "readinessProbe": _probe("/health", "system", 10, 4, 3),
        "startupProbe": _probe("/live", "system", 10, 5, 720),
        "env": _variables({"DYN_SYSTEM_PORT": str(SYSTEM_PORT), "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]'}),
    },
    "frontend": {
        "command": ["python3"],
        "args": ["-m", "dynamo.frontend"],
        "ports": _port("http", HTTP_PORT),
        "livenessProbe": _probe("/live", "http", 10, 1, 3, delay=15),
        "readinessProbe": _probe("/health", "http", 10, 3, 3, delay=10),
        "env": _variables({"DYNAMO_PORT": str(HTTP_PORT), "DYN_HTTP_PORT": str(HTTP_PORT)}),
    },
    "planner": {
        "ports": _port("metrics", METRICS_PORT),
        "env": _variables({"PLANNER_PROMETHEUS_PORT": str(METRICS_PORT)}),
    },
}
"""Component type -> the fields that differ from the common container."""
