"""Recorder: writes Kubernetes Events; a repeated event increases the count of the first one."""

from datetime import datetime

from engine.errors import NotFound
from engine.event import Event
from engine.ids import ResourceId
from engine.runtime.client import Client
from engine.runtime.clock import Clock
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
"""How many events are remembered for counting; the one recorded longest ago is forgotten first."""

MAX_NAME_LENGTH = 253

API_VERSIONS = {(kind.group, kind.name): kind.api_version for kind in kinds.KINDS}


class Recorder:
    """Writes events, and remembers them as long as this process lives to count repetitions."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorded: dict[Event, tuple[str, int]] = {}
        """Event -> the name of its Event object, and its count."""
        self._created = 0

    async def record(self, event: Event) -> None:
        """Create the Event object, or increase its count if it exists. Raises `ClusterError`."""
        known = self._recorded.pop(event, None)
        self._recorded[event] = (known and await self._count(event, *known)) or (await self._create(event), 1)
        if len(self._recorded) > MAX_REMEMBERED:
            del self._recorded[next(iter(self._recorded))]

    async def _count(self, event: Event, name: str, count: int) -> tuple[str, int] | None:
        """Increase the count of an Event object; None if the object has expired."""
        changes = {"count": count + 1, "lastTimestamp": timestamp(self._clock.now())}
        try:
            await self._client.patch(kinds.EVENT, _namespace(event), name, changes)
        except NotFound:
            return None
        return name, count + 1

    async def _create(self, event: Event) -> str:
        now = self._clock.now()
        self._created += 1
        name = event_name(event.about.name, f"{int(now.timestamp() * 1_000_000):x}.{self._created:x}")
        await self._client.create(kinds.EVENT, _namespace(event), _body(event, name, timestamp(now)))
        return name


def event_name(object_name: str, token: str) -> str:
    """The name of an Event object: the name of the object, shortened if need be, and a unique token."""
    length = MAX_NAME_LENGTH - len(token) - 1
    return f"{object_name[:length].rstrip('-.')}.{token}"


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
        "message": event.message[:1024],
        "count": 1,
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
