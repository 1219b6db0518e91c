"""Leases: the server's rules for one Lease object, in memory."""

from typing import Any, cast

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, NotFound, Unreachable
from engine.ids import Kind
from grove_sandbox.clock import VirtualClock


class Leases:
    """The part of a `Client` that a lease uses. Records the requests and counts those that conflict."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.revision = 0
        self.requests: list[str] = []
        self.conflicts = 0
        self.cut_off: set[str] = set()
        """Identities whose writes do not reach the server."""
        self.lost_answers = 0
        """How many writes are done without an answer."""
        self.errors: list[ClusterError] = []
        """What the next writes answer instead of being done."""
        self.history: list[str] = []
        """The holder after each write; empty for nobody."""
        self.forbidden = False
        self.unreachable = False
        self.silent = False
        """Whether requests are accepted and never answered."""

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        await self._receive("get")
        if not self.lease:
            raise NotFound(f'leases "{name}" not found')
        return dict(self.lease)

    async def create(self, kind: Kind, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        await self._receive("create", body)
        if self.lease:
            self.conflicts += 1
            raise AlreadyExists("already exists")
        return self.keep(body)

    async def replace(self, kind: Kind, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        await self._receive("replace", body)
        assert self.lease
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            self.conflicts += 1
            raise Conflict("changed")
        return self.keep(body)

    async def _receive(self, verb: str, body: dict[str, Any] | None = None) -> None:
        self.requests.append(verb)
        await anyio.lowlevel.checkpoint()
        if self.silent:
            await anyio.sleep_forever()
        if self.unreachable:
            raise Unreachable("no answer")
        if self.forbidden:
            raise Forbidden("leases is forbidden")
        if body and self.errors:
            raise self.errors.pop(0)
        if body and body["spec"]["holderIdentity"] in self.cut_off:
            raise Unreachable("no answer")

    def keep(self, body: dict[str, Any]) -> dict[str, Any]:
        """Store the Lease, as any writer would."""
        self.revision += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.revision)}}
        self.history.append(self.holder)
        if self.lost_answers:
            self.lost_answers -= 1
            raise Unreachable("no answer")
        return dict(self.lease)

    @property
    def holder(self) -> str:
        return cast(str, self.lease.get("spec", {}).get("holderIdentity", "")) if self.lease else ""


def record(holder: str, clock: VirtualClock, *, seconds: int = 15) -> dict[str, Any]:
    """A Lease that `holder` has just renewed, after three transitions."""
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now, "acquireTime": now, "leaseTransitions": 3}
    return {"metadata": {"name": "engine", "namespace": "default", "resourceVersion": "0"}, "spec": spec}
