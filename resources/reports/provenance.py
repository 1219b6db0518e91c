"""Provenance: the fields of a root that each field of an object depends on, found by changing the root's fields one at a time."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live
from engine.proposal import propose
from engine.resource import Body, Path, Resource
from engine.world import empty
from resources.base import kinds, labels
from resources.domains import requests

MAX_WORK: Final = 20_000
"""The limit for the fields of a root times its pods; beyond it the computation takes too long."""

FRAME: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""The fields that identify an object, and are never changed."""

Sources = Mapping[Path, tuple[Path, ...]]
"""Field of the object -> the fields of its root that it depends on."""


def provenance(blueprint: Blueprint, root: Live, subject: Live | Resource, part: str, now: datetime, configuration: Any) -> Sources:
    """The sources of an object's fields; empty where the root exceeds `MAX_WORK` or does not produce the object.

    The root is rendered as if none of its objects existed, once unchanged and once for each field with that field changed. A field that
    cannot be changed alone, such as a name that another field refers to, is not reported. Replicas beyond `part`, which is the object's,
    are left out.
    """
    manifest = _manifest(root, part)
    fields = list(_leaves(manifest))
    if len(fields) * max(_pods(manifest), 1) > MAX_WORK:
        return {}
    key = _key(subject.id, _labels(subject))
    before = _rendered(blueprint, manifest, key, now, configuration)
    if before is None:
        return {}
    sources: dict[Path, list[Path]] = {}
    for path, value in fields:
        after = _rendered(blueprint, _changed(manifest, path, _different(value)), key, now, configuration)
        if after is not None:
            for field in before.keys() | after.keys():
                if before.get(field) != after.get(field):
                    sources.setdefault(field, []).append(path)
    return {field: tuple(sources[field]) for field in sorted(sources)}


def _manifest(root: Live, part: str) -> Body:
    """What a user writes in a root: without its status and without the metadata that the server or controllers add."""
    live = root.body["metadata"]
    metadata = {key: live[key] for key in ("name", "namespace", "labels", "annotations") if key in live}
    spec = root.body.get("spec") or {}
    if part.isdecimal() and isinstance(spec.get("replicas"), int):
        spec = {**spec, "replicas": min(spec["replicas"], int(part) + 1)}
    return {"apiVersion": root.body["apiVersion"], "kind": root.body["kind"], "metadata": metadata, "spec": spec}


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every leaf with its path; list indices are in brackets."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _leaves(below, (*path, f"[{index}]"))
    elif value is not None and path not in FRAME:
        yield path, value


def _different(value: Any) -> Any:
    """A different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    return str(int(text) + 1) if text.isascii() and text.isdecimal() and len(text) < 10 else f"{text}x"


def _changed(value: Any, path: Path, new: Any) -> Any:
    """A copy of the value with `new` at that path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: _changed(value[first], rest, new)}
    index = int(first[1:-1])
    return [_changed(below, rest, new) if at == index else below for at, below in enumerate(value)]


def _rendered(blueprint: Blueprint, manifest: Body, key: tuple[str, ...], now: datetime, configuration: Any) -> Mapping[Path, Any] | None:
    """The fields of the object as a new root of that manifest produces it; None where it does not, or where the manifest is faulty."""
    (observed,) = propose(empty(), [manifest]).roots
    try:
        desired = blueprint.desire(observed, now, configuration, Memo())
    except Exception:  # A manifest that was changed in one place may contradict itself in any way.
        return None
    if desired.problems:
        return None
    matches = (resource for resource in desired.graph.resources.values() if _key(resource.id, _labels(resource)) == key)
    return next((dict(_leaves(resource.body)) for resource in matches), None)


def _key(id: ResourceId, keys: Mapping[str, str]) -> tuple[str, ...]:
    """What identifies an object in every rendering of its root. The names of pods differ, so a pod is identified by clique and index."""
    if id.kind == kinds.POD.name:
        return id.kind, keys.get(labels.PODCLIQUE, ""), keys.get(labels.POD_INDEX, "")
    return id.group, id.kind, id.name


def _labels(subject: Live | Resource) -> Mapping[str, str]:
    keys: Mapping[str, str] = subject.labels if isinstance(subject, Live) else subject.body["metadata"].get("labels") or {}
    return keys


def _pods(manifest: Body) -> int:
    return requests.replicas(manifest) * requests.pods_per_replica(manifest, requests.cliques_by_name(manifest))
