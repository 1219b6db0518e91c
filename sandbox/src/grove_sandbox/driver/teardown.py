"""Teardown: deletes what belongs to a domain that is being deleted, without regard to pods that use it or to finalizers of others."""

from contextlib import suppress

from grove_sandbox.actors.body import Body, finalizers_of, is_deleting, key_of, uid_of
from grove_sandbox.actors.store import InformerStore, delete
from grove_sandbox.driver.cache import Cache, DomainStore, RetryLater
from grove_sandbox.installation.kinds import DAEMON
from grove_sandbox.product import Client, Kind, NotFound, nvidia


class Teardown:
    """Each attempt does what can be done now, fails if objects are left, and is retried."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client, self._cache = client, cache

    async def advance(self, domain: Body) -> None:
        """One attempt. Raises `RetryLater` unless it was the last."""
        uid, client = uid_of(domain), self._client
        templates, daemon_sets = self._cache.templates, self._cache.daemon_sets
        if (workload := templates.the_one(uid, nvidia.WORKLOAD)) is not None:
            await delete_once(client, templates.kind, workload)
        await self._delete_daemons(uid)
        for node in self._cache.nodes.of(uid):
            await remove_label(client, self._cache.nodes, node)
        await self._remove_finalizer(templates, uid, nvidia.WORKLOAD)
        self._require_gone(templates, uid, nvidia.WORKLOAD)
        await self._remove_finalizer(templates, uid, DAEMON)
        await self._remove_finalizer(daemon_sets, uid)
        self._require_gone(templates, uid, DAEMON)
        self._require_gone(daemon_sets, uid)
        await remove_finalizer(client, nvidia.COMPUTE_DOMAIN, domain)

    async def _delete_daemons(self, uid: str) -> None:
        """Without a DaemonSet its template is not deleted, and the teardown never ends: this is what the driver does."""
        daemon_set = self._cache.daemon_sets.the_one(uid)
        if daemon_set is None:
            return
        if (template := self._cache.templates.the_one(uid, DAEMON)) is not None:
            await delete_once(self._client, self._cache.templates.kind, template)
        await delete_once(self._client, self._cache.daemon_sets.kind, daemon_set)

    async def _remove_finalizer(self, store: DomainStore, uid: str, target: str = "") -> None:
        body = store.the_one(uid, target)
        if body is None:
            return
        if not is_deleting(body):
            raise RetryLater(f"attempting to remove finalizer before {store.kind.name} marked for deletion")
        await remove_finalizer(self._client, store.kind, body)

    def _require_gone(self, store: DomainStore, uid: str, target: str = "") -> None:
        if store.the_one(uid, target) is not None:
            raise RetryLater(f"{store.kind.name} still exists")


async def delete_once(client: Client, kind: Kind, body: Body) -> None:
    """Delete the object unless it is being deleted already."""
    if not is_deleting(body):
        await delete(client, kind, body, propagation="Background")


async def remove_finalizer(client: Client, kind: Kind, body: Body) -> None:
    """Remove the driver's finalizer."""
    if nvidia.DOMAIN_LABEL not in finalizers_of(body):
        return
    finalizers = [finalizer for finalizer in finalizers_of(body) if finalizer != nvidia.DOMAIN_LABEL]
    with suppress(NotFound):
        await client.replace(kind, *key_of(body), {**body, "metadata": {**body["metadata"], "finalizers": finalizers}})


async def remove_label(client: Client, nodes: InformerStore, node: Body) -> None:
    """Remove the node from its domain."""
    with suppress(NotFound):
        await nodes.patch(client, node, {"metadata": {"labels": {nvidia.DOMAIN_LABEL: None}}})
