"""Manifest: the fields that all bodies have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.ids import Kind


def manifest(
    kind: Kind,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """A body with `apiVersion`, `kind`, metadata and `fields`; empty annotations and finalizers are left out."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}
