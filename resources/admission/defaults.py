"""Defaults: fills in the optional fields of a PodCliqueSet.

First the defaults of the CRD's schema (an offline preview has no API server), then those of admission. Bodies are never changed: unchanged
parts are shared with the original, and a body that needs no default is returned itself. Parts of the wrong shape are left alone:
`resources.schema.parse` reports them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from engine import duration
from engine.paths import get
from engine.resource import Body
from resources.base.fields import CLIQUES
from resources.schema.podcliqueset import TERMINATION_DELAY, PodCliqueSet
from resources.schema.structural import shape

GRACE_PERIOD: Final = 30
"""The default terminationGracePeriodSeconds of pods, in seconds."""

KEPT: Final = ("minAvailable", "roleName")
"""Immutable fields of a clique that keep their value if an update leaves them out."""

Schema = Mapping[str, Any]
Fill = Callable[[Any], Any]
"""A value -> the value with its defaults; the same object if it needs none."""


def defaulted(body: Body, before: Body | None = None) -> Body:
    """The set with its defaults. Idempotent: a set that has them is returned itself.

    On an update, `before` is the stored set: immutable fields that the new version leaves out keep their value.
    """
    if before is not None:
        body = _kept(body, before)
    body = _each(body, {"spec": _fill_spec()})
    filled: Body = _each(body, {"metadata": _metadata, "spec": lambda spec: _each(spec, {"template": _template})})
    return filled


@lru_cache(maxsize=1)
def _fill_spec() -> Fill:
    """Fills in the defaults of the CRD's schema for `spec`."""
    return _filling(shape(PodCliqueSet)["properties"]["spec"])


