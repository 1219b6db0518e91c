"""Recorder: Kubernetes Events, written once and counted when they repeat."""

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
"""Who speaks about which kind, under the names that people filter by."""

MOST = 4096
"""How many events are remembered for counting; the oldest is forgotten first."""

LONGEST_NAME = 253
"""Characters that the name of an object may have."""

API_VERSIONS = {(kind.group, kind.name): kind.api_version for kind in kinds.KINDS}


class Recorder:
    """Writes events; one that repeats is counted on the first, as long as this process lives."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._told: dict[Event, tuple[str, int]] = {}
        self._written = 0

    async def record(self, event: Event) -> None:
        """Write the event, or count it on the one that is there. Raises `ClusterError`."""
        known = self._told.pop(event, None)
        self._told[event] = (known and await self._again(event, *known)) or (await self._anew(event), 1)
        if len(self._told) > MOST:
            del self._told[next(iter(self._told))]

    async def _again(self, event: Event, name: str, count: int) -> tuple[str, int] | None:
        """Count a repetition; None when the event has expired meanwhile."""
        more = {"count": count + 1, "lastTimestamp": spelled(self._clock.now())}
        try:
            await self._client.patch(kinds.EVENT, _place(event), name, more)
        except NotFound:
            return None
        return name, count + 1

    async def _anew(self, event: Event) -> str:
        moment = self._clock.now()
        self._written += 1
        name = event_name(event.about.name, f"{int(moment.timestamp() * 1_000_000):x}.{self._written:x}")
        await self._client.create(kinds.EVENT, _place(event), _body(event, name, _place(event), spelled(moment)))
        return name


def event_name(about: str, token: str) -> str:
    """The name of an event: that of the object, as far as there is room for it, and something that makes it unique."""
    room = LONGEST_NAME - len(token) - 1
    return f"{about[:room].rstrip('-.')}.{token}"


def spelled(moment: datetime) -> str:
    """A moment as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _place(event: Event) -> str:
    return event.about.namespace or "default"


def _body(event: Event, name: str, namespace: str, at: str) -> dict[str, object]:
    component = COMPONENTS.get(event.about.kind, "engine")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": _reference(event.about, event.uid),
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message[:1024],
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
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
