"""Pod trials: pods that a real API server is asked to create in dry-runs, many at a time."""

import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPSConnection
from threading import local
from typing import Any, Final
from urllib.parse import urlsplit

from resources.schema.published import definitions, union
from tests.controlplane.cluster import Broken, ControlPlane

Spec = Mapping[str, Any]
Path = tuple[str | int, ...]
Trial = Callable[[Spec], "Answer"]
"""Tries a pod spec in a dry-run."""

WORKERS: Final = 4
URL: Final = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict"
METADATA: Final = {"name": "trial", "labels": {"rack": "r1", "revision": "1", "other": "2"}}
FLAGS: Final = ("--disable-admission-plugins=TaintNodesByCondition,Priority,ServiceAccount,DefaultTolerationSeconds,RuntimeClass",)
"""Flags of an API server whose admission adds nothing to a pod and asks for no other object."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says about a pod spec: the spec with its defaults, or why it is refused."""

    spec: Spec | None
    refusal: str = ""
    causes: tuple[str, ...] = ()
    """The fields that are at fault, as far as the server names them."""


def tried(plane: ControlPlane, specs: Iterable[Spec]) -> list[Answer]:
    """The server's answer to each spec, in the same order. Raises `Broken` if it gives none."""
    address, context, mine = urlsplit(plane.url), ssl.create_default_context(cafile=plane.ca), local()
    opened: list[HTTPSConnection] = []
    headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}

    def answer(spec: Spec) -> Answer:
        if not hasattr(mine, "connection"):
            mine.connection = HTTPSConnection(address.hostname or "", address.port, context=context, timeout=60)
            opened.append(mine.connection)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": spec}
        mine.connection.request("POST", URL, json.dumps(pod), headers)
        response = mine.connection.getresponse()
        body = response.read()
        if response.status == 201:
            return Answer(json.loads(body)["spec"])
        if response.status not in (400, 422):
            raise Broken(f"{response.status}: {body.decode(errors='replace')[:400]}")
        status = json.loads(body)
        causes = tuple(cause.get("field", "") for cause in status.get("details", {}).get("causes", ()))
        return Answer(None, status["message"], causes)

    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(answer, specs))
    finally:
        for connection in opened:
            connection.close()


def typed_objects(value: Any, type_: str = "PodSpec", path: Path = ()) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Every object in a pod spec whose fields the types define, with its path and its type, the outer before the inner."""
    schema = definitions()[type_]
    if not isinstance(value, Mapping) or "properties" not in schema:
        return
    yield path, type_, value
    for field, inner in schema["properties"].items():
        if "$ref" in inner:
            yield from typed_objects(value.get(field), inner["$ref"], (*path, field))
        elif "$ref" in inner.get("items", {}):
            for number, entry in enumerate(value.get(field, ())):
                yield from typed_objects(entry, inner["items"]["$ref"], (*path, field, number))


def zero_of(schema: Mapping[str, Any]) -> Any:
    """The zero value of a field with this schema, as Go has it."""
    schema = definitions()[schema["$ref"]] if "$ref" in schema else schema
    if types := union(schema):
        return "0" if "number" in types else 0
    zeros: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}
    return zeros[schema["type"]]


def at(value: Any, path: Path) -> Any:
    """What a value has at a path; None if it has nothing there."""
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value


def with_value(value: Any, path: Path, new: Any) -> Any:
    """A copy of the value with something else at the path; shares what is unchanged."""
    if not path:
        return new
    key, *rest = path
    copy: Any = list(value) if isinstance(value, list) else dict(value or {})
    copy[key] = with_value(at(copy, (key,)), tuple(rest), new)
    return copy


def without(value: Any, path: Path) -> Any:
    """A copy of the value without what is at the path; shares what is unchanged."""
    *parents, last = path
    holder = at(value, tuple(parents))
    if isinstance(holder, list):
        return with_value(value, tuple(parents), [entry for number, entry in enumerate(holder) if number != last])
    return with_value(value, tuple(parents), {key: entry for key, entry in holder.items() if key != last})
