"""Pod match: whether a pod or a PodClique was created from a pod spec, judged by its contents instead of its hash label.

It decides about objects whose hash somebody else computed: Grove's operator, or another version of the engine.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.diff import same
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.schema.pod_spec_form import canonical_form, respelled

REMOVED_LATER = "schedulingGates"
"""The field of a pod spec that loses entries while the pod lives."""

CONTAINERS = ("containers", "initContainers")


def is_created_from(pod: Body, pod_spec: Body) -> bool:
    """Whether the pod has everything that is in the pod spec; it may have more, which the engine, admission or defaults have added."""
    desired = canonical_form({key: value for key, value in pod_spec.items() if key != REMOVED_LATER})
    return _includes(canonical_form(mapping(pod.get("spec"))), desired)


def is_same_spec(live: Any, pod_spec: Body) -> bool:
    """Whether two pod specs describe the same pods, whatever their spelling."""
    return same(canonical_form(mapping(live)), canonical_form(pod_spec))


def covers_spec(live: Any, pod_spec: Body) -> bool:
    """Whether the pod spec of a live object has everything that is in the pod spec, whatever their spelling; it may have more."""
    return _includes(canonical_form(mapping(live)), canonical_form(pod_spec))


def spelled_as(live: Any, pod_spec: Body) -> Any:
    """The pod spec in the spelling of that of a live object, wherever both mean the same."""
    return respelled(pod_spec, live)


def _includes(live: Any, desired: Any) -> bool:
    """Whether a live value has everything desired. The entries of a list of objects may be in any order."""
    if live is None:
        return not desired  # The server leaves out empty values.
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(_includes(live.get(key), value) for key, value in desired.items())
    if isinstance(desired, list | tuple) and all(isinstance(item, Mapping) for item in desired):
        return isinstance(live, list | tuple) and _includes_entries(live, desired)
    return same(live, desired)


def _includes_entries(live: Sequence[Any], desired: Sequence[Body]) -> bool:
    """Whether each desired entry is included in a live one: of those with its name or, if it has none, of all."""
    by_name: dict[str, list[Any]] = {}
    for entry in live:
        by_name.setdefault(_name(entry), []).append(entry)
    return all(any(_includes(entry, item) for entry in (by_name.get(_name(item), ()) if _name(item) else live)) for item in desired)


def _name(entry: Any) -> str:
    name = mapping(entry).get("name")
    return name if isinstance(name, str) else ""


def without_additions(pod_spec: Any, *, variables: Collection[str], claims: Collection[str]) -> Body:
    """A pod spec without the environment variables and resource claims of these names, in all containers."""
    spec = mapping(pod_spec)
    result = {**spec, "resourceClaims": _without(spec.get("resourceClaims"), claims)}
    for field in CONTAINERS:
        if field in spec:
            result[field] = [_container_without(container, variables, claims) for container in mappings(spec[field])]
    return result


def _container_without(container: Body, variables: Collection[str], claims: Collection[str]) -> Body:
    resources = mapping(container.get("resources"))
    used = {**resources, "claims": _without(resources.get("claims"), claims)}
    return {**container, "env": _without(container.get("env"), variables), "resources": used}


def _without(entries: Any, names: Collection[str]) -> list[Body]:
    return [entry for entry in mappings(entries) if _name(entry) not in names]
