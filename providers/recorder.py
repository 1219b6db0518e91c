"""Recorder: Kubernetes Events, written once and counted when they repeat."""

from engine.ids import ResourceId
from engine.operation import Event
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from resources import kinds

COMPONENTS = {
    "PodCliqueSet": "podcliqueset-controller",
    "PodClique": "podclique-controller",
    "PodCliqueScalingGroup": "podcliquescalinggroup-controller",
    "PodGang": "podgang",
}
"""Who speaks about which kind, under the names that people filter by."""

MOST = 4096
"""How many events are remembered for counting; the oldest is forgotten first."""

API_VERSIONS = {(kind.group, kind.name): kind.api_version for kind in kinds.KINDS}


class Recorder:
    """Writes events; one that repeats is counted on the first, as long as this process lives."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._told: dict[Event, tuple[str, int]] = {}

    async def record(self, event: Event) -> None:
        """Write the event. Raises `ClusterError`."""
        name, count = self._told.pop(event, ("", 0))
        moment = self._clock.now()
        at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        namespace = event.about.namespace or "default"
        if name:
            await self._client.patch(kinds.EVENT, namespace, name, {"count": count + 1, "lastTimestamp": at})
        else:
            name = f"{event.about.name}.{int(moment.timestamp() * 1_000_000):x}{len(self._told):x}"
            await self._client.create(kinds.EVENT, namespace, _body(event, name, namespace, at))
        self._told[event] = (name, count + 1)
        if len(self._told) > MOST:
            del self._told[next(iter(self._told))]


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
