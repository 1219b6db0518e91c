"""Graph defaults: the defaults of a DynamoGraphDeployment, and its numbers and amounts in the types of the API.

A number in quotes (`nodeCount: "2"`) becomes a number, and an amount without quotes (`gpu: 2`) becomes text. Bodies are never changed: a
body that needs nothing is returned itself. Parts of the wrong shape are left alone: `resources.schema.parse` reports them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final

from msgspec import Struct

from engine.paths import get
from engine.resource import Body
from resources.base.fields import mapping
from resources.base.kinds import DYNAMO_GRAPH
from resources.schema.graph_values import NODE_COUNT, quoted, unquoted
from resources.schema.issues import Located, Path, shown, spelled

SERVICES: Final = ("spec", "services")
NUMBERS: Final[tuple[tuple[str, ...], ...]] = (
    ("replicas",),
    ("multinode", "nodeCount"),
    ("autoscaling", "minReplicas"),
    ("autoscaling", "maxReplicas"),
)
"""The fields of a service that are numbers."""
AMOUNTS: Final = ("cpu", "memory", "gpu")
"""The fields of requests and limits that are amounts, besides those in `custom`."""


class Correction(Struct, frozen=True):
    """A value that is read as a value of another type."""

    path: Path
    old: Any
    new: Any

    def __str__(self) -> str:
        """One line: the field, and how its value is read."""
        type_ = "text" if isinstance(self.new, str) else "number"
        return f"{spelled(self.path)}: {shown(self.old)} is read as the {type_} {shown(self.new)}"


def defaulted(body: Body) -> Body:
    """The graph with its defaults and with values of the right types. Idempotent: a graph that has them is returned itself."""
    return reduce(_placed, _defaults(body), corrected(body))


def corrected(body: Body) -> Body:
    """The graph with numbers and amounts in the types of the API, without nulls in its spec, which a server drops as well, and without any
    default. An object of another kind is returned itself."""
    if mapping(body).get("kind") != DYNAMO_GRAPH.name:
        return body
    spec = body.get("spec")
    if (plain := _without_nulls(spec)) is not spec:
        body = {**body, "spec": plain}
    return reduce(_placed, ((correction.path, correction.new) for correction in corrections(body)), body)


def _without_nulls(value: Any) -> Any:
    """The value without the fields that are null; the same object if there are none."""
    if isinstance(value, Mapping):
        fields = {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
        is_same = len(fields) == len(value) and all(fields[key] is value[key] for key in fields)
        return value if is_same else fields
    if isinstance(value, list | tuple):
        entries = [_without_nulls(entry) for entry in value]
        return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
    return value


def corrections(body: Any) -> Iterator[Correction]:
    """The values of a graph that are not of the type that the API has for them, but mean one."""
    for name, service in mapping(get(mapping(body), SERVICES)).items():
        if isinstance(service, Mapping):
            for path in NUMBERS:
                yield from _correction(service, (*SERVICES, name), path, unquoted)
            for path in _amounts(service):
                yield from _correction(service, (*SERVICES, name), path, quoted)


def absent_services(body: Any) -> Iterator[Located]:
    """A warning for each service that is null: it counts as absent, though a name without a value may be meant as a service."""
    for name, service in mapping(get(mapping(body), SERVICES)).items():
        if service is None:
            path = (*SERVICES, name)
            yield Located(f"{spelled(path)}: null counts as absent, so nothing is created for it; write {{}} for its defaults", path)


def _amounts(service: Body) -> Iterator[tuple[str, ...]]:
    for part in ("requests", "limits"):
        path = ("resources", part)
        yield from ((*path, field) for field in AMOUNTS)
        yield from ((*path, "custom", key) for key in mapping(get(service, (*path, "custom"))))


def _correction(service: Body, base: Path, path: tuple[str, ...], correct: Callable[[Any], Any]) -> Iterator[Correction]:
    old = get(service, path)
    if (new := correct(old)) is not old:
        yield Correction((*base, *path), old, new)


def _defaults(body: Body) -> Iterator[tuple[Path, Any]]:
    """The fields that are absent or null and have a default."""
    if isinstance(metadata := mapping(body).get("metadata"), Mapping) and not metadata.get("namespace"):
        yield ("metadata", "namespace"), "default"
    for name, service in mapping(get(mapping(body), SERVICES)).items():
        multinode = get(mapping(service), ("multinode",))
        if isinstance(multinode, Mapping) and multinode.get("nodeCount") is None:
            yield (*SERVICES, name, "multinode", "nodeCount"), NODE_COUNT


def _placed(body: Body, entry: tuple[Path, Any]) -> Body:
    """The body with another value at a path whose parents are maps."""
    (key, *rest), value = entry
    return {**body, str(key): _placed(body[str(key)], (tuple(rest), value)) if rest else value}
