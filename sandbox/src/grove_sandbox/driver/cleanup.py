"""StaleObjectCleanup: removes objects and labels with the uid of a domain that does not exist, at the start and every ten minutes.

A domain that is kept by a finalizer exists.
"""

from contextlib import suppress
from typing import Final

import anyio

from grove_sandbox.actors.body import Body, Key, key_of, labels_of, uid_of
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, DomainStore
from grove_sandbox.driver.periodic import PeriodicTask
from grove_sandbox.driver.teardown import delete_once, remove_finalizer, remove_label
from grove_sandbox.product import Client, Clock, NotFound, nvidia

PERIOD: Final = 600.0
LABELS: Final = "labels"


class StaleObjectCleanup:
    """Cleans up claim templates, DaemonSets and labels of nodes."""

    def __init__(self, client: Client, clock: Clock, cache: Cache) -> None:
        self._client, self._cache = client, cache
        self._periodic = PeriodicTask(clock, PERIOD, self._clean_all)
        self._label_queue: WorkQueue[str] = WorkQueue(clock)
        for store in (cache.domains, cache.templates, cache.daemon_sets, cache.nodes):
            store.subscribe(self._on_object)

    async def run(self) -> None:
        """Clean up until cancelled."""
        self._periodic.request(now=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._periodic.run)
            tasks.start_soon(self._label_queue.run, self._clean_labels)

    def request_labels(self) -> None:
        """Clean the labels of nodes as soon as possible."""
        self._label_queue.add(LABELS)

    def _on_object(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Something was deleted, or belongs to a domain that is not known."""
        uids = [labels_of(body)[nvidia.DOMAIN_LABEL] for body in (old, new) if body is not None and nvidia.DOMAIN_LABEL in labels_of(body)]
        if new is None or any(self._cache.domain(uid) is None for uid in uids):
            self._periodic.request()

    async def _clean_all(self) -> None:
        for store in (self._cache.templates, self._cache.daemon_sets):
            for body in self._stale(store):
                await delete_once(self._client, store.kind, body)
                with suppress(NotFound):
                    live = await self._client.get(store.kind, *key_of(body))
                    if uid_of(live) == uid_of(body):
                        await remove_finalizer(self._client, store.kind, live)
        await self._clean_labels(LABELS)

    async def _clean_labels(self, _: str) -> None:
        for node in self._stale(self._cache.nodes):
            await remove_label(self._client, self._cache.nodes, node)

    def _stale(self, store: DomainStore) -> list[Body]:
        return [body for uid in store.uids if self._cache.domain(uid) is None for body in store.of(uid)]
