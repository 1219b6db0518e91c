"""Telling: Events that actors write about pods, one for each thing that is said, counted when it is said again."""

import hashlib
from contextlib import suppress
from typing import Final

from engine.errors import AlreadyExists, ClusterError
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.body import Body, uid_of
from providers.sandbox.actors.moments import written
from resources.base.kinds import EVENT

LONGEST: Final = 1024
"""How long a message may be."""


async def warn(client: Client, clock: Clock, pod: Body, reason: str, message: str, *, component: str, host: str = "") -> None:
    """A Warning about the pod; repeated words raise the count of the event that is there."""
    message = message[:LONGEST]
    namespace, pod_name, now = pod["metadata"]["namespace"], pod["metadata"]["name"], written(clock.now())
    digest = hashlib.sha256(f"{uid_of(pod)}/{component}/{reason}/{message}".encode()).hexdigest()[:16]
    name = f"{pod_name[:230]}.{digest}"
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod_name, "uid": uid_of(pod)}
    event = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": component} | ({"host": host} if host else {}),
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    # What cannot be told, in a namespace that goes away or to a server that is busy, is no reason to leave off work.
    with suppress(ClusterError):
        try:
            await client.create(EVENT, namespace, event)
        except AlreadyExists:
            told = await client.get(EVENT, namespace, name)
            await client.patch(EVENT, namespace, name, {"count": (told.get("count") or 1) + 1, "lastTimestamp": now})
