"""Containers: the defaults and rules of what a pod template holds, wherever it stands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from providers.sandbox.kinds import metadata
from providers.sandbox.types import causes, names
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
Draft = dict[str, Any]
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600


def default_template(template: Draft) -> None:
    """Fill in a pod template as the server does."""
    default_spec(template["spec"])


def default_spec(spec: Draft) -> None:
    """Fill in a pod spec as the server does."""
    spec.setdefault("restartPolicy", "Always")
    if spec.setdefault("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
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
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if field := (variable.get("valueFrom") or {}).get("fieldRef"):
            field["apiVersion"] = field.get("apiVersion") or "v1"
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
    last = image.rpartition("/")[2]
    return "@" not in last and (":" not in last or last.endswith(":latest"))


def _default_probe(probe: Draft) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    _default_http(probe)
    if (grpc := probe.get("grpc")) is not None:
        grpc.setdefault("service", "")


def _default_http(handler: Draft) -> None:
    if http := handler.get("httpGet"):
        http["path"] = http.get("path") or "/"
        http["scheme"] = http.get("scheme") or "HTTP"


def _default_volume(volume: Draft) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if (chosen := volume.get(source)) is not None:
            chosen.setdefault("defaultMode", _FILE_MODE)
    if (host := volume.get("hostPath")) is not None:
        host.setdefault("type", "")
    parts = (volume.get("projected") or {}).get("sources") or ()
    for part in parts:
        if token := part.get("serviceAccountToken"):
            token.setdefault("expirationSeconds", _TOKEN_SECONDS)
    for downward in (volume.get("downwardAPI"), *(part.get("downwardAPI") for part in parts)):
        for item in (downward or {}).get("items") or ():
            if field := item.get("fieldRef"):
                field["apiVersion"] = field.get("apiVersion") or "v1"


# --- validation

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULLS = ("Always", "IfNotPresent", "Never")


def spec_faults(spec: Body, path: str) -> list[Cause]:
    """What is wrong with a pod spec."""
    found = _volume_faults(spec.get("volumes") or (), f"{path}.volumes")
    if not spec.get("containers"):
        found.append(causes.required(f"{path}.containers"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for key in ("containers", "initContainers"):
        seen: set[str] = set()
        for at, container in enumerate(spec.get(key) or ()):
            found += _container_faults(container, f"{path}.{key}[{at}]", seen, volumes)
    if (restart := spec.get("restartPolicy")) not in _RESTARTS:
        found.append(causes.unsupported(f"{path}.restartPolicy", restart, _RESTARTS))
    if (dns := spec.get("dnsPolicy")) not in _DNS:
        found.append(causes.unsupported(f"{path}.dnsPolicy", dns, _DNS))
    found += metadata.label_faults(spec.get("nodeSelector"), f"{path}.nodeSelector")
    return found + _named_faults(spec, path)


_NAMED: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("serviceAccountName", names.subdomain_faults),
    ("nodeName", names.subdomain_faults),
    ("hostname", names.label_faults),
    ("subdomain", names.label_faults),
)


def _named_faults(spec: Body, path: str) -> list[Cause]:
    found = [causes.invalid(f"{path}.{key}", spec[key], fault) for key, check in _NAMED if spec.get(key) for fault in check(spec[key])]
    seen: set[str] = set()
    for at, gate in enumerate(spec.get("schedulingGates") or ()):
        where = f"{path}.schedulingGates[{at}]"
        found += [causes.invalid(where, gate["name"], fault) for fault in names.qualified_faults(gate["name"])]
        if gate["name"] in seen:
            found.append(causes.duplicate(where, gate["name"]))
        seen.add(gate["name"])
    return found


def _volume_faults(volumes: Any, path: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for at, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not name:
            found.append(causes.required(f"{path}[{at}].name"))
        else:
            found += [causes.invalid(f"{path}[{at}].name", name, fault) for fault in names.label_faults(name)]
        if name in seen:
            found.append(causes.duplicate(f"{path}[{at}].name", name))
        seen.add(name)
    return found


def _container_faults(container: Body, path: str, seen: set[str], volumes: set[Any]) -> list[Cause]:
    found: list[Cause] = []
    name = container.get("name", "")
    if not name:
        found.append(causes.required(f"{path}.name"))
    else:
        found += [causes.invalid(f"{path}.name", name, fault) for fault in names.label_faults(name)]
    if name in seen:
        found.append(causes.duplicate(f"{path}.name", name))
    seen.add(name)
    if not container.get("image"):
        found.append(causes.required(f"{path}.image"))
    for at, port in enumerate(container.get("ports") or ()):
        if not 0 < port.get("containerPort", 0) < 65536:
            where = f"{path}.ports[{at}].containerPort"
            number = port.get("containerPort", 0)
            found.append(causes.required(where) if not number else causes.invalid(where, number, "must be between 1 and 65535, inclusive"))
    for at, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            found.append(causes.required(f"{path}.env[{at}].name"))
    for at, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            found.append(causes.not_found(f"{path}.volumeMounts[{at}].name", mount.get("name")))
    if (pull := container.get("imagePullPolicy")) not in _PULLS:
        found.append(causes.unsupported(f"{path}.imagePullPolicy", pull, _PULLS))
    return found
