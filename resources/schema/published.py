"""Published: the types of a pod spec as a Kubernetes API server publishes them, and their structural schemas.

They are in `pod_spec.json`, which `make pod-spec` generates from a real API server. It is read when a pod spec is first validated.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, Final

import orjson
from msgspec import Struct

from engine.ids import Kind
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUE, PODCLIQUESET
from resources.schema.issues import Path
from resources.schema.wire import OPAQUE, QUANTITY

Schema = Mapping[str, Any]

INT_OR_STRING: Final[Schema] = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
AMOUNT: Final[Schema] = {
    "x-kubernetes-preserve-unknown-fields": True,
    "pattern": QUANTITY,
    # A pod may request `cpu: 0.5`, but no type of a CRD allows text and fractions: so all types are allowed, and the others excluded here.
    "not": {"enum": [False, True, [], {}]},
    "maxItems": 0,
    "maxProperties": 0,
}
SAME_FIELDS: Final = {"EphemeralContainer": "Container"}
"""Types whose fields mean the same as those of another one."""
UNIONS: Final[Mapping[frozenset[str], Schema]] = {
    frozenset({"integer", "string"}): INT_OR_STRING,
    frozenset({"number", "string"}): AMOUNT,
}
"""The structural schema of each union of types."""
EXTENDED: Final[Mapping[str, tuple[str, Schema]]] = {
    "MainContainer": ("Container", {}),
    "ComponentPodSpec": ("PodSpec", {}),
    "ExtraPodSpec": ("PodSpec", {"mainContainer": {"$ref": "MainContainer"}}),
}
"""Types of our own: the type of Kubernetes without its required fields, and further fields."""
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_NUMBER: Final[Schema] = {"type": "integer", "format": "int64"}
_WORDS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}


def _object(required: tuple[str, ...] = (), **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields} | ({"required": list(required)} if required else {})


def _of(name: str) -> Schema:
    return {"$ref": name}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _of(name)}


_REQUESTED: Final[Mapping[str, Schema]] = {
    "deviceClassName": _TEXT,
    "selectors": _list("DeviceSelector"),
    "allocationMode": _TEXT,
    "count": _NUMBER,
    "tolerations": _list("DeviceToleration"),
    "capacity": _of("CapacityRequirements"),
}
CLAIM_TYPES: Final[Mapping[str, Schema]] = {
    "ClaimMetadata": _object(labels=_WORDS, annotations=_WORDS),
    "ResourceClaimSpec": _object(devices=_of("DeviceClaim")),
    "DeviceClaim": _object(
        requests=_list("DeviceRequest"), constraints=_list("DeviceConstraint"), config=_list("DeviceClaimConfiguration")
    ),
    "DeviceRequest": _object(("name",), name=_TEXT, exactly=_of("ExactDeviceRequest"), firstAvailable=_list("DeviceSubRequest")),
    "ExactDeviceRequest": _object(("deviceClassName",), **_REQUESTED, adminAccess={"type": "boolean"}),
    "DeviceSubRequest": _object(("name", "deviceClassName"), name=_TEXT, **_REQUESTED),
    "DeviceSelector": _object(cel=_of("CELDeviceSelector")),
    "CELDeviceSelector": _object(("expression",), expression=_TEXT),
    "DeviceToleration": _object(key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT, tolerationSeconds=_NUMBER),
    "CapacityRequirements": _object(requests={"type": "object", "additionalProperties": _of("Quantity")}),
    "DeviceConstraint": _object(requests=_TEXTS, matchAttribute=_TEXT, distinctAttribute=_TEXT),
    "DeviceClaimConfiguration": _object(requests=_TEXTS, opaque=_of("OpaqueDeviceConfiguration")),
    "OpaqueDeviceConfiguration": _object(("driver", "parameters"), driver=_TEXT, parameters={"type": "object"}),
}
"""The types of resource.k8s.io/v1 in templates of resource claims, as Kubernetes 1.34 knows them -> their schemas."""
POD_SPEC: Final = "PodSpec"
METRIC: Final = "MetricSpec"
"""The metrics of autoscalers: their types are those of our own kinds, and the rules for them in `metric_rules`."""
PULLED: Final[Mapping[str, tuple[str, str]]] = {
    "Container": ("imagePullPolicy", "image"),
    "ImageVolumeSource": ("pullPolicy", "reference"),
}
"""Types with an image -> the field with its pull policy and that with its name: the default depends on the tag."""


@cache
def definitions() -> Mapping[str, Schema]:
    """Type name -> its schema, `EXTENDED` and `CLAIM_TYPES` included. Types refer to one another by name; none contains itself."""
    types: Mapping[str, Schema] = orjson.loads(get_data(__package__, "pod_spec.json") or b"")["definitions"]
    return {**types, **CLAIM_TYPES, **{name: _extended(types[base], fields) for name, (base, fields) in EXTENDED.items()}}


def _extended(schema: Schema, fields: Schema) -> Schema:
    """The schema with more fields and without required ones."""
    return {**{key: value for key, value in schema.items() if key != "required"}, "properties": {**schema["properties"], **fields}}


def properties(schema: Schema) -> dict[str, Schema]:
    """The fields of an object. An optional enum also allows the empty string, which Kubernetes treats as absent."""
    required = schema.get("required", ())
    return {
        name: {**field, "enum": [*field["enum"], ""]} if "enum" in field and name not in required and "" not in field["enum"] else field
        for name, field in schema.get("properties", {}).items()
    }


def union(schema: Schema) -> frozenset[str]:
    """The JSON types that a value may have, if the schema is a union of types; else empty."""
    return frozenset(option["type"] for option in schema.get("oneOf", ()))


@cache
def structural(name: str) -> Schema:
    """The structural schema of a type with all references resolved. Every object keeps unknown fields, for newer versions of Kubernetes.

    It has no defaults and no list keys: see docs/decisions/recorded-pod-types.md. Equal parts are shared objects, which must not change.
    """
    return _structural(definitions()[name], name)


@cache
def _descriptions() -> Mapping[str, Mapping[str, str]]:
    """Type -> field -> what the field is, in our words; for `*` those that mean the same in several types."""
    content: Mapping[str, Mapping[str, str]] = orjson.loads(get_data(__package__, "field_descriptions.json") or b"")
    return content


def _described(field: Schema, type_: str, name: str) -> Schema:
    """The structural schema of a field of a type, with its description."""
    known = _descriptions()
    base = EXTENDED[type_][0] if type_ in EXTENDED else SAME_FIELDS.get(type_, type_)
    text = known.get(base, {}).get(name) or known["*"].get(name)
    return {**field, "description": text} if text else field


def _structural(schema: Schema, type_: str = "") -> Schema:
    """The structural schema of a type of that name, or of what a field contains."""
    if "$ref" in schema:
        return structural(schema["$ref"])
    if types := union(schema):
        return UNIONS[types]
    if "items" in schema:
        return {**schema, "items": _structural(schema["items"])}
    if "additionalProperties" in schema:
        return {**schema, "additionalProperties": _structural(schema["additionalProperties"])}
    if schema.get("type") != "object":
        return schema
    fields = {name: _described(_structural(field), type_, name) for name, field in properties(schema).items()}
    return {**schema, **OPAQUE, **({"properties": fields} if fields else {})}


class PodDefaults(Struct, frozen=True):
    """What a server puts into pods, by type and field."""

    defaults: Mapping[str, Mapping[str, Any]]
    """Type -> field -> the value that the server puts there if the field is absent, wherever it is."""
    zero: Mapping[str, frozenset[str]]
    """Type -> the fields whose zero value the server treats as absent."""
    latest: str
    """The pull policy of an image with the tag `latest`, or without tag and digest."""
    other: str
    """The pull policy of any other image."""
    release: str


@cache
def pod_defaults() -> PodDefaults:
    """The recorded defaults."""
    content: Mapping[str, Any] = orjson.loads(get_data(__package__, "pod_defaults.json") or b"")
    zero = {type_: frozenset(fields) for type_, fields in content["zero"].items()}
    policies = content["imagePullPolicy"]
    return PodDefaults(content["defaults"], zero, policies["latest"], policies["other"], content["release"])


def without_defaults(value: Any, type_: str = POD_SPEC) -> Any:
    """The value of a type without fields that say no more than their absence does to a server; inner objects first.

    Values of maps (labels, node selectors) and entries of lists are never left out, and parts of the wrong shape are returned as they are.
    """
    schema = definitions().get(type_, {})
    if not isinstance(value, Mapping) or not schema.get("properties"):
        return value
    kept: dict[str, Any] = {}
    for field, entry in value.items():
        plain = _plain(entry, schema["properties"].get(field, {}))
        if not is_default(type_, field, plain, value):
            kept[field] = plain
    return kept


def _plain(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value of a field without what says nothing in it."""
    if "$ref" in schema:
        return without_defaults(value, schema["$ref"])
    if "$ref" in schema.get("items", {}) and isinstance(value, list | tuple):
        return [without_defaults(entry, schema["items"]["$ref"]) for entry in value]
    return value


