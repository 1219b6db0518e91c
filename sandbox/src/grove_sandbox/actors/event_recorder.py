"""Event recorder: Warning events of actors about pods; an event that is repeated is counted."""

import hashlib
from contextlib import suppress
from typing import Final

from grove_sandbox.actors.body import Body, timestamp, uid_of
from grove_sandbox.product import AlreadyExists, Client, Clock, ClusterError, kinds

MAX_MESSAGE: Final = 1024
"""Characters of a message that the API accepts."""


async def record_warning(client: Client, clock: Clock, pod: Body, reason: str, message: str, *, component: str, host: str = "") -> None:
    """Create a Warning about the pod, or raise the count of the same one. Errors are ignored: an event is not worth failing for."""
    message = message[:MAX_MESSAGE]
    namespace, pod_name, now = pod["metadata"]["namespace"], pod["metadata"]["name"], timestamp(clock.now())
    digest = hashlib.sha256(f"{uid_of(pod)}/{component}/{reason}/{message}".encode()).hexdigest()[:16]
    name = f"{pod_name[:230]}.{digest}"
    event = {
        "apiVersion": kinds.EVENT.api_version,
        "kind": kinds.EVENT.name,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod_name, "uid": uid_of(pod)},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": component} | ({"host": host} if host else {}),
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    with suppress(ClusterError):
        try:
            await client.create(kinds.EVENT, namespace, event)
        except AlreadyExists:
            existing = await client.get(kinds.EVENT, namespace, name)
            await client.patch(kinds.EVENT, namespace, name, {"count": (existing.get("count") or 1) + 1, "lastTimestamp": now})
