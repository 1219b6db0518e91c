"""Provenance: which field of a root each field of an object comes from, found out by changing one after the other."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live
from engine.resource import Body, Path, Resource
from engine.world import empty, propose
from resources.base import kinds, labels
from resources.domains import requests

MOST: Final = 20_000
"""Fields of a root, times the pods that it makes: one with more takes too long to compute so often."""

FRAME: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
"""What makes an object that object."""

Sources = Mapping[Path, tuple[Path, ...]]
"""Field of the object -> the fields of its root with which it changes."""


def provenance(blueprint: Blueprint, root: Live, one: Live | Resource, part: str, now: datetime, configuration: Any) -> Sources:
    """Where the fields of an object come from; nothing where the root is too large for that, or would not make such an object.

    The root is computed as if nothing of it were there yet, once as it is, and once for each of its fields with that one changed. What
    cannot be changed alone, such as a name that is spoken of elsewhere, tells nothing. Replicas beyond `part`, that of the object,
    are left out.
    """
    asked = _asked(root, part)
    fields = list(_leaves(asked))
    if len(fields) * max(_pods(asked), 1) > MOST:
        return {}
    key = _key(one.id, _labels(one))
    before = _made(blueprint, asked, key, now, configuration)
    if before is None:
        return {}
    found: dict[Path, list[Path]] = {}
    for path, value in fields:
        after = _made(blueprint, _changed(asked, path, _other(value)), key, now, configuration)
        if after is not None:
            for field in before.keys() | after.keys():
                if before.get(field) != after.get(field):
                    found.setdefault(field, []).append(path)
    return {field: tuple(found[field]) for field in sorted(found)}


def _asked(root: Live, part: str) -> Body:
    """What people say in a root: not its name, not its state, and nothing of what others write into it."""
    meta = root.body["metadata"]
    said = {key: meta[key] for key in ("name", "namespace", "labels", "annotations") if key in meta}
    spec = root.body.get("spec") or {}
    if part.isdecimal() and isinstance(spec.get("replicas"), int):
        spec = {**spec, "replicas": min(spec["replicas"], int(part) + 1)}
    return {"apiVersion": root.body["apiVersion"], "kind": root.body["kind"], "metadata": said, "spec": spec}


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field that holds no others, by its path; indices of lists in brackets."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _leaves(below, (*path, f"[{index}]"))
    elif value is not None and path not in FRAME:
        yield path, value


def _other(value: Any) -> Any:
    """Another value of the same sort."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    return str(int(text) + 1) if text.isascii() and text.isdecimal() and len(text) < 10 else f"{text}x"


def _changed(value: Any, path: Path, new: Any) -> Any:
    """The value with another at that path."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: _changed(value[first], rest, new)}
    index = int(first[1:-1])
    return [_changed(below, rest, new) if at == index else below for at, below in enumerate(value)]


def _made(blueprint: Blueprint, asked: Body, key: tuple[str, ...], now: datetime, configuration: Any) -> Mapping[Path, Any] | None:
    """The fields of the object as a new root would make it; None where it would not, or makes no sense."""
    (observed,) = propose(empty(), [asked]).roots
    try:
        desired = blueprint.desire(observed, now, configuration, Memo())
    except Exception:  # A root that has been changed in one place may contradict itself in any way.
        return None
    if desired.problems:
        return None
    made = (one for one in desired.graph.resources.values() if _key(one.id, _labels(one)) == key)
    return next((dict(_leaves(one.body)) for one in made), None)


def _key(id: ResourceId, told: Mapping[str, str]) -> tuple[str, ...]:
    """What is the same about an object however its root was made: pods have names of their own, and a seat in a clique."""
    if id.kind == kinds.POD.name:
        return id.kind, told.get(labels.PODCLIQUE, ""), told.get(labels.POD_INDEX, "")
    return id.group, id.kind, id.name


def _labels(one: Live | Resource) -> Mapping[str, str]:
    told: Mapping[str, str] = one.labels if isinstance(one, Live) else one.body["metadata"].get("labels") or {}
    return told


def _pods(body: Body) -> int:
    copies = requests.times(body)
    own = sum(requests.pods(clique) * copies.get(name, 1) for name, clique in requests.members(body).items())
    return requests.replicas(body) * own
