"""Defaults: a PodCliqueSet with everything filled in that its author may leave out.

First what the CRD's schema fills in (an offline preview has no server to do it), then what admission does. Bodies are never changed: what
needs no default is shared with the original, and a body that needs none at all is handed back as it is. Parts of the wrong shape are
left alone; `resources.schema.parse` has the words for them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from engine import duration
from engine.paths import get
from engine.resource import Body
from resources.schema.crds import schema
from resources.schema.podcliqueset import TERMINATION_DELAY, PodCliqueSet

GRACE_PERIOD: Final = 30
"""Seconds that a pod gets to end by itself."""

CLIQUES: Final = ("spec", "template", "cliques")
KEPT: Final = ("minAvailable", "roleName")
"""What of a clique never changes, though a later manifest need not say it."""

Schema = Mapping[str, Any]
Fill = Callable[[Any], Any]


def defaulted(body: Body, before: Body | None = None) -> Body:
    """The set with its defaults. Doing it again changes nothing, and returns the very same body.

    With the set as it was `before`: what must not change, and is not said any more, stays as it was.
    """
    if before is not None:
        body = _kept(body, before)
    body = _each(body, {"spec": _spec()})
    filled: Body = _each(body, {"metadata": _metadata, "spec": lambda spec: _each(spec, {"template": _template})})
    return filled


@lru_cache(maxsize=1)
def _spec() -> Fill:
    return _filling(schema(PodCliqueSet)["properties"]["spec"])


def _filling(schema: Schema) -> Fill:
    """What fills in the defaults of a schema, made once; as on a server, a null of a known field counts as absent."""
    if "items" in schema:
        return partial(_every, fill=_filling(schema["items"]))
    fields = {key: _filling(field) for key, field in schema.get("properties", {}).items()}
    other = _filling(schema["additionalProperties"]) if "additionalProperties" in schema else None
    if not fields and not other:
        return _as_it_is
    defaults = {key: field["default"] for key, field in schema.get("properties", {}).items() if "default" in field}

    def fill(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        changes: dict[str, Any] = {key: default for key, default in defaults.items() if value.get(key) is None}
        nulls = False
        for key, entry in value.items():
            inner = fields.get(key, other)
            if inner is None:
                continue
            if entry is None:
                nulls = True
            elif (filled := inner(entry)) is not entry:
                changes[key] = filled
        if nulls:
            value = {key: entry for key, entry in value.items() if entry is not None or fields.get(key, other) is None}
        return _with(value, changes)

    return fill


def _as_it_is(value: Any) -> Any:
    return value


def _kept(body: Any, before: Any) -> Any:
    """A clique whose pods are made more or fewer is not asked anew how many of them it needs, nor which role they play."""
    said = {clique["name"]: clique.get("spec") for clique in _named(get(before, CLIQUES))}

    def keep(clique: Any) -> Any:
        old = next((said.get(one["name"]) for one in _named([clique])), None)
        return _each(clique, {"spec": lambda spec: _said_before(spec, old)})

    spec, template, cliques = CLIQUES
    return _each(body, {spec: lambda inner: _each(inner, {template: lambda inner: _each(inner, {cliques: partial(_every, fill=keep)})})})


def _said_before(spec: Any, old: Any) -> Any:
    if not isinstance(spec, Mapping) or not isinstance(old, Mapping):
        return spec
    return _with(spec, {key: old[key] for key in KEPT if spec.get(key) is None and old.get(key) is not None})


def _named(cliques: Any) -> list[Any]:
    """Those in a list of cliques that have a name."""
    listed = cliques if isinstance(cliques, list | tuple) else ()
    return [clique for clique in listed if isinstance(clique, Mapping) and isinstance(clique.get("name"), str)]


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
    return _missing(template, defaults)


def _canonical(delay: Any) -> Any:
    """Spelled as the server that admits it would spell it, so that `4h` in a file and `4h0m0s` in a cluster are no difference."""
    try:
        spelled = duration.canonical(delay) if isinstance(delay, str) else delay
    except ValueError:
        return delay
    return delay if spelled == delay else spelled


def _clique_spec(spec: Any) -> Any:
    """One pod unless more are asked for, all of them needed unless fewer will do, in a role that need not have a name."""
    if not isinstance(spec, Mapping):
        return spec
    # Zero pods are as good as none said; but `false`, which equals zero, is a mistake to be told.
    if spec.get("replicas") in (None, 0) and spec.get("replicas") is not False:
        spec = _with(spec, {"replicas": 1})
    spec = _each(spec, {"podSpec": _pod_spec, "autoScalingConfig": _floor(spec["replicas"])})
    spec = _missing(spec, {"minAvailable": spec["replicas"]})
    return _with(spec, {"roleName": ""}) if spec.get("roleName") is None else spec


def _group(group: Any) -> Any:
    return _each(group, {"scaleConfig": _floor(group["replicas"])}) if isinstance(group, Mapping) else group


def _floor(replicas: Any) -> Fill:
    """An autoscaler does not go below what was asked for, unless it may."""
    return lambda scaling: _missing(scaling, {"minReplicas": replicas})


def _pod_spec(spec: Any) -> Any:
    return _missing(spec, {"restartPolicy": "Always", "terminationGracePeriodSeconds": GRACE_PERIOD})


def _each(value: Any, fills: Mapping[str, Fill]) -> Any:
    """A map with some of its entries filled in; the same map if nothing came of it."""
    if not isinstance(value, Mapping):
        return value
    filled = {key: fill(value[key]) for key, fill in fills.items() if key in value}
    return _with(value, {key: entry for key, entry in filled.items() if entry is not value[key]})


def _every(values: Any, fill: Fill) -> Any:
    """A list with each entry filled in; the same list if nothing came of it."""
    if not isinstance(values, list | tuple):
        return values
    filled = [fill(value) for value in values]
    return filled if any(new is not old for new, old in zip(filled, values, strict=True)) else values


def _missing(value: Any, defaults: Mapping[str, Any]) -> Any:
    """A map with defaults for what is absent, null or empty in it."""
    if not isinstance(value, Mapping):
        return value
    return _with(value, {key: default for key, default in defaults.items() if value.get(key) in (None, "")})


def _with(value: Any, changes: Mapping[str, Any]) -> Any:
    return {**value, **changes} if changes else value
