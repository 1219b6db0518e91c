"""Built-in columns: what the API server prints of the kinds that ship with Kubernetes."""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from providers.sandbox.tables import ages
from providers.sandbox.tables.columns import AGE, CREATED_AT, NAME, Body, Cell, Column
from providers.sandbox.tables.pod_columns import POD

_ROLE = "node-role.kubernetes.io/"


def _at(*keys: str, default: Any = "") -> Cell:
    """The value under these keys, or `default` where there is none."""

    def cell(body: Body, now: datetime.datetime) -> Any:
        value: Any = body
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return default if value is None else value

    return cell


def _text(*keys: str, default: str = "") -> Cell:
    value = _at(*keys, default=default)
    return lambda body, now: str(value(body, now))


def _count(*keys: str) -> Cell:
    value = _at(*keys, default=())
    return lambda body, now: len(value(body, now))


def _integer(heading: str, *keys: str) -> Column:
    return Column(heading, _at(*keys, default=0), type="integer")


def _seen(read: Callable[[Body], Any]) -> Cell:
    """A cell that needs no clock."""
    return lambda body, now: read(body)


def _pairs(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def _selector(body: Body) -> str:
    selector = body["spec"].get("selector") or {}
    expressions = (_expression(each) for each in selector.get("matchExpressions") or ())
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*labels, *expressions]) or "<none>"


def _expression(each: Mapping[str, Any]) -> str:
    key, operator, values = str(each["key"]), str(each["operator"]), ",".join(sorted(each.get("values") or ()))
    forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return forms.get(operator, operator)


def _containers(body: Body) -> Sequence[Mapping[str, Any]]:
    template = (body["spec"].get("template") or {}).get("spec") or {}
    return template.get("containers") or ()


_WORKLOAD = (
    Column("Containers", _seen(lambda body: ",".join(each["name"] for each in _containers(body))), priority=1),
    Column("Images", _seen(lambda body: ",".join(each.get("image", "") for each in _containers(body))), priority=1),
)
_SELECTOR = Column("Selector", _seen(_selector), priority=1)


def _ratio(body: Body) -> str:
    return f"{(body.get('status') or {}).get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"


def _ports(service: Body) -> str:
    return ",".join(_port(port) for port in service["spec"].get("ports") or ()) or "<none>"


def _port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _external_ip(service: Body) -> str:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    balanced = [entry.get("ip") or entry.get("hostname", "") for entry in entries] if spec.get("type") == "LoadBalancer" else []
    addresses = ",".join([*balanced, *(spec.get("externalIPs") or ())])
    return addresses or ("<pending>" if spec.get("type") == "LoadBalancer" else "<none>")


