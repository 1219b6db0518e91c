"""Conversion: one stored object in the versions of its CRD, and Events in the forms of core and events.k8s.io."""

import orjson

from grove_sandbox.api.store import Stored
from grove_sandbox.kinds.served import Served
from grove_sandbox.product import Body

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


def converted(served: Served, stored: Stored) -> tuple[Body, bytes]:
    """The object in the version of that kind, and its JSON."""
    if stored.body["apiVersion"] == served.kind.api_version:
        return stored.body, stored.encoded
    body = convert(served, stored.body)
    return body, orjson.dumps(body)


def convert(served: Served, body: Body) -> Body:
    """A body in the version of that kind."""
    if body["apiVersion"] == served.kind.api_version:
        return body
    if served.kind.name == "Event" and not served.custom:
        renamed = _EVENT_FIELDS if served.kind.group else _CORE_FIELDS
        body = {renamed.get(key, key): value for key, value in body.items() if value != ""}
    return {**body, "apiVersion": served.kind.api_version}


def to_storage(served: Served, body: Body) -> Body:
    """A body as it is stored: an Event in the form of core, anything else unchanged."""
    if served.kind.group == "events.k8s.io":
        renamed = {_CORE_FIELDS.get(key, key): value for key, value in body.items()}
        return {**renamed, "apiVersion": "v1"}
    return body
