"""Leases: the server's rules for one Lease object, in memory."""

from typing import Any, cast

import anyio

from engine.errors import AlreadyExists, Conflict, Forbidden, Unreachable
from engine.ids import Kind
from engine.runtime.client import Listing
from providers.sandbox.clock import VirtualClock


class Leases:
    """The part of a `Client` that leases need, with the server's rules; every refusal is counted."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.revision = 0
        self.requests: list[str] = []
        self.refused = 0
        self.cut_off: set[str] = set()
        """Identities whose requests do not arrive."""
        self.answers_lost = 0
        """How many writes are done without an answer."""
        self.forbidden = False
        self.away = False

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        await self._arrive("list")
        assert fields == "metadata.name=engine"
        return Listing([dict(self.lease)] if self.lease else [], str(self.revision))

    async def create(self, kind: Kind, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        await self._arrive("create", body)
        if self.lease:
            self.refused += 1
            raise AlreadyExists("there")
        return self.keep(body)

    async def replace(self, kind: Kind, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        await self._arrive("replace", body)
        assert self.lease
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            self.refused += 1
            raise Conflict("changed")
        return self.keep(body)

    async def _arrive(self, verb: str, body: dict[str, Any] | None = None) -> None:
        self.requests.append(verb)
        await anyio.lowlevel.checkpoint()
        if self.away:
            raise Unreachable("away")
        if self.forbidden:
            raise Forbidden("leases are not for you")
        if body and body["spec"]["holderIdentity"] in self.cut_off:
            raise Unreachable("cut")

    def keep(self, body: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.revision)}}
        if self.answers_lost:
            self.answers_lost -= 1
            raise Unreachable("cut")
        return dict(self.lease)

    @property
    def holder(self) -> str:
        return cast(str, self.lease["spec"]["holderIdentity"]) if self.lease else ""


def record(holder: str, clock: VirtualClock, *, seconds: int = 15) -> dict[str, Any]:
    """A Lease that somebody has just renewed, for the third time in other hands."""
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now, "acquireTime": now, "leaseTransitions": 3}
    return {"metadata": {"name": "engine", "namespace": "default", "resourceVersion": "0"}, "spec": spec}
