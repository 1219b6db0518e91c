"""Pod specs: whether one is what Kubernetes takes for one, field by field, by the types that its API server publishes.

Types only: what the words in a field mean is left to the server that makes the pods. A fault is told in the words of an API server; what is
not known might be of a newer Kubernetes, and is worth a warning.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import isfinite
from typing import Any, Final

from engine.canonical import canonical
from engine.ids import Kind
from engine.resource import Body
from resources.base.kinds import PODCLIQUE, PODCLIQUESET
from resources.schema.issues import Fault, Issue, Path
from resources.schema.published import definitions, properties, union
from resources.schema.wire import QUANTITY

Schema = Mapping[str, Any]
Judge = Callable[[Any, Path], Iterable[Issue]]
"""What is to be said about a value at a path."""

SOUND: Final[tuple[Issue, ...]] = ()
AMOUNT: Final = re.compile(QUANTITY)
MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
"""RFC 3339."""


def issues(spec: Any, path: Path = ()) -> Iterator[Issue]:
    """Everything in a pod spec, which stands at that path, that no API server would take."""
    return (finding for finding in findings(spec, path) if finding.kind is not Fault.UNKNOWN)


def warnings(spec: Any, path: Path = ()) -> Iterator[str]:
    """The fields that are not known, each in the words of an API server that was asked to be strict."""
    return (warning(finding) for finding in findings(spec, path) if finding.kind is Fault.UNKNOWN)


def warning(unknown: Issue) -> str:
    """What there is to say about an unknown field."""
    return f'unknown field "{unknown.field}"'


def findings(spec: Any, path: Path = ()) -> Iterable[Issue]:
    """Both at once: what is wrong, and what is not known."""
    return _judge("PodSpec")(spec, path)


def pod_specs(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    """Every pod spec in an object of our kinds with its path; none in what has not the right shape for them."""
    for path, holder in _holders(kind, body):
        spec = _at(holder, "spec")
        if isinstance(spec, Mapping) and spec.get("podSpec") is not None:
            yield (*path, "spec", "podSpec"), spec["podSpec"]


def judged(kind: Kind, body: Any, old: Body | None = None) -> tuple[Issue, ...]:
    """The findings about every pod spec of an object. One that it had before is not judged again: it was let in once, by older rules maybe,
    and nobody must be kept from changing, or deleting, the rest."""
    before = {canonical(spec) for _, spec in pod_specs(kind, old)}
    fresh = ((path, spec) for path, spec in pod_specs(kind, body) if not before or canonical(spec) not in before)
    return tuple(finding for path, spec in fresh for finding in findings(spec, path))


def _holders(kind: Kind, body: Any) -> Iterator[tuple[Path, Any]]:
    if kind == PODCLIQUE:
        yield (), body
    elif kind == PODCLIQUESET:
        cliques = _at(body, "spec", "template", "cliques")
        yield from ((("spec", "template", "cliques", n), one) for n, one in enumerate(cliques if isinstance(cliques, list | tuple) else ()))


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


@cache
def _judge(name: str) -> Judge:
    return _judging(definitions()[name])


def _judging(schema: Schema) -> Judge:
    """The judge of a schema, made once and asked often."""
    if "$ref" in schema:
        return _judge(schema["$ref"])
    if types := union(schema):
        return UNIONS[types]
    if "items" in schema:
        return _list(_judging(schema["items"]))
    if "additionalProperties" in schema:
        return _map(_judging(schema["additionalProperties"]))
    if schema["type"] == "object":
        fields = {name: _judging(field) for name, field in properties(schema).items()}
        return _object(fields, tuple(schema.get("required", ()))) if fields else _scalar("object", _is_object)
    return _word(tuple(schema["enum"])) if "enum" in schema else SCALARS[schema["type"], schema.get("format", "")]


def _object(fields: Mapping[str, Judge], needed: tuple[str, ...]) -> Judge:
    def judge(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, Mapping):
            return (_mistyped("object", value, path),)
        found: list[Issue] = []
        for key, entry in value.items():
            field = fields.get(key)
            if field is None:
                found.append(Issue((*path, key), Fault.UNKNOWN))
            elif entry is not None:  # A null is as good as nothing.
                found += field(entry, (*path, key))
        found += [Issue((*path, key), Fault.REQUIRED) for key in needed if value.get(key) is None]
        return found

    return judge


def _map(inner: Judge) -> Judge:
    def judge(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, Mapping):
            return (_mistyped("object", value, path),)
        return [issue for key, entry in value.items() if entry is not None for issue in inner(entry, (*path, key))]

    return judge


def _list(inner: Judge) -> Judge:
    def judge(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, list | tuple):
            return (_mistyped("array", value, path),)
        return [issue for number, entry in enumerate(value) for issue in inner(entry, (*path, number))]

    return judge


def _scalar(wanted: str, holds: Callable[[Any], bool]) -> Judge:
    return lambda value, path: SOUND if holds(value) else (_mistyped(wanted, value, path),)


def _word(words: tuple[str, ...]) -> Judge:
    known, offered = frozenset(words), ", ".join(f'"{word}"' for word in words if word)

    def judge(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, str):
            return (_mistyped("string", value, path),)
        return SOUND if value in known else (Issue(path, Fault.UNSUPPORTED, f"supported values: {offered}", value),)

    return judge


def _whole(bits: int, *, or_text: bool = False) -> Judge:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    wanted = "integer,string" if or_text else "integer"

    def judge(value: Any, path: Path) -> Iterable[Issue]:
        if or_text and isinstance(value, str):
            return SOUND
        if not _is_whole(value):
            return (_mistyped(wanted, value, path),)
        return SOUND if least <= value <= most else (Issue(path, Fault.INVALID, f"must fit {bits} bits", value),)

    return judge


def _amount(value: Any, path: Path) -> Iterable[Issue]:
    if isinstance(value, str) and not AMOUNT.fullmatch(value):
        return (Issue(path, Fault.INVALID, "must be a quantity such as 2, 500m or 4Gi", value),)
    return SOUND if isinstance(value, str) or _is_number(value) else (_mistyped("number,string", value, path),)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) and MOMENT.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _is_whole(value: Any) -> bool:
    """Whether it is an integer to a server: `80.0` is."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _mistyped(wanted: str, value: Any, path: Path) -> Issue:
    word = next((word for type_, word in WORDS if isinstance(value, type_)), "null")
    return Issue(path, Fault.INVALID, f'must be of type {wanted}: "{word}"', value)


WORDS: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (Mapping, "object"),
    (list | tuple, "array"),
)
"""What a server calls the type of a value; of those that apply, the first."""
SCALARS: Final[Mapping[tuple[str, str], Judge]] = {
    ("string", ""): _scalar("string", _is_text),
    ("string", "byte"): _scalar("string", _is_text),
    ("string", "date-time"): _scalar("date-time", _is_moment),
    ("boolean", ""): _scalar("boolean", _is_truth),
    ("integer", "int32"): _whole(32),
    ("integer", "int64"): _whole(64),
    ("number", ""): _scalar("number", _is_number),
    ("number", "double"): _scalar("number", _is_number),
}
"""Judges by type and format."""
UNIONS: Final[Mapping[frozenset[str], Judge]] = {
    frozenset({"integer", "string"}): _whole(32, or_text=True),
    frozenset({"number", "string"}): _amount,
}
"""Judges of what may be of one type or another."""