def is_default(type_: str, field: str, value: Any, holder: Mapping[str, Any]) -> bool:
    """Whether a server treats a field with this value as absent. `holder` is the object that has the field."""
    recorded = pod_defaults()
    if value is None or (field in recorded.zero.get(type_, ()) and is_zero(value)):
        return True
    if type_ in PULLED and PULLED[type_][0] == field:
        return bool(value == pull_policy(holder.get(PULLED[type_][1])))
    default = recorded.defaults.get(type_, {}).get(field)
    return default is not None and type(value) is type(default) and bool(value == default)


@cache
def fields_with_default(type_: str) -> frozenset[str]:
    """The fields of a type that a server may treat as absent although their value is not zero."""
    pulled = PULLED[type_][:1] if type_ in PULLED else ()
    return frozenset((*pod_defaults().defaults.get(type_, ()), *pulled))


def is_zero(value: Any) -> bool:
    """Whether a value is a zero value of Go: `""`, `0`, `false`, an empty list or an empty map."""
    return not value and value is not None


def pull_policy(image: Any) -> str:
    """The pull policy of a container with this image, if it says none. Empty if there is no image."""
    if not isinstance(image, str) or not image:
        return ""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return pod_defaults().latest if tag == "latest" or not (tag or digest) else pod_defaults().other


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
            yield (*path, number), METRIC, metric
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
        for number, role in enumerate(_list_or_empty(_at(service, "roles"))):
            if (part := _at(role, "podTemplate", "spec")) is not None:
                yield (*path, "roles", number, "podTemplate", "spec"), "ComponentPodSpec", part


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
