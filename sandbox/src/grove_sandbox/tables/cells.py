"""Cells: the formatters that `columns.yaml` names. Each makes a cell of the value at a column's path."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grove_sandbox.product import Body
from grove_sandbox.tables import ages, pod_cells

_ROLE = "node-role.kubernetes.io/"


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _selector(selector: Body) -> str:
    expressions = [_expression(expression) for expression in selector.get("matchExpressions") or ()]
    return ",".join(filter(None, [_pairs(selector.get("matchLabels") or {}), *expressions]))


def _expression(expression: Body) -> str:
    key, operator, values = str(expression["key"]), str(expression["operator"]), ",".join(sorted(expression.get("values") or ()))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return forms.get(operator, operator)


def _lower_reference(reference: Body) -> str:
    return f"{reference.get('kind', '').lower()}/{reference.get('name', '')}"


def _data_keys(body: Body) -> int:
    return len(body.get("data") or ()) + len(body.get("binaryData") or ())


def _ready_replicas(body: Body) -> str:
    return f"{_status(body).get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"


def _service_ports(ports: Sequence[Body]) -> str:
    return ",".join(_port(port) for port in ports)


def _port(port: Body) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _service_external_ip(service: Body) -> str:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") != "LoadBalancer":
        return ",".join(spec.get("externalIPs") or ())
    ingress = (_status(service).get("loadBalancer") or {}).get("ingress") or ()
    balanced = [entry.get("ip") or entry.get("hostname", "") for entry in ingress]
    return ",".join([*balanced, *(spec.get("externalIPs") or ())]) or "<pending>"


def _node_status(node: Body) -> str:
    ready = next((condition["status"] for condition in _status(node).get("conditions") or () if condition["type"] == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else word


def _node_roles(labels: Mapping[str, str]) -> str:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get("kubernetes.io/role", "")}
    return ",".join(sorted(roles - {""}))


def _event_source(event: Body) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component, host = source.get("component") or event.get("reportingComponent"), source.get("host") or event.get("reportingInstance")
    return ", ".join(filter(None, (component, host)))


def _device_claim_state(claim: Body) -> str:
    status = _status(claim)
    words = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    uses = [word for word, field in (("allocated", "allocation"), ("reserved", "reservedFor")) if status.get(field)]
    return ",".join(words + (uses or ["pending"]))


def _gang_policy(policy: Body) -> str:
    return "Gang" if policy.get("gang") else "Basic"


def _pod_group_status(conditions: Sequence[Body]) -> str:
    by_type = {condition["type"]: condition for condition in conditions}
    if "DisruptionTarget" in by_type:
        return str(by_type["DisruptionTarget"]["reason"])
    scheduled = by_type.get("PodGroupInitiallyScheduled")
    return "" if scheduled is None else "Scheduled" if scheduled["status"] == "True" else "Unschedulable"


def _status(body: Body) -> Body:
    return body.get("status") or {}


FORMATTERS: Mapping[str, Callable[[Any], Any]] = {
    "value": lambda value: value,
    "text": lambda value: str(value).strip(),
    "data_keys": _data_keys,
    "device_claim_state": _device_claim_state,
    "event_source": _event_source,
    "gang_policy": _gang_policy,
    "lower_reference": _lower_reference,
    "node_roles": _node_roles,
    "node_status": _node_status,
    "pairs": _pairs,
    "pod_group_status": _pod_group_status,
    "pod_readiness_gates": pod_cells.readiness_gates,
    "pod_ready": pod_cells.ready,
    "pod_status": pod_cells.status,
    "ready_replicas": _ready_replicas,
    "selector": _selector,
    "service_external_ip": _service_external_ip,
    "service_ports": _service_ports,
}
TIMED_FORMATTERS: Mapping[str, Callable[[Any, datetime.datetime], Any]] = {
    "age": ages.since,
    "pod_restarts": pod_cells.restarts,
}
"""The formatters that need the time as well."""
