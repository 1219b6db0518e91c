"""Pod references: the objects that a pod names and without which it does not start."""

from collections.abc import Iterator
from typing import Any, Final

from engine.ids import ResourceId
from resources.base.fields import mapping, mappings
from resources.model.pod_facts import claims_of

ALWAYS_THERE: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
"""Kind and name of what Kubernetes makes in each namespace."""
SYSTEM: Final = "system-"
"""How the names of Kubernetes' own priority classes begin."""


def references_of(namespace: str, pod_spec: Any) -> Iterator[ResourceId]:
    """The objects that a pod spec names and that have to exist, some of them more than once. It is not validated."""
    spec = mapping(pod_spec)
    yield from claims_of(namespace, spec)
    for kind, name in _named(spec):
        if isinstance(name, str) and name and (kind, name) not in ALWAYS_THERE:
            yield ResourceId("", kind, namespace, name)
    if isinstance(name := spec.get("priorityClassName"), str) and name and not name.startswith(SYSTEM):
        yield ResourceId("scheduling.k8s.io", "PriorityClass", "", name)
    if isinstance(name := spec.get("runtimeClassName"), str) and name:
        yield ResourceId("node.k8s.io", "RuntimeClass", "", name)


def _named(spec: Any) -> Iterator[tuple[str, Any]]:
    """Kind and name of each Secret, ConfigMap and service account that is not optional."""
    yield "ServiceAccount", spec.get("serviceAccountName")
    for secret in mappings(spec.get("imagePullSecrets")):
        yield "Secret", secret.get("name")
    for volume in mappings(spec.get("volumes")):
        yield from _sources((volume, *mappings(mapping(volume.get("projected")).get("sources"))), "secret", "configMap")
    for field in ("initContainers", "containers"):
        for container in mappings(spec.get(field)):
            yield from _sources(mappings(container.get("envFrom")), "secretRef", "configMapRef")
            values = [mapping(variable.get("valueFrom")) for variable in mappings(container.get("env"))]
            yield from _sources(values, "secretKeyRef", "configMapKeyRef")


def _sources(holders: Any, secret: str, config_map: str) -> Iterator[tuple[str, Any]]:
    for holder in holders:
        for field, kind in ((secret, "Secret"), (config_map, "ConfigMap")):
            source = mapping(holder.get(field))
            if source and source.get("optional") is not True:
                yield kind, source.get("name", source.get("secretName"))
