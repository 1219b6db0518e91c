"""Presence: a Lease for each replica of `engine run` with shards, by which the others know that it is alive."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, NotFound
from engine.runtime.lease import LEASE, RELEASE_TIMEOUT, Lease, micro_time
from engine.runtime.lease_holder import CurrentHolder, annotated, holder_of


def presence_prefix(first: Lease) -> str:
    """How the names of the Leases of replicas begin. `first`: the lease of shard 0."""
    return f"{first.name}-replica-"


class Presence:
    """The Lease by which others know that this replica is alive."""

    def __init__(self, first: Lease) -> None:
        self._first = first
        self._name = f"{presence_prefix(first)}{sha256(first.identity.encode()).hexdigest()[:10]}"
        self._record: Mapping[str, Any] = {}
        """The Lease object as we wrote it last; empty if it may not exist."""
        self.first_uid = ""
        """The uid of the Lease of shard 0; empty while it is not known. It owns this one: whoever deletes it deletes all."""

    async def renew(self) -> None:
        """Create the Lease, or renew it. Raises the server's errors; the next attempt reads it first."""
        record, self._record = self._record, {}
        client, namespace = self._first.client, self._first.namespace
        if not record:
            try:
                self._record = await client.create(LEASE, namespace, self._body({}))
                return
            except AlreadyExists:
                record = await client.get(LEASE, namespace, self._name)
        try:
            self._record = await client.replace(LEASE, namespace, self._name, self._body(record))
        except (Conflict, NotFound):
            return  # Somebody has deleted or labelled it: the next attempt creates or reads it.

    def _body(self, record: Mapping[str, Any]) -> dict[str, Any]:
        first, now = self._first, micro_time(self._first.clock.now())
        before = record or {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self._name, "namespace": first.namespace},
        }
        spec: dict[str, Any] = {"acquireTime": now, **(before.get("spec") or {})}
        spec |= {"holderIdentity": first.identity, "leaseDurationSeconds": max(1, round(first.durations.lease)), "renewTime": now}
        metadata = annotated(before, first.identity, first.purpose)
        if self.first_uid:
            owner = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "name": first.name, "uid": self.first_uid}
            metadata = {**metadata, "ownerReferences": [owner]}
        return {**before, "spec": spec, "metadata": metadata}

    async def delete(self) -> None:
        """Delete the Lease, so that the others need not wait. Runs although we are cancelled; raises nothing that the server answers."""
        with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
            try:
                await self._first.client.delete(LEASE, self._first.namespace, self._name)
            except ClusterError:
                return  # It expires by itself.


class Replicas:
    """The replicas that are alive, by the Leases that they renew, each judged on our own clock."""

    def __init__(self, first: Lease) -> None:
        self._first = first
        self._known: dict[str, CurrentHolder] = {}
        """Name of a Lease -> what is known of the replica that renews it."""

    async def alive(self, leases: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
        """The identities of the replicas whose Leases (by name) have not expired, and ours. Leases that have are deleted."""
        prefix, first = presence_prefix(self._first), self._first
        present = {name: lease for name, lease in leases.items() if name.startswith(prefix)}
        self._known = {name: self._known.get(name) or CurrentHolder() for name in present}
        alive = {first.identity}
        for name, lease in present.items():
            holder = holder_of(lease).identity
            if holder == first.identity:
                continue
            if self._known[name].may_be_replaced(lease, "", first.clock.monotonic(), first.durations.lease):
                await self._delete(name, lease)
            else:
                alive.add(holder)
        return frozenset(alive)

    async def _delete(self, name: str, lease: Mapping[str, Any]) -> None:
        """Delete the Lease of a replica that is gone, unless it has just been renewed."""
        metadata = lease["metadata"]
        try:
            await self._first.client.delete(
                LEASE, self._first.namespace, name, uid=metadata.get("uid", ""), revision=metadata["resourceVersion"]
            )
        except ClusterError:
            return  # Somebody else has deleted it, or it was renewed.
