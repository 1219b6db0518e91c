"""Faces: one stored object as several kinds show it — the versions of a CRD, and the two Events of core and events.k8s.io."""

from collections.abc import Mapping
from typing import Any

import orjson

from providers.sandbox.api.store import Stored
from providers.sandbox.kinds.served import Served

Body = Mapping[str, Any]

_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "source": "deprecatedSource",
    "reportingComponent": "reportingController",
}
_CORE_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}


def shown(served: Served, stored: Stored) -> tuple[Body, bytes]:
    """The object as that kind shows it, with its bytes; as it is stored whenever that is the same."""
    if stored.body["apiVersion"] == served.kind.api_version:
        return stored.body, stored.encoded
    body = face_of(served, stored.body)
    return body, orjson.dumps(body)


def face_of(served: Served, body: Body) -> Body:
    """A body turned to show that kind's face."""
    if body["apiVersion"] == served.kind.api_version:
        return body
    if served.kind.name == "Event" and not served.custom:
        renamed = _EVENT_FIELDS if served.kind.group else _CORE_FIELDS
        body = {renamed.get(key, key): value for key, value in body.items() if value != ""}
    return {**body, "apiVersion": served.kind.api_version}


def kept(served: Served, body: Body) -> Body:
    """A body as it is stored: Events in core's form, everything else as it was written."""
    if served.kind.group == "events.k8s.io":
        renamed = {_CORE_FIELDS.get(key, key): value for key, value in body.items()}
        return {**renamed, "apiVersion": "v1"}
    return body
