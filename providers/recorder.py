"""Recorder: writes Kubernetes Events; a repeated event increases the count of the first one, whichever process has written it."""

from collections import OrderedDict
from datetime import datetime
from hashlib import sha256

from engine.errors import AlreadyExists, NotFound
from engine.event import Event
from engine.ids import ResourceId
from engine.runtime.clock import Clock
from engine.runtime.provider import Client
from resources.base import kinds

COMPONENTS = {
    "PodCliqueSet": "podcliqueset-controller",
    "PodClique": "podclique-controller",
    "PodCliqueScalingGroup": "podcliquescalinggroup-controller",
    "PodGang": "podgang",
    "ClusterTopologyBinding": "clustertopology-controller",
}
"""Kind of the object -> the component that its events name. Users filter by these names."""

MAX_REMEMBERED = 4096
"""How many counts are remembered; that of the Event written longest ago is forgotten first, and read again when it is needed."""

MAX_COUNT = 2**31 - 1
"""The largest count that the API stores."""

MAX_NAME_LENGTH = 253

API_VERSIONS = {(kind.group, kind.name): kind.api_version for kind in kinds.KINDS}


class Recorder:
    """Writes Events, and remembers their counts.

    The name of an Event is a function of what it says about which object: a process that knows nothing of those before it finds it under
    that name.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()
        """Namespace and name of an Event object -> its count."""

    async def record(self, event: Event) -> None:
        """Create the Event object, or add to its count if it exists. Raises `ClusterError`."""
        namespace, name = _namespace(event), event_name(event.about.name, _digest(event))
        count = self._counts.get((namespace, name))
        if count is None or not await self._add(event, name, count):
            await self._create(event, name)

    async def _create(self, event: Event, name: str) -> None:
        """Create the Event object; if an earlier process has, add to its count."""
        namespace = _namespace(event)
        try:
            await self._client.create(kinds.EVENT, namespace, _body(event, name, timestamp(self._clock.now())))
            self._remember(namespace, name, event.count)
        except AlreadyExists:
            # Its count is in the answer to a patch: the permission to read events is not needed.
            changes = {"lastTimestamp": timestamp(self._clock.now())}
            stored = (await self._client.patch(kinds.EVENT, namespace, name, changes)).get("count")
            await self._add(event, name, max(1, stored) if isinstance(stored, int) else 1)

    async def _add(self, event: Event, name: str, count: int) -> bool:
        """Add to the count of an Event object. Returns False if the object has expired."""
        namespace, total = _namespace(event), min(count + event.count, MAX_COUNT)
        changes: dict[str, object] = {"count": total, "lastTimestamp": timestamp(self._clock.now())}
        if event.combined:
            changes["message"] = _message(event)
        try:
            await self._client.patch(kinds.EVENT, namespace, name, changes)
        except NotFound:
            self._counts.pop((namespace, name), None)
            return False
        self._remember(namespace, name, total)
        return True

    def _remember(self, namespace: str, name: str, count: int) -> None:
        self._counts[namespace, name] = count
        self._counts.move_to_end((namespace, name))
        if len(self._counts) > MAX_REMEMBERED:
            self._counts.popitem(last=False)


def event_name(object_name: str, token: str) -> str:
    """The name of an Event object: the name of the object, shortened if need be, and a token."""
    length = MAX_NAME_LENGTH - len(token) - 1
    return f"{object_name[:length].rstrip('-.')}.{token}"


def _digest(event: Event) -> str:
    """A token that is the same for equal events. The message of a combined Event changes with each of its events."""
    about = event.about
    message = "" if event.combined else _message(event)
    facts = (about.group, about.kind, about.namespace, about.name, event.uid, event.warning, event.reason, event.combined, message)
    return sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _message(event: Event) -> str:
    return event.message[:1024]


def timestamp(moment: datetime) -> str:
    """A time in UTC in the format of the API, in whole seconds, e.g. `2025-01-31T12:00:00Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _namespace(event: Event) -> str:
    return event.about.namespace or "default"


def _body(event: Event, name: str, now: str) -> dict[str, object]:
    component = COMPONENTS.get(event.about.kind, "engine")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": _namespace(event)},
        "involvedObject": _reference(event.about, event.uid),
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": _message(event),
        "count": event.count,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
    }


def _reference(id: ResourceId, uid: str) -> dict[str, str]:
    return {
        "apiVersion": API_VERSIONS.get((id.group, id.kind), "v1"),
        "kind": id.kind,
        "namespace": id.namespace,
        "name": id.name,
        "uid": uid,
    }
