"""Pod spec rules: validates pod specs field by field, by the types that the Kubernetes API server publishes.

Only types are validated; the meaning of values is left to the API server. The messages are those of an API server. An unknown field is a
warning, because a newer Kubernetes may have it. A finding is an issue, or an unknown field (an `Issue` of the type `UNKNOWN`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any, Final

from engine.canonical import canonical
from engine.ids import Kind
from engine.resource import Body
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUE, PODCLIQUESET
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.published import definitions, properties, union
from resources.schema.wire import QUANTITY

Schema = Mapping[str, Any]
Check = Callable[[Any, Path], Iterable[Issue]]
"""A value and its path -> the issues of the value."""

POD_SPEC: Final = "PodSpec"
SERVICE_FIELDS: Final = {"livenessProbe": "Probe", "readinessProbe": "Probe", "extraPodSpec": "ExtraPodSpec"}
"""The fields of a graph's service whose types Kubernetes publishes -> the type."""
VALID: Final[tuple[Issue, ...]] = ()
QUANTITY_PATTERN: Final = re.compile(QUANTITY)
TIME_PATTERN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
"""RFC 3339."""


def issues(spec: Any, path: Path = ()) -> Iterator[Issue]:
    """The issues for which an API server would reject a pod spec. `path` is the path of the pod spec in its object."""
    return (finding for finding in findings(spec, path) if finding.type is not ErrorType.UNKNOWN)


def warnings(spec: Any, path: Path = ()) -> Iterator[str]:
    """A warning for each unknown field, in the words of an API server with strict field validation."""
    return (warning(finding) for finding in findings(spec, path) if finding.type is ErrorType.UNKNOWN)


def warning(unknown: Issue) -> str:
    """The warning about an unknown field."""
    return f'unknown field "{unknown.field}"'


def findings(spec: Any, path: Path = ()) -> Iterable[Issue]:
    """All issues of a pod spec, those of unknown fields included (type `UNKNOWN`)."""
    return _check_of_type(POD_SPEC)(spec, path)


def pod_specs(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    """Every pod spec in an object of Grove's kinds with its path; parts of the wrong shape are skipped."""
    for path, holder in _holders(kind, body):
        spec = _at(holder, "spec")
        if isinstance(spec, Mapping) and spec.get("podSpec") is not None:
            yield (*path, "spec", "podSpec"), spec["podSpec"]


def object_findings(kind: Kind, body: Any, old: Body | None = None) -> tuple[Issue, ...]:
    """The findings of all pod specs of an object, and of the other parts whose types Kubernetes publishes.

    A part that `old` has as well is skipped: older rules may have admitted it, and it must not prevent other changes.
    """
    admitted = {(name, canonical(part)) for _, name, part in _parts(kind, old)}
    new = (entry for entry in _parts(kind, body) if not admitted or (entry[1], canonical(entry[2])) not in admitted)
    return tuple(finding for path, name, part in new for finding in _check_of_type(name)(part, path))


def _parts(kind: Kind, body: Any) -> Iterator[tuple[Path, str, Any]]:
    """The parts of an object whose types Kubernetes publishes, each with its path and type; parts of the wrong shape are skipped."""
    yield from ((path, POD_SPEC, spec) for path, spec in pod_specs(kind, body))
    if kind == DYNAMO_GRAPH:
        yield from _graph_parts(_at(body, "spec"))


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


@cache
def _check_of_type(name: str) -> Check:
    return _check_of(definitions()[name])


def _check_of(schema: Schema) -> Check:
    """The check for values of a schema. Building it is expensive: `_check_of_type` does it once for each type."""
    if "$ref" in schema:
        return _check_of_type(schema["$ref"])
    if types := union(schema):
        return UNIONS[types]
    if "items" in schema:
        return _list(_check_of(schema["items"]))
    if "additionalProperties" in schema:
        return _map(_check_of(schema["additionalProperties"]))
    if schema["type"] == "object":
        fields = {name: _check_of(field) for name, field in properties(schema).items()}
        return _object(fields, tuple(schema.get("required", ()))) if fields else _scalar("object", _is_object)
    return _enum(tuple(schema["enum"])) if "enum" in schema else SCALARS[schema["type"], schema.get("format", "")]


def _object(fields: Mapping[str, Check], required: tuple[str, ...]) -> Check:
    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, Mapping):
            return (_mistyped("object", value, path),)
        issues: list[Issue] = []
        for key, entry in value.items():
            field = fields.get(key)
            if field is None:
                issues.append(Issue((*path, key), ErrorType.UNKNOWN))
            elif entry is not None:  # A null counts as absent.
                issues += field(entry, (*path, key))
        issues += [Issue((*path, key), ErrorType.REQUIRED) for key in required if value.get(key) is None]
        return issues

    return check


