"""Decoding: a request body as an object of its kind, with defaults and without unknown fields."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
from msgspec.structs import replace

from grove_sandbox.api.builtin_decoder import Decoder, Undecodable
from grove_sandbox.api.core import rules_of
from grove_sandbox.api.request import Request, Strictness
from grove_sandbox.kinds.rules import Draft
from grove_sandbox.kinds.served import Served, builtins
from grove_sandbox.product import Body, Kind
from grove_sandbox.types import causes, go_format, status, structural
from grove_sandbox.types.shapes import builtin

_EXCERPT = 30
"""The number of characters of a body that error messages quote."""


def decoded(request: Request, body: Any) -> tuple[Draft, tuple[str, ...]]:
    """The object with defaults, and warnings about unknown fields. Raises 400 for a body that is no such object."""
    served = request.served
    _check_type(served, body)
    decoder = Decoder(served.kind.name, served.kind.version)
    draft = _read_custom(served, body, decoder) if served.custom else _read_builtin(served, body, decoder)
    return draft, _warnings(request.validation, served, decoder.unknown)


def decoded_applied(served: Served, body: Body) -> Draft:
    """The object with defaults, from the result of an apply patch, which has no unknown fields."""
    decoder = Decoder(served.kind.name, served.kind.version)
    return _read_custom(served, body, decoder, applied=True) if served.custom else _read_builtin(served, body, decoder)


def empty_object(served: Served) -> Body:
    """An object of the kind before it is created, with which a create is compared."""
    if served.custom:
        return {"apiVersion": served.kind.api_version, "kind": served.kind.name, "metadata": {}}
    return _empty(served)


@cache
def _empty(served: Served) -> Body:
    kind = {"kind": served.kind.name, "apiVersion": served.kind.api_version}
    return {**kind, **Decoder(served.kind.name, "").decode(kind, served.shape)}


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
        raise Undecodable(kind.name, plain, _unconverted(kind, name, version), sent=name or kind.name)


def type_fault(body: Body) -> str:
    """Why `apiVersion` and `kind` of a body cannot be read; empty if they can."""
    for key in (key for key in ("apiVersion", "kind") if not isinstance(body.get(key), str | None)):
        why = go_format.unmarshal_fault(body[key], f".{key}", "string")
        return f"couldn't get version/kind; json parse error: {why}"
    return ""


def _unconverted(kind: Kind, name: str, version: str) -> str:
    """Why an object of another kind is refused for a built-in kind."""
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


def _read_builtin(served: Served, body: Body, decoder: Decoder) -> Draft:
    kind = {"kind": served.kind.name, "apiVersion": served.kind.api_version}
    draft = {**kind, **decoder.decode({**body, **kind}, served.shape)}
    rules_of(served).default(draft)
    return draft


def _read_custom(served: Served, body: Body, decoder: Decoder, *, applied: bool = False) -> Draft:
    known = len(decoder.unknown)
    metadata = decoder.decode(body.get("metadata") or {}, builtin("ObjectMeta"))
    decoder.unknown[known:] = [f"metadata.{path}" for path in decoder.unknown[known:]]
    kept = structural.pruned({**body, "metadata": metadata}, served.shape, decoder.unknown)
    decoder.unknown.sort()
    return {**structural.defaulted(kept, served.shape, applied=applied)}


def _warnings(strictness: Strictness, served: Served, unknown: list[str]) -> tuple[str, ...]:
    texts = tuple(f'unknown field "{path}"' for path in unknown)
    if texts and strictness == "Strict":
        raise Undecodable(served.kind.name, served.kind.version, f"strict decoding error: {', '.join(texts)}")
    return texts if strictness == "Warn" else ()