def _cluster_ip(service: Body) -> str:
    return str((service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP") or "<none>"])[0])


def _node_status(node: Body) -> str:
    ready = next((each for each in (node.get("status") or {}).get("conditions") or () if each["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Body) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get("kubernetes.io/role", "")}
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(type_: str) -> Cell:
    def read(node: Body) -> str:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((str(each["address"]) for each in addresses if each["type"] == type_), "<none>")

    return _seen(read)


def _node_info(key: str) -> Cell:
    return _seen(lambda node: (((node.get("status") or {}).get("nodeInfo") or {}).get(key)) or "<unknown>")


def _targets(autoscaler: Body) -> str:
    """Up to two metrics, as `name: current/target`, and how many more there are."""
    wanted = autoscaler["spec"].get("metrics") or ()
    current = (autoscaler.get("status") or {}).get("currentMetrics") or ()
    shown = [_metric(each, current[at] if at < len(current) else {}) for at, each in enumerate(wanted[:2])]
    more = f" + {len(wanted) - 2} more..." if len(wanted) > 2 else ""
    return ", ".join(shown) + more if shown else "<none>"


def _metric(wanted: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    source = wanted["type"][:1].lower() + wanted["type"][1:]
    target, now = wanted[source].get("target") or {}, (current.get(source) or {}).get("current") or {}
    label = f"{wanted[source]['name']}: " if "name" in wanted[source] else ""
    if target.get("averageUtilization") is not None:
        seen = now.get("averageUtilization")
        return f"{label}{'<unknown>' if seen is None else f'{seen}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        average = " (avg)" if source in ("external", "object") else ""
        return f"{label}{now.get('averageValue') or '<unknown>'}/{target['averageValue']}{average}"
    return f"{label}{now.get('value') or '<unknown>'}/{target.get('value', '<auto>')}"


def _subjects(kind: str) -> Cell:
    def read(binding: Body) -> str:
        subjects = [each for each in binding.get("subjects") or () if each["kind"] == kind]
        return ", ".join(f"{each['namespace']}/{each['name']}" if kind == "ServiceAccount" else each["name"] for each in subjects)

    return _seen(read)


_BINDING = (
    NAME,
    Column("Role", _seen(lambda body: f"{body['roleRef']['kind']}/{body['roleRef']['name']}")),
    AGE,
    Column("Users", _subjects("User"), priority=1),
    Column("Groups", _subjects("Group"), priority=1),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)


def _event_age(event: Body, now: datetime.datetime) -> str:
    series = event.get("series") or {}
    seen = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return ages.since(seen or event.get("firstTimestamp"), now)


def _event_onset(event: Body, now: datetime.datetime) -> str:
    return ages.since(event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_object(event: Body) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: Body) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    parts = (
        source.get("component") or event.get("reportingComponent"),
        source.get("host") or event.get("reportingInstance"),
    )
    return ", ".join(filter(None, parts))


_EVENT = (
    Column("Last Seen", _event_age),
    Column("Type", _at("type")),
    Column("Reason", _at("reason")),
    Column("Object", _seen(_event_object)),
    Column("Subobject", _at("involvedObject", "fieldPath"), priority=1),
    Column("Source", _seen(_event_source), priority=1),
    Column("Message", _seen(lambda event: str(event.get("message") or event.get("note") or "").strip())),
    Column("First Seen", _event_onset, priority=1),
    Column("Count", _seen(lambda event: event.get("count") or (event.get("series") or {}).get("count") or 1), priority=1),
    Column("Name", NAME.cell, format="name", priority=1),
)


def _claim_state(claim: Body) -> str:
    """DRA's own words: pending, allocated, reserved, and deleted in front of them."""
    status = claim.get("status") or {}
    words = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    words += ["allocated"] if status.get("allocation") else []
    words += ["reserved"] if status.get("reservedFor") else []
    return ",".join([*words, *([] if words[-1:] and words[-1] != "deleted" else ["pending"])])


def _job_state(job: Body) -> str:
    conditions = {each["type"] for each in (job.get("status") or {}).get("conditions") or () if each["status"] == "True"}
    states = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    if job["metadata"].get("deletionTimestamp") and not conditions & {"Complete", "Failed"}:
        return "Terminating"
    return next((state for state in states if state in conditions), "Running")


def _job_duration(job: Body, now: datetime.datetime) -> str:
    status = job.get("status") or {}
    start, end = ages.moment(status.get("startTime")), ages.moment(status.get("completionTime"))
    return ages.human(((end or now) - start).total_seconds()) if start else ""


def _job_completions(job: Body) -> str:
    wanted = job["spec"].get("completions")
    return f"{(job.get('status') or {}).get('succeeded', 0)}/{1 if wanted is None else wanted}"


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Iterable[str]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes)


def _bound(claim: Body) -> Mapping[str, Any]:
    """The status of a claim that has found its volume; before that there is nothing to print."""
    return (claim.get("status") or {}) if claim["spec"].get("volumeName") else {}


BUILTIN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Pod"): POD,
    ("", "Service"): (
        NAME,
        Column("Type", _text("spec", "type")),
        Column("Cluster-IP", _seen(_cluster_ip)),
        Column("External-IP", _seen(_external_ip)),
        Column("Port(s)", _seen(_ports)),
        AGE,
        Column("Selector", _seen(lambda body: _pairs(body["spec"].get("selector"))), priority=1),
    ),
    ("", "Node"): (
        NAME,
        Column("Status", _seen(_node_status)),
        Column("Roles", _seen(_node_roles)),
        AGE,
        Column("Version", _text("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), priority=1),
        Column("External-IP", _address("ExternalIP"), priority=1),
        Column("OS-Image", _node_info("osImage"), priority=1),
        Column("Kernel-Version", _node_info("kernelVersion"), priority=1),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), priority=1),
    ),
    ("", "Namespace"): (NAME, Column("Status", _text("status", "phase")), AGE),
    ("", "Secret"): (NAME, Column("Type", _at("type")), Column("Data", _count("data")), AGE),
    ("", "ConfigMap"): (NAME, Column("Data", _seen(lambda b: len(b.get("data") or ()) + len(b.get("binaryData") or ()))), AGE),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "PersistentVolumeClaim"): (
        NAME,
        Column(
            "Status", _seen(lambda b: "Terminating" if b["metadata"].get("deletionTimestamp") else (b.get("status") or {}).get("phase", ""))
        ),
        Column("Volume", _at("spec", "volumeName")),
        Column("Capacity", _seen(lambda body: (_bound(body).get("capacity") or {}).get("storage", ""))),
        Column("Access Modes", _seen(lambda body: _modes(_bound(body).get("accessModes") or ()))),
        Column("StorageClass", _at("spec", "storageClassName")),
        Column("VolumeAttributesClass", _at("spec", "volumeAttributesClassName", default="<unset>")),
        AGE,
        Column("VolumeMode", _at("spec", "volumeMode", default="<unset>"), priority=1),
    ),
    ("apps", "Deployment"): (
        NAME,
        Column("Ready", _seen(_ratio)),
        Column("Up-to-date", _at("status", "updatedReplicas", default=0)),
        Column("Available", _at("status", "availableReplicas", default=0)),
        AGE,
        *_WORKLOAD,
        _SELECTOR,
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        _integer("Desired", "spec", "replicas"),
        _integer("Current", "status", "replicas"),
        _integer("Ready", "status", "readyReplicas"),
        AGE,
        *_WORKLOAD,
        _SELECTOR,
    ),
    ("apps", "StatefulSet"): (NAME, Column("Ready", _seen(_ratio)), AGE, *_WORKLOAD),
    ("apps", "DaemonSet"): (
        NAME,
        _integer("Desired", "status", "desiredNumberScheduled"),
        _integer("Current", "status", "currentNumberScheduled"),
        _integer("Ready", "status", "numberReady"),
        _integer("Up-to-date", "status", "updatedNumberScheduled"),
        _integer("Available", "status", "numberAvailable"),
        Column("Node Selector", _seen(lambda b: _pairs((b["spec"]["template"].get("spec") or {}).get("nodeSelector")))),
        AGE,
        *_WORKLOAD,
        _SELECTOR,
    ),
    ("batch", "Job"): (
        NAME,
        Column("Status", _seen(_job_state)),
        Column("Completions", _seen(_job_completions)),
        Column("Duration", _job_duration),
        AGE,
        *_WORKLOAD,
        _SELECTOR,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        Column("Reference", _seen(lambda b: f"{b['spec']['scaleTargetRef']['kind']}/{b['spec']['scaleTargetRef']['name']}")),
        Column("Targets", _seen(_targets)),
        Column("MinPods", _text("spec", "minReplicas", default="<unset>")),
        Column("MaxPods", _at("spec", "maxReplicas")),
        Column("Replicas", _at("status", "currentReplicas", default=0)),
        AGE,
    ),
    ("autoscaling", "Scale"): (NAME, _integer("Desired", "spec", "replicas"), _integer("Available", "status", "replicas"), AGE),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "Role"): (NAME, CREATED_AT),
    ("rbac.authorization.k8s.io", "ClusterRole"): (NAME, CREATED_AT),
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", _at("spec", "holderIdentity")), AGE),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        Column("Min Available", _text("spec", "minAvailable", default="N/A")),
        Column("Max Unavailable", _text("spec", "maxUnavailable", default="N/A")),
        _integer("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        _integer("Value", "value"),
        Column("Global-Default", _at("globalDefault", default=False), type="boolean"),
        AGE,
        Column("PreemptionPolicy", _at("preemptionPolicy")),
    ),
    ("resource.k8s.io", "ResourceClaim"): (NAME, Column("State", _seen(_claim_state)), AGE),
    ("resource.k8s.io", "ResourceClaimTemplate"): (NAME, AGE),
    ("resource.k8s.io", "DeviceClass"): (NAME, AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        Column("Node", _at("spec", "nodeName", default="<unset>")),
        Column("Driver", _at("spec", "driver")),
        Column("Pool", _at("spec", "pool", "name")),
        AGE,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (NAME, CREATED_AT),
}
"""Columns by group and kind, whatever the version."""