def _filling(schema: Schema) -> Fill:
    """A function that fills in the defaults of a schema. As on an API server, a null in a known field counts as absent."""
    if "items" in schema:
        return partial(_every, fill=_filling(schema["items"]))
    fields = {key: _filling(field) for key, field in schema.get("properties", {}).items()}
    additional = _filling(schema["additionalProperties"]) if "additionalProperties" in schema else None
    if not fields and not additional:
        return _unchanged
    defaults = {key: field["default"] for key, field in schema.get("properties", {}).items() if "default" in field}

    def fill(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        changes: dict[str, Any] = {key: default for key, default in defaults.items() if value.get(key) is None}
        has_nulls = False
        for key, entry in value.items():
            fill_entry = fields.get(key, additional)
            if fill_entry is None:
                continue
            if entry is None:
                has_nulls = True
            elif (filled := fill_entry(entry)) is not entry:
                changes[key] = filled
        if has_nulls:
            value = {key: entry for key, entry in value.items() if entry is not None or fields.get(key, additional) is None}
        return _with(value, changes)

    return fill


def _unchanged(value: Any) -> Any:
    return value


def _kept(body: Any, before: Any) -> Any:
    """The set with the `KEPT` fields of each clique as in the stored set if they are left out."""
    old_specs = {clique["name"]: clique.get("spec") for clique in _named(get(before, CLIQUES))}

    def keep(clique: Any) -> Any:
        old = next((old_specs.get(named["name"]) for named in _named([clique])), None)
        return _each(clique, {"spec": lambda spec: _keeping(spec, old)})

    spec, template, cliques = CLIQUES
    return _each(body, {spec: lambda inner: _each(inner, {template: lambda inner: _each(inner, {cliques: partial(_every, fill=keep)})})})


def _keeping(spec: Any, old: Any) -> Any:
    """A clique's spec with the `KEPT` fields of the old spec that it leaves out."""
    if not isinstance(spec, Mapping) or not isinstance(old, Mapping):
        return spec
    return _with(spec, {key: old[key] for key in KEPT if spec.get(key) is None and old.get(key) is not None})


def _named(cliques: Any) -> list[Any]:
    """The entries of a list of cliques that have a name."""
    entries = cliques if isinstance(cliques, list | tuple) else ()
    return [clique for clique in entries if isinstance(clique, Mapping) and isinstance(clique.get("name"), str)]


def _metadata(metadata: Any) -> Any:
    return _with(metadata, {"namespace": "default"}) if isinstance(metadata, Mapping) and not metadata.get("namespace") else metadata


def _template(template: Any) -> Any:
    template = _each(
        template,
        {
            "cliques": lambda cliques: _every(cliques, lambda clique: _each(clique, {"spec": _clique_spec})),
            "podCliqueScalingGroups": lambda groups: _every(groups, _group),
            "terminationDelay": _canonical,
        },
    )
    defaults = {
        "terminationDelay": TERMINATION_DELAY,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "podCliqueScalingGroups": [],
    }
    return _with_defaults(template, defaults)


def _canonical(delay: Any) -> Any:
    """The duration in canonical form, so that `4h` in a file and `4h0m0s` in a cluster are equal."""
    try:
        canonical = duration.canonical(delay) if isinstance(delay, str) else delay
    except ValueError:
        return delay
    return delay if canonical == delay else canonical


def _clique_spec(spec: Any) -> Any:
    """A clique's spec with its defaults: 1 replica, minAvailable equal to replicas, an empty roleName, and those of its parts."""
    if not isinstance(spec, Mapping):
        return spec
    # 0 counts as absent. `false` equals 0 in Python, but it is left alone, because validation reports it.
    if spec.get("replicas") in (None, 0) and spec.get("replicas") is not False:
        spec = _with(spec, {"replicas": 1})
    spec = _each(spec, {"podSpec": _pod_spec, "autoScalingConfig": _with_min_replicas(spec["replicas"])})
    if is_number(spec["replicas"]):
        spec = _with_defaults(spec, {"minAvailable": spec["replicas"]})
    return _with(spec, {"roleName": ""}) if spec.get("roleName") is None else spec


def _group(group: Any) -> Any:
    return _each(group, {"scaleConfig": _with_min_replicas(group["replicas"])}) if isinstance(group, Mapping) else group


def _with_min_replicas(replicas: Any) -> Fill:
    """Fills in an autoscaler's minReplicas with `replicas`."""
    return lambda scaling: _with_defaults(scaling, {"minReplicas": replicas} if is_number(replicas) else {})


def is_number(replicas: Any) -> bool:
    """Whether a default can be made of it: one that is malformed or does not fit its field is reported where it was written, not where it
    would be copied to."""
    return isinstance(replicas, int) and not isinstance(replicas, bool) and -(2**31) <= replicas < 2**31


def _pod_spec(spec: Any) -> Any:
    return _with_defaults(spec, {"restartPolicy": "Always", "terminationGracePeriodSeconds": GRACE_PERIOD})


def _each(value: Any, fills: Mapping[str, Fill]) -> Any:
    """A map with some of its entries filled in; the map itself if nothing changes."""
    if not isinstance(value, Mapping):
        return value
    filled = {key: fill(value[key]) for key, fill in fills.items() if key in value}
    return _with(value, {key: entry for key, entry in filled.items() if entry is not value[key]})


def _every(values: Any, fill: Fill) -> Any:
    """A list with each entry filled in; the list itself if nothing changes."""
    if not isinstance(values, list | tuple):
        return values
    filled = [fill(value) for value in values]
    return filled if any(new is not old for new, old in zip(filled, values, strict=True)) else values


def _with_defaults(value: Any, defaults: Mapping[str, Any]) -> Any:
    """A map with defaults for entries that are absent or null, or empty strings whose default is a string."""
    if not isinstance(value, Mapping):
        return value
    absent = {key: (None, "") if isinstance(default, str) and default else (None,) for key, default in defaults.items()}
    return _with(value, {key: default for key, default in defaults.items() if value.get(key) in absent[key]})


def _with(value: Any, changes: Mapping[str, Any]) -> Any:
    return {**value, **changes} if changes else value