def _map(inner: Check) -> Check:
    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, Mapping):
            return (_mistyped("object", value, path),)
        return [issue for key, entry in value.items() if entry is not None for issue in inner(entry, (*path, key))]

    return check


def _list(inner: Check) -> Check:
    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, list | tuple):
            return (_mistyped("array", value, path),)
        return [issue for number, entry in enumerate(value) for issue in inner(entry, (*path, number))]

    return check


def _scalar(type_: str, is_valid: Callable[[Any], bool]) -> Check:
    return lambda value, path: VALID if is_valid(value) else (_mistyped(type_, value, path),)


def _enum(words: tuple[str, ...]) -> Check:
    known, supported = frozenset(words), ", ".join(f'"{word}"' for word in words if word)

    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, str):
            return (_mistyped("string", value, path),)
        return VALID if value in known else (Issue(path, ErrorType.UNSUPPORTED, f"supported values: {supported}", value),)

    return check


def _integer(bits: int, *, or_text: bool = False) -> Check:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    type_ = "integer,string" if or_text else "integer"

    def check(value: Any, path: Path) -> Iterable[Issue]:
        if or_text and isinstance(value, str):
            return VALID
        if not _is_integer(value):
            return (_mistyped(type_, value, path),)
        return VALID if least <= value <= most else (Issue(path, ErrorType.INVALID, f"must fit {bits} bits", value),)

    return check


def _quantity(value: Any, path: Path) -> Iterable[Issue]:
    if isinstance(value, str) and not QUANTITY_PATTERN.fullmatch(value):
        return (Issue(path, ErrorType.INVALID, "must be a quantity such as 2, 500m or 4Gi", value),)
    return VALID if isinstance(value, str) or _is_number(value) else (_mistyped("number,string", value, path),)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and TIME_PATTERN.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _is_integer(value: Any) -> bool:
    """Whether it is an integer to an API server: `80.0` is."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _mistyped(type_: str, value: Any, path: Path) -> Issue:
    actual = next((name for python_type, name in TYPE_NAMES if isinstance(value, python_type)), "null")
    return Issue(path, ErrorType.INVALID, f'must be of type {type_}: "{actual}"', value)


TYPE_NAMES: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (Mapping, "object"),
    (list | tuple, "array"),
)
"""An API server's name for the type of a value; the first that applies."""
SCALARS: Final[Mapping[tuple[str, str], Check]] = {
    ("string", ""): _scalar("string", _is_text),
    ("string", "byte"): _scalar("string", _is_text),
    ("string", "date-time"): _scalar("date-time", _is_time),
    ("boolean", ""): _scalar("boolean", _is_bool),
    ("integer", "int32"): _integer(32),
    ("integer", "int64"): _integer(64),
    ("number", ""): _scalar("number", _is_number),
    ("number", "double"): _scalar("number", _is_number),
}
"""Checks by type and format."""
UNIONS: Final[Mapping[frozenset[str], Check]] = {
    frozenset({"integer", "string"}): _integer(32, or_text=True),
    frozenset({"number", "string"}): _quantity,
}
"""Checks of values that may have one of several types."""
