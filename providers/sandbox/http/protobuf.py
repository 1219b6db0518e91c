"""Protobuf: the few bodies that kubectl sends in no other form, such as `create namespace` and `auth can-i`.

A message is described by its fields: number, then name and type. `s` text, `y` bytes, `b` boolean, `i` integer, a
description for a message, a list around a type for repeated ones, a dict around one for maps from text.
"""

import base64
from collections.abc import Iterator
from typing import Any

from providers.sandbox.http.negotiation import MEDIA_TYPES
from providers.sandbox.types.status import StatusError, bad_request, unsupported_media_type

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

Message = dict[int, tuple[str, Any]]

_OWNER: Message = {
    5: ("apiVersion", "s"),
    1: ("kind", "s"),
    3: ("name", "s"),
    4: ("uid", "s"),
    6: ("controller", "b"),
    7: ("blockOwnerDeletion", "b"),
}
_META: Message = {
    1: ("name", "s"),
    2: ("generateName", "s"),
    3: ("namespace", "s"),
    5: ("uid", "s"),
    6: ("resourceVersion", "s"),
    8: ("creationTimestamp", {}),
    11: ("labels", {"*": "s"}),
    12: ("annotations", {"*": "s"}),
    13: ("ownerReferences", [_OWNER]),
    14: ("finalizers", ["s"]),
}
_REFERENCE: Message = {1: ("kind", "s"), 2: ("namespace", "s"), 3: ("name", "s"), 4: ("uid", "s"), 5: ("apiVersion", "s")}
_PRECONDITIONS: Message = {1: ("uid", "s"), 2: ("resourceVersion", "s")}
_DELETE_OPTIONS: Message = {
    1: ("gracePeriodSeconds", "i"),
    2: ("preconditions", _PRECONDITIONS),
    3: ("orphanDependents", "b"),
    4: ("propagationPolicy", "s"),
    5: ("dryRun", ["s"]),
}
_RULE: Message = {
    1: ("verbs", ["s"]),
    2: ("apiGroups", ["s"]),
    3: ("resources", ["s"]),
    4: ("resourceNames", ["s"]),
    5: ("nonResourceURLs", ["s"]),
}
_SUBJECT: Message = {1: ("kind", "s"), 2: ("apiGroup", "s"), 3: ("name", "s"), 4: ("namespace", "s")}
_ROLE_REF: Message = {1: ("apiGroup", "s"), 2: ("kind", "s"), 3: ("name", "s")}
_ATTRIBUTES: Message = {
    1: ("namespace", "s"),
    2: ("verb", "s"),
    3: ("group", "s"),
    4: ("version", "s"),
    5: ("resource", "s"),
    6: ("subresource", "s"),
    7: ("name", "s"),
}
_ROLE: Message = {1: ("metadata", _META), 2: ("rules", [_RULE])}
_BINDING: Message = {1: ("metadata", _META), 2: ("subjects", [_SUBJECT]), 3: ("roleRef", _ROLE_REF)}
_TOKEN_SPEC: Message = {1: ("audiences", ["s"]), 3: ("boundObjectRef", _REFERENCE), 4: ("expirationSeconds", "i")}
_ACCESS_SPEC: Message = {1: ("resourceAttributes", _ATTRIBUTES), 2: ("nonResourceAttributes", {1: ("path", "s"), 2: ("verb", "s")})}

_KINDS: dict[tuple[str, str], Message] = {
    ("v1", "Namespace"): {1: ("metadata", _META), 2: ("spec", {1: ("finalizers", ["s"])}), 3: ("status", {1: ("phase", "s")})},
    ("v1", "ConfigMap"): {1: ("metadata", _META), 2: ("data", {"*": "s"}), 3: ("binaryData", {"*": "y"}), 4: ("immutable", "b")},
    ("v1", "Secret"): {
        1: ("metadata", _META),
        2: ("data", {"*": "y"}),
        3: ("type", "s"),
        4: ("stringData", {"*": "s"}),
        5: ("immutable", "b"),
    },
    ("v1", "ServiceAccount"): {
        1: ("metadata", _META),
        2: ("secrets", [_REFERENCE]),
        3: ("imagePullSecrets", [{1: ("name", "s")}]),
        4: ("automountServiceAccountToken", "b"),
    },
    ("v1", "DeleteOptions"): _DELETE_OPTIONS,
    ("policy/v1", "Eviction"): {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    ("rbac.authorization.k8s.io/v1", "Role"): _ROLE,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): _ROLE,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _BINDING,
    ("authentication.k8s.io/v1", "TokenRequest"): {
        1: ("metadata", _META),
        2: ("spec", _TOKEN_SPEC),
        3: ("status", {2: ("expirationTimestamp", {})}),
    },
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: ("metadata", _META), 2: ("status", {1: ("userInfo", {})})},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: ("metadata", _META),
        2: ("spec", _ACCESS_SPEC),
        3: ("status", {1: ("allowed", "b")}),
    },
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: ("metadata", _META),
        2: ("spec", {1: ("namespace", "s")}),
        3: ("status", {3: ("incomplete", "b")}),
    },
}


def decode(data: bytes) -> dict[str, Any]:
    """The object in a protobuf body. Raises 415 for kinds that we do not read, 400 for what is broken."""
    if not data.startswith(_MAGIC):
        raise bad_request("the protobuf body does not begin with the magic bytes of Kubernetes")
    try:
        envelope = dict(_fields(data[len(_MAGIC) :]))
        about = dict(_fields(envelope[1]))
        api_version, kind = about[1].decode(), about[2].decode()
        message = _KINDS.get((api_version, kind))
        if message is None:
            raise unsupported_media_type(_unread(f"{kind} ({api_version})"))
        return {"apiVersion": api_version, "kind": kind, **_message(envelope.get(2, b""), message, kind)}
    except StatusError:
        raise
    except (IndexError, KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise bad_request("the protobuf body is broken") from error


def _unread(what: str) -> str:
    formats = f"the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES}"
    return f"{formats} (protobuf is not read for {what}: write it with --dry-run=client -o yaml, and apply that)"


def _message(data: bytes, message: Message, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _fields(data):
        name, type_ = message.get(number, ("", None))
        if type_ is None:
            if raw not in (b"", 0):
                raise unsupported_media_type(_unread(f"field {number} of {path}"))
            continue
        _put(found, name, type_, raw, f"{path}.{name}")
    return {name: value for name, value in found.items() if value not in ("", {}, [])}


def _put(found: dict[str, Any], name: str, type_: Any, raw: Any, path: str) -> None:
    if isinstance(type_, list):
        found.setdefault(name, []).append(_value(type_[0], raw, path))
    elif isinstance(type_, dict) and "*" in type_:
        entry = dict(_fields(raw))
        found.setdefault(name, {})[entry[1].decode()] = _value(type_["*"], entry.get(2, b""), path)
    else:
        found[name] = _value(type_, raw, path)


def _value(type_: Any, raw: Any, path: str) -> Any:
    if isinstance(type_, dict):
        return _message(raw, type_, path)
    if type_ == "s":
        return raw.decode()
    if type_ == "y":
        return base64.b64encode(raw).decode()
    return bool(raw) if type_ == "b" else raw - (1 << 64) if raw >> 63 else raw


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
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
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise IndexError("a number without an end")
