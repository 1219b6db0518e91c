"""PodGangs and sets for the tests of scheduler back ends."""

from typing import Any

from resources.ports.scheduler import LabelsAndAnnotations, SetMetadata

Body = dict[str, Any]


def packed(**sides: str) -> Body:
    """A topology constraint with node label keys."""
    return {"topologyConstraint": {"packConstraint": sides}}


def pod_group(name: str, minimum: int, **constraint: Any) -> Body:
    """An entry of `spec.podgroups`."""
    return {"name": name, "minReplicas": minimum, "podReferences": [], **constraint}


def podgang(*pod_groups: Body, annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """The PodGang `d-0` as the engine renders it."""
    metadata: Body = {"name": "d-0", "namespace": "ml", "labels": {"app": "d", "app.kubernetes.io/part-of": "d"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"podgroups": list(pod_groups), **spec}}


def metadata(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **cliques: LabelsAndAnnotations
) -> SetMetadata:
    """The metadata of the set `d`."""
    return SetMetadata("ml", "d", LabelsAndAnnotations(labels or {}, annotations or {}), cliques)
