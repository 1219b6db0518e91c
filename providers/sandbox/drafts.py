"""Drafts: what the server reads out of a body that somebody sends, before it thinks about it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from providers.sandbox import status, structural
from providers.sandbox.core import rules_of
from providers.sandbox.reading import Reader
from providers.sandbox.request import Request, Strictness
from providers.sandbox.rules import Draft
from providers.sandbox.served import Served
from providers.sandbox.shapes import Shape, builtin

Body = Mapping[str, Any]


def read(request: Request, body: Any) -> tuple[Draft, tuple[str, ...]]:
    """A draft of the object with defaults, and what to warn of. Raises 400 where the body cannot be such an object."""
    served = request.served
    _check_type(served, body)
    reader = Reader(served.kind.name, served.kind.version)
    draft = _read_custom(served, body, reader) if served.custom else _read_builtin(served, body, reader)
    return draft, _told(request.validation, served, reader.unknown)


def complete(served: Served, body: Body) -> Draft:
    """The same for a body that the server made itself of what it had read before: nothing is unknown in it."""
    reader = Reader(served.kind.name, served.kind.version)
    return _read_custom(served, body, reader) if served.custom else _read_builtin(served, body, reader)


def nothing_yet(served: Served) -> Body:
    """The object as it is before it is created, against which a create is compared."""
    if served.custom:
        return {"apiVersion": served.kind.api_version, "kind": served.kind.name, "metadata": {}}
    return _empty(served)


@cache
def _empty(served: Served) -> Body:
    body = {"apiVersion": served.kind.api_version, "kind": served.kind.name}
    return {**Reader(served.kind.name, "").read(body, served.shape)}


def _check_type(served: Served, body: Any) -> None:
    kind = served.kind
    if not isinstance(body, Mapping):
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.name})")
    name, version = body.get("kind") or "", body.get("apiVersion") or ""
    if not served.custom:
        name, version = name or kind.name, version or kind.api_version
    if name == kind.name and version == kind.api_version:
        return
    raise status.bad_request(f'{name} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.name}')


def _read_builtin(served: Served, body: Body, reader: Reader) -> Draft:
    draft = {**reader.read(body, served.shape), "apiVersion": served.kind.api_version, "kind": served.kind.name}
    rules_of(served).default(draft)
    return draft


def _read_custom(served: Served, body: Body, reader: Reader) -> Draft:
    meta = body.get("metadata")
    metadata = reader.read({"metadata": {} if meta is None else meta}, _metadata_holder())["metadata"]
    kept = structural.pruned({**body, "metadata": metadata}, served.shape, reader.unknown)
    return {**structural.defaulted(kept, served.shape)}


@cache
def _metadata_holder() -> Shape:
    return Shape("object", name="", fields={"metadata": builtin("ObjectMeta")})


def _told(strictness: Strictness, served: Served, unknown: list[str]) -> tuple[str, ...]:
    texts = tuple(f'unknown field "{path}"' for path in unknown)
    if texts and strictness == "Strict":
        name = served.kind.name
        raise status.bad_request(
            f'{name} in version "{served.kind.version}" cannot be handled as a {name}: strict decoding error: {", ".join(texts)}'
        )
    return texts if strictness == "Warn" else ()
