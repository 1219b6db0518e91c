"""Cells: the formatters that `columns.yaml` names. Each makes a cell of the value at a column's path."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grove_sandbox.product import Body
from grove_sandbox.tables import ages, pod_cells

_ROLE = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _selector(selector: Body) -> str:
    expressions = [_expression(expression) for expression in selector.get("matchExpressions") or ()]
    return ",".join(filter(None, [_pairs(selector.get("matchLabels") or {}), *expressions]))


def _expression(expression: Body) -> str:
    key, operator, values = str(expression["key"]), str(expression["operator"]), ",".join(sorted(expression.get("values") or ()))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return forms.get(operator, operator)


def _reference(reference: Body) -> str:
    return f"{reference['kind']}/{reference['name']}"


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


def _autoscaler_targets(autoscaler: Body) -> str:
    """Up to two metrics, as `name: current/target`, and the number of further ones."""
    metrics, current = autoscaler["spec"].get("metrics") or (), _status(autoscaler).get("currentMetrics") or ()
    shown = [_metric(metric, current[at] if at < len(current) else {}) for at, metric in enumerate(metrics[:2])]
    return ", ".join(shown) + (f" + {len(metrics) - 2} more..." if len(metrics) > 2 else "")


def _metric(metric: Body, status: Body) -> str:
    source = metric["type"][:1].lower() + metric["type"][1:]
    target, current = metric[source].get("target") or {}, (status.get(source) or {}).get("current") or {}
    label = f"{metric[source]['name']}: " if "name" in metric[source] else ""
    if target.get("averageUtilization") is not None:
        utilization = current.get("averageUtilization")
        return f"{label}{'<unknown>' if utilization is None else f'{utilization}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        average = " (avg)" if source in ("external", "object") else ""
        return f"{label}{current.get('averageValue') or '<unknown>'}/{target['averageValue']}{average}"
    return f"{label}{current.get('value') or '<unknown>'}/{target.get('value', '<auto>')}"


def _service_accounts(subjects: Sequence[Body]) -> str:
    return ", ".join(f"{each['namespace']}/{each['name']}" for each in subjects if each["kind"] == "ServiceAccount")


def _event_source(event: Body) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component, host = source.get("component") or event.get("reportingComponent"), source.get("host") or event.get("reportingInstance")
    return ", ".join(filter(None, (component, host)))


def _volume_claim_status(claim: Body) -> str:
    return "Terminating" if claim["metadata"].get("deletionTimestamp") else str(_status(claim).get("phase", ""))


def _device_claim_state(claim: Body) -> str:
    status = _status(claim)
    words = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    uses = [word for word, field in (("allocated", "allocation"), ("reserved", "reservedFor")) if status.get(field)]
    return ",".join(words + (uses or ["pending"]))


def _job_status(job: Body) -> str:
    conditions = {condition["type"] for condition in _status(job).get("conditions") or () if condition["status"] == "True"}
    if job["metadata"].get("deletionTimestamp") and not conditions & {"Complete", "Failed"}:
        return "Terminating"
    return next((state for state in _JOB_STATES if state in conditions), "Running")


def _job_completions(job: Body) -> str:
    completions = job["spec"].get("completions")
    return f"{_status(job).get('succeeded', 0)}/{1 if completions is None else completions}"


def _job_duration(job: Body, now: datetime.datetime) -> str:
    start, end = (ages.moment(_status(job).get(key)) for key in ("startTime", "completionTime"))
    return ages.human(((end or now) - start).total_seconds()) if start else ""


def _status(body: Body) -> Body:
    return body.get("status") or {}


FORMATTERS: Mapping[str, Callable[[Any], Any]] = {
    "value": lambda value: value,
    "text": lambda value: str(value).strip(),
    "access_modes": lambda modes: ",".join(_MODES.get(mode, mode) for mode in modes),
    "autoscaler_targets": _autoscaler_targets,
    "data_keys": _data_keys,
    "device_claim_state": _device_claim_state,
    "event_source": _event_source,
    "job_completions": _job_completions,
    "job_status": _job_status,
    "lower_reference": _lower_reference,
    "node_roles": _node_roles,
    "node_status": _node_status,
    "pairs": _pairs,
    "pod_readiness_gates": pod_cells.readiness_gates,
    "pod_ready": pod_cells.ready,
    "pod_status": pod_cells.status,
    "ready_replicas": _ready_replicas,
    "reference": _reference,
    "selector": _selector,
    "service_accounts": _service_accounts,
    "service_external_ip": _service_external_ip,
    "service_ports": _service_ports,
    "volume_claim_status": _volume_claim_status,
}
TIMED_FORMATTERS: Mapping[str, Callable[[Any, datetime.datetime], Any]] = {
    "age": ages.since,
    "job_duration": _job_duration,
    "pod_restarts": pod_cells.restarts,
}
"""The formatters that need the time as well."""
