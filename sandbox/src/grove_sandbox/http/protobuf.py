"""Protobuf: what `kubectl create` without a file and `kubectl auth can-i` send, for they send it in no other form.

A message is a map from field numbers to names and types. A type is `s` (text), `y` (bytes), `b` (boolean), a message, a list around the
type of a repeated field, or a dict with the key `*` for a map from text.
"""

import base64
from collections.abc import Iterator
from typing import Any

from grove_sandbox.http.negotiation import MEDIA_TYPES
from grove_sandbox.types.status import StatusError, bad_request, unsupported_media_type

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

Message = dict[int, tuple[str, Any]]

_META: Message = {
    1: ("name", "s"),
    2: ("generateName", "s"),
    3: ("namespace", "s"),
    8: ("creationTimestamp", {}),
    11: ("labels", {"*": "s"}),
    12: ("annotations", {"*": "s"}),
}
_ATTRIBUTES: Message = {
    number: (name, "s") for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
}
_KINDS: dict[tuple[str, str], Message] = {
    ("v1", "Namespace"): {1: ("metadata", _META), 2: ("spec", {1: ("finalizers", ["s"])}), 3: ("status", {1: ("phase", "s")})},
    ("v1", "ConfigMap"): {1: ("metadata", _META), 2: ("data", {"*": "s"}), 3: ("binaryData", {"*": "y"}), 4: ("immutable", "b")},
    ("v1", "Secret"): {1: ("metadata", _META), 2: ("data", {"*": "y"}), 3: ("type", "s"), 5: ("immutable", "b")},
    ("v1", "ServiceAccount"): {1: ("metadata", _META)},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: ("metadata", _META),
        2: ("spec", {1: ("resourceAttributes", _ATTRIBUTES), 2: ("nonResourceAttributes", {1: ("path", "s"), 2: ("verb", "s")})}),
        3: ("status", {1: ("allowed", "b")}),
    },
}


def decode(data: bytes) -> dict[str, Any]:
    """The object in a protobuf body. Raises 415 for a kind or a field that is not read here, 400 for a broken body."""
    if not data.startswith(_MAGIC):
        raise bad_request("the protobuf body does not begin with the magic bytes of Kubernetes")
    try:
        envelope = dict(_fields(data[len(_MAGIC) :]))
        type_meta = dict(_fields(envelope[1]))
        api_version, kind = type_meta[1].decode(), type_meta[2].decode()
        message = _KINDS.get((api_version, kind))
        if message is None:
            raise _unread(f"{kind} ({api_version})")
        return {"apiVersion": api_version, "kind": kind, **_message(envelope.get(2, b""), message, kind)}
    except StatusError:
        raise
    except (IndexError, KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise bad_request("the protobuf body is broken") from error


def _unread(what: str) -> StatusError:
    return unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES} "
        f"(protobuf is not read for {what}: write it with --dry-run=client -o yaml, and apply that)"
    )


def _message(data: bytes, message: Message, path: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for number, raw in _fields(data):
        name, type_ = message.get(number, ("", None))
        if isinstance(type_, list):
            result.setdefault(name, []).append(_value(type_[0], raw, f"{path}.{name}"))
        elif isinstance(type_, dict) and "*" in type_:
            entry = dict(_fields(raw))
            result.setdefault(name, {})[entry[1].decode()] = _value(type_["*"], entry.get(2, b""), f"{path}.{name}")
        elif type_ is not None:
            result[name] = _value(type_, raw, f"{path}.{name}")
        elif raw not in (b"", 0):
            raise _unread(f"field {number} of {path}")
    return {name: value for name, value in result.items() if value not in ("", {}, [])}


def _value(type_: Any, raw: Any, path: str) -> Any:
    if isinstance(type_, dict):
        return _message(raw, type_, path)
    if type_ == "y":
        return base64.b64encode(raw).decode()
    return raw.decode() if type_ == "s" else bool(raw)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message on the wire: their numbers, and an integer or bytes for each."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError("a field is longer than its message")
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise KeyError(f"wire type {tag & 7}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The integer at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise IndexError("a number without an end")
