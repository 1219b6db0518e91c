"""Provenance: the fields of a root that each field of an object depends on. They are found by changing one field of the root at a time."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, live
from engine.proposal import propose
from engine.resource import Body, Hold, Path, Want
from engine.world import empty
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.domains import requests
from resources.ports.configuration import Configuration

MAX_WORK: Final = 20_000
"""The largest product of the number of a root's fields and the cost of rendering it: beyond it the computation takes too long."""
SERVICE_COST: Final = 25
"""The cost of rendering a service of a graph, in pods of a set."""

IDENTITY: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""The fields that identify a root. They are not changed."""

Sources = Mapping[Path, tuple[Path, ...]]
"""Field of the object -> the fields of its root that it depends on."""


def provenance(
    blueprint: Blueprint[Configuration], root: Live, subject: Live | Want | Hold, part: str, now: datetime, configuration: Configuration
) -> Sources:
    """The sources of an object's fields; empty if the root exceeds `MAX_WORK` or does not produce the object.

    The root is rendered as if none of its objects existed, once unchanged and once for each field with that field changed. A field that
    cannot be changed alone, such as a name that another field refers to, is not reported. `part` is the key of the object's part: replicas
    with a higher index are not rendered.
    """
    manifest = _manifest(root, part)
    fields = list(_leaves(manifest))
    if len(fields) * max(_cost(manifest), 1) > MAX_WORK:
        return {}
    key = _key(subject.id, _labels_of(subject))
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
    """The manifest that a user writes for this root: without its status and without metadata that the server or controllers add."""
    stored = root.body["metadata"]
    metadata = {key: stored[key] for key in ("name", "namespace", "labels", "annotations") if key in stored}
    spec = root.body.get("spec") or {}
    if part.isdecimal() and isinstance(spec.get("replicas"), int):
        spec = {**spec, "replicas": min(spec["replicas"], int(part) + 1)}
    return {"apiVersion": root.body["apiVersion"], "kind": root.body["kind"], "metadata": metadata, "spec": spec}


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar in a value with its path, for example `("spec", "containers", "[0]", "name")`, but not `IDENTITY`."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _leaves(entry, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from _leaves(entry, (*path, f"[{index}]"))
    elif value is not None and path not in IDENTITY:
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
    return [_changed(entry, rest, new) if number == index else entry for number, entry in enumerate(value)]


def _rendered(
    blueprint: Blueprint[Configuration], manifest: Body, key: tuple[str, ...], now: datetime, configuration: Configuration
) -> Mapping[Path, Any] | None:
    """The fields of the object with this `_key`, rendered for a new root of that manifest; None without such an object, or with faults."""
    (observed,) = propose(empty(), [manifest]).roots
    try:
        desired = blueprint.desire(observed, now, configuration, Memo())
        nested = [each.body for each in blueprint.nested_roots(observed, configuration, Memo())]
    except Exception:  # A manifest with one changed field may be inconsistent in any way.
        return None
    if desired.problems:
        return None
    resources = (resource for resource in desired.graph.resources.values() if isinstance(resource, Want | Hold) and resource.body)
    bodies = [(_key(resource.id, _labels_of(resource)), resource.body) for resource in resources]
    bodies += [(_key(live(body).id, {}), body) for body in nested]
    return next((dict(_leaves(body)) for match, body in bodies if match == key), None)


def _key(id: ResourceId, keys: Mapping[str, str]) -> tuple[str, ...]:
    """The identity of an object in every rendering of its root. A pod's name differs in each, so its clique and index identify it."""
    if id.kind == kinds.POD.name:
        return id.kind, keys.get(labels.PODCLIQUE, ""), keys.get(labels.POD_INDEX, "")
    return id.group, id.kind, id.name


def _labels_of(subject: Live | Want | Hold) -> Mapping[str, str]:
    keys: Mapping[str, str] = subject.labels if isinstance(subject, Live) else subject.body["metadata"].get("labels") or {}
    return keys


def _cost(manifest: Body) -> int:
    """The cost of rendering the root of a manifest: of a set, the number of pods of all its replicas."""
    if manifest["kind"] == kinds.DYNAMO_GRAPH.name:
        return SERVICE_COST * len(mapping(manifest["spec"].get("services")) or mappings(manifest["spec"].get("components")))
    return requests.replicas(manifest) * requests.pods_per_replica(manifest, requests.cliques_by_name(manifest))
