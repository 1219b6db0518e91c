"""Drafts: what the server reads out of a body that somebody sends, before it thinks about it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import orjson

from engine.ids import Kind
from providers.sandbox.api.core import rules_of
from providers.sandbox.api.reading import Reader, Unreadable
from providers.sandbox.api.request import Request, Strictness
from providers.sandbox.kinds.rules import Draft
from providers.sandbox.kinds.served import Served, builtins
from providers.sandbox.types import causes, gotext, status, structural
from providers.sandbox.types.shapes import builtin

Body = Mapping[str, Any]
_EXCERPT = 30
"""How many letters of a body the server quotes to remind its sender of it."""


def read(request: Request, body: Any) -> tuple[Draft, tuple[str, ...]]:
    """A draft of the object with defaults, and what to warn of. Raises 400 where the body cannot be such an object."""
    served = request.served
    _check_type(served, body)
    reader = Reader(served.kind.name, served.kind.version)
    draft = _read_custom(served, body, reader) if served.custom else _read_builtin(served, body, reader)
    return draft, _told(request.validation, served, reader.unknown)


def complete(served: Served, body: Body) -> Draft:
    """The same for a body that the server made itself of what it had read before and what is applied: nothing is unknown in it."""
    reader = Reader(served.kind.name, served.kind.version)
    return _read_custom(served, body, reader, applied=True) if served.custom else _read_builtin(served, body, reader)


def nothing_yet(served: Served) -> Body:
    """The object as it is before it is created, against which a create is compared."""
    if served.custom:
        return {"apiVersion": served.kind.api_version, "kind": served.kind.name, "metadata": {}}
    return _empty(served)


@cache
def _empty(served: Served) -> Body:
    kind = {"kind": served.kind.name, "apiVersion": served.kind.api_version}
    return {**kind, **Reader(served.kind.name, "").read(kind, served.shape)}


def _check_type(served: Served, body: Any) -> None:
    kind = served.kind
    if not isinstance(body, Mapping):
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.name})")
    if fault := type_fault(body):
        text = orjson.dumps(body).decode()
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.name}): {fault} ({text[:_EXCERPT]} ...)")
    name, version = body.get("kind") or "", body.get("apiVersion") or ""
    if served.custom:
        _check_custom_type(kind, name, version, body)
    elif (name or kind.name, version or kind.api_version) != (kind.name, kind.api_version):
        plain = (version or kind.api_version).rpartition("/")[2]
        raise Unreadable(kind.name, plain, _unconverted(kind, name, version), sent=name or kind.name)


def type_fault(body: Body) -> str:
    """Why it cannot be told of what kind a body says that it is; empty where it can."""
    wrong = (key for key in ("apiVersion", "kind") if not isinstance(body.get(key), str | None))
    for key in wrong:
        why = f"json: cannot unmarshal {gotext.word(body[key])} into Go struct field .{key} of type string"
        return f"couldn't get version/kind; json parse error: {why}"
    return ""


def _unconverted(kind: Kind, name: str, version: str) -> str:
    """Why one built-in kind is not another."""
    if (name, version or kind.api_version) in _builtin_kinds():
        group, _, plain = (version or kind.api_version).rpartition("/")
        return f"converting ({plain}.{name}) to ({kind.group.partition('.')[0] or 'core'}.{kind.name}): unknown conversion"
    return f'no kind "{name or kind.name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'


@cache
def _builtin_kinds() -> frozenset[tuple[str, str]]:
    return frozenset((served.kind.name, served.kind.api_version) for served in builtins())


def _check_custom_type(kind: Kind, name: str, version: str, body: Body) -> None:
    if not name:
        text = orjson.dumps(body).decode()
        missing = f"Object 'Kind' is missing in '{text}' ({text[:_EXCERPT]} ...)"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind.name}): {missing}")
    if version != kind.api_version:
        expected = f"the expected API version ({kind.api_version})"
        raise status.bad_request(f"the API version in the data ({version}) does not match {expected}")
    if name != kind.name:
        title = (body.get("metadata") or {}).get("name", "")
        raise status.invalid(replace(kind, name=name), title, [causes.invalid("kind", name, f"must be {kind.name}")])


def _read_builtin(served: Served, body: Body, reader: Reader) -> Draft:
    kind = {"kind": served.kind.name, "apiVersion": served.kind.api_version}
    draft = {**kind, **reader.read({**body, **kind}, served.shape)}
    rules_of(served).default(draft)
    return draft


def _read_custom(served: Served, body: Body, reader: Reader, *, applied: bool = False) -> Draft:
    known = len(reader.unknown)
    metadata = reader.read(body.get("metadata") or {}, builtin("ObjectMeta"))
    reader.unknown[known:] = [f"metadata.{path}" for path in reader.unknown[known:]]
    kept = structural.pruned({**body, "metadata": metadata}, served.shape, reader.unknown)
    reader.unknown.sort()
    return {**structural.defaulted(kept, served.shape, applied=applied)}


def _told(strictness: Strictness, served: Served, unknown: list[str]) -> tuple[str, ...]:
    texts = tuple(f'unknown field "{path}"' for path in unknown)
    if texts and strictness == "Strict":
        raise Unreadable(served.kind.name, served.kind.version, f"strict decoding error: {', '.join(texts)}")
    return texts if strictness == "Warn" else ()
