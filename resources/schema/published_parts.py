"""Published parts: where objects of our kinds have values of types that Kubernetes publishes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.ids import Kind
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUE, PODCLIQUESET
from resources.schema.issues import Path

POD_SPEC: Final = "PodSpec"
SERVICE_FIELDS: Final = {"livenessProbe": "Probe", "readinessProbe": "Probe", "extraPodSpec": "ExtraPodSpec"}
"""The fields of a graph's service whose types Kubernetes publishes -> the type."""


def pod_specs(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    """Every pod spec in an object of Grove's kinds with its path; parts of the wrong shape are skipped."""
    for path, holder in _holders(kind, body):
        spec = _at(holder, "spec")
        if isinstance(spec, Mapping) and spec.get("podSpec") is not None:
            yield (*path, "spec", "podSpec"), spec["podSpec"]


def parts(kind: Kind, body: Any) -> Iterator[tuple[Path, str, Any]]:
    """The parts of an object whose types Kubernetes publishes, each with its path and type; parts of the wrong shape are skipped."""
    yield from ((path, POD_SPEC, spec) for path, spec in pod_specs(kind, body))
    if kind == DYNAMO_GRAPH:
        yield from _graph_parts(_at(body, "spec"))
    if kind == PODCLIQUESET:
        yield from _claim_parts(_at(body, "spec", "template", "resourceClaimTemplates"))
    for path, metrics in _metrics(kind, body):
        for number, metric in enumerate(_list_or_empty(metrics)):
            for source in ("pods", "object", "external"):
                if (selector := _at(metric, source, "metric", "selector")) is not None:
                    yield (*path, number, source, "metric", "selector"), "LabelSelector", selector


def _claim_parts(templates: Any) -> Iterator[tuple[Path, str, Any]]:
    path = ("spec", "template", "resourceClaimTemplates")
    for number, template in enumerate(_list_or_empty(templates)):
        for field, type_ in (("metadata", "ClaimMetadata"), ("spec", "ResourceClaimSpec")):
            if (part := _at(template, "templateSpec", field)) is not None:
                yield (*path, number, "templateSpec", field), type_, part


def _metrics(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    """The lists of metrics of the autoscalers in an object of Grove's kinds, with their paths."""
    for path, holder in _holders(kind, body):
        yield (*path, "spec", "autoScalingConfig", "metrics"), _at(holder, "spec", "autoScalingConfig", "metrics")
    groups = _at(body, "spec", "template", "podCliqueScalingGroups") if kind == PODCLIQUESET else ()
    for number, group in enumerate(_list_or_empty(groups)):
        path = ("spec", "template", "podCliqueScalingGroups", number, "scaleConfig", "metrics")
        yield path, _at(group, "scaleConfig", "metrics")


def _graph_parts(spec: Any) -> Iterator[tuple[Path, str, Any]]:
    yield from _entries(("spec",), "EnvVar", spec, "envs")
    services = _at(spec, "services")
    for name, service in services.items() if isinstance(services, Mapping) else ():
        path = ("spec", "services", name)
        yield from _entries(path, "EnvVar", service, "envs")
        yield from _entries((*path, "resources"), "ResourceClaim", _at(service, "resources"), "claims")
        for field, type_ in SERVICE_FIELDS.items():
            if (part := _at(service, field)) is not None:
                yield (*path, field), type_, part


def _entries(path: Path, type_: str, holder: Any, field: str) -> Iterator[tuple[Path, str, Any]]:
    return (((*path, field, number), type_, entry) for number, entry in enumerate(_list_or_empty(_at(holder, field))))


def _holders(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    """The objects with a `spec.podSpec` in a body, with their paths: a PodClique itself, or the cliques of a PodCliqueSet's template."""
    if kind == PODCLIQUE:
        yield (), body
    elif kind == PODCLIQUESET:
        cliques = _at(body, "spec", "template", "cliques")
        yield from ((("spec", "template", "cliques", n), clique) for n, clique in enumerate(_list_or_empty(cliques)))


def _list_or_empty(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _at(value: Any, *keys: str) -> Any:
    """The value below these keys; None if there is none or a parent is no map."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
