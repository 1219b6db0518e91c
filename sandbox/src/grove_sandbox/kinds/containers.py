"""Containers: the defaults and faults of pod specs, in pods and in templates."""

from collections.abc import Callable, Iterator
from typing import Any

from grove_sandbox.kinds import metadata
from grove_sandbox.kinds.rules import Draft, fill
from grove_sandbox.product import Body, label_faults, qualified_faults, subdomain_faults
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600


_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FIELD_REFERENCE = {"apiVersion": "v1"}


def default_spec(spec: Draft) -> None:
    """Fill in the defaults of a pod spec."""
    fill(spec, _SPEC)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for container in _all_containers(spec):
        _default_container(container)
        if spec.get("hostNetwork"):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port["containerPort"])


def _all_containers(spec: Body) -> Iterator[Draft]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _default_container(container: Draft) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    fill(container, _CONTAINER)
    for port in container.get("ports") or ():
        fill(port, {"protocol": "TCP"})
    for variable in container.get("env") or ():
        if reference := (variable.get("valueFrom") or {}).get("fieldRef"):
            fill(reference, _FIELD_REFERENCE)
    for key in _PROBES:
        if probe := container.get(key):
            _default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _default_http(hook)
    if limits := container["resources"].get("limits"):
        requests = container["resources"].setdefault("requests", {})
        for resource, amount in limits.items():
            requests.setdefault(resource, amount)


def _is_latest(image: str) -> bool:
    name = image.rpartition("/")[2]
    return "@" not in name and (":" not in name or name.endswith(":latest"))


def _default_probe(probe: Draft) -> None:
    for key, value in _PROBE.items():
        probe[key] = probe.get(key) or value
    _default_http(probe)
    if (grpc := probe.get("grpc")) is not None:
        fill(grpc, {"service": ""})


def _default_http(handler: Draft) -> None:
    if http := handler.get("httpGet"):
        fill(http, {"path": "/", "scheme": "HTTP"})


def _default_volume(volume: Draft) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            fill(volume[source], {"defaultMode": _FILE_MODE})
    if volume.get("hostPath") is not None:
        fill(volume["hostPath"], {"type": ""})
    sources = (volume.get("projected") or {}).get("sources") or ()
    for source in sources:
        if token := source.get("serviceAccountToken"):
            fill(token, {"expirationSeconds": _TOKEN_SECONDS})
    for downward in (volume.get("downwardAPI"), *(source.get("downwardAPI") for source in sources)):
        for item in (downward or {}).get("items") or ():
            if reference := item.get("fieldRef"):
                fill(reference, _FIELD_REFERENCE)


# --- validation

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULLS = ("Always", "IfNotPresent", "Never")


def spec_faults(spec: Body, path: str) -> list[Cause]:
    """The faults of a pod spec."""
    faults = _volume_faults(spec.get("volumes") or (), f"{path}.volumes")
    if not spec.get("containers"):
        faults.append(causes.required(f"{path}.containers"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for key in ("containers", "initContainers"):
        used: set[str] = set()
        for at, container in enumerate(spec.get(key) or ()):
            faults += _container_faults(container, f"{path}.{key}[{at}]", used, volumes)
    if (restart := spec.get("restartPolicy")) not in _RESTARTS:
        faults.append(causes.unsupported(f"{path}.restartPolicy", restart, _RESTARTS))
    if (dns := spec.get("dnsPolicy")) not in _DNS:
        faults.append(causes.unsupported(f"{path}.dnsPolicy", dns, _DNS))
    faults += metadata.label_faults(spec.get("nodeSelector"), f"{path}.nodeSelector")
    if (group := spec.get("schedulingGroup")) is not None:
        faults += _group_faults(group.get("podGroupName"), f"{path}.schedulingGroup.podGroupName")
    return faults + _named_faults(spec, path)


def _group_faults(name: str | None, path: str) -> list[Cause]:
    """The faults of the name of a pod's PodGroup."""
    if name is None:
        return [causes.invalid(path, None, "must specify one of: `podGroupName`")]
    return [causes.invalid(path, name, fault) for fault in subdomain_faults(name)]


_NAMED: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("serviceAccountName", subdomain_faults),
    ("nodeName", subdomain_faults),
    ("hostname", label_faults),
    ("subdomain", label_faults),
)


def _named_faults(spec: Body, path: str) -> list[Cause]:
    faults = [causes.invalid(f"{path}.{key}", spec[key], fault) for key, check in _NAMED if spec.get(key) for fault in check(spec[key])]
    gates = [gate["name"] for gate in spec.get("schedulingGates") or ()]
    for at, gate in enumerate(gates):
        where = f"{path}.schedulingGates[{at}]"
        faults += [causes.invalid(where, gate, fault) for fault in qualified_faults(gate)]
        if gate in gates[:at]:
            faults.append(causes.duplicate(where, gate))
    return faults


def _volume_faults(volumes: Any, path: str) -> list[Cause]:
    used: set[str] = set()
    return [cause for at, volume in enumerate(volumes) for cause in _name_faults(volume.get("name", ""), f"{path}[{at}].name", used)]


def _name_faults(name: str, path: str, used: set[str]) -> list[Cause]:
    """The faults of a name in a list in which every name is a label and unique; the name is added to `used`."""
    faults = [causes.invalid(path, name, fault) for fault in label_faults(name)] if name else [causes.required(path)]
    if name in used:
        faults.append(causes.duplicate(path, name))
    used.add(name)
    return faults


def _container_faults(container: Body, path: str, used: set[str], volumes: set[Any]) -> list[Cause]:
    faults = _name_faults(container.get("name", ""), f"{path}.name", used)
    if not container.get("image"):
        faults.append(causes.required(f"{path}.image"))
    for at, port in enumerate(container.get("ports") or ()):
        if not 0 < port.get("containerPort", 0) < 65536:
            where = f"{path}.ports[{at}].containerPort"
            number = port.get("containerPort", 0)
            faults.append(causes.required(where) if not number else causes.invalid(where, number, "must be between 1 and 65535, inclusive"))
    for at, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            faults.append(causes.required(f"{path}.env[{at}].name"))
    for at, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            faults.append(causes.not_found(f"{path}.volumeMounts[{at}].name", mount.get("name")))
    if (pull := container.get("imagePullPolicy")) not in _PULLS:
        faults.append(causes.unsupported(f"{path}.imagePullPolicy", pull, _PULLS))
    return faults
