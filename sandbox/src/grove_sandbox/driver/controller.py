"""Controller: creates what a ComputeDomain needs, and deletes it as soon as the domain is being deleted, whether used or not."""

from typing import Final, NamedTuple

import anyio

from grove_sandbox.actors.body import Body, Key, finalizers_of, is_deleting, key_of, labels_of, status_of, uid_of
from grove_sandbox.actors.options import DriverOptions
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, DomainStore
from grove_sandbox.driver.cleanup import StaleObjectCleanup
from grove_sandbox.driver.objects import daemon_set, daemon_template, workload_template
from grove_sandbox.driver.periodic import PeriodicTask
from grove_sandbox.driver.status import StatusWriters, overall_status
from grove_sandbox.driver.teardown import Teardown
from grove_sandbox.installation.kinds import DAEMON
from grove_sandbox.product import Client, Clock, Kind, kinds, nvidia

FIRST_RETRY, LAST_RETRY = 0.005, 1000.0
"""Seconds until an item is retried, at first and at most. A new item waits for the first."""
RESYNC: Final = 600.0
"""Seconds between two times at which all domains are processed, changed or not."""
RESTART: Final = 10.0
"""Seconds until a controller that has crashed runs again."""


class DomainItem(NamedTuple):
    """One revision of a domain. Each is processed, and retried, by itself."""

    key: Key
    revision: str


class Controller:
    """The driver's controller, with the writers of statuses and the cleanup of stale objects."""

    def __init__(self, client: Client, clock: Clock, options: DriverOptions, cache: Cache) -> None:
        self._client, self._clock, self._options, self._cache = client, clock, options, cache
        self._queue: WorkQueue[DomainItem] = WorkQueue(clock, first_retry=FIRST_RETRY, last_retry=LAST_RETRY)
        self._resync = PeriodicTask(clock, RESYNC, self._enqueue_all)
        self._statuses = StatusWriters(client, clock, cache)
        self._cleanup = StaleObjectCleanup(client, clock, cache)
        self._teardown = Teardown(client, cache)
        cache.domains.subscribe(self._on_domain)
        cache.daemon_sets.subscribe(self._on_child)
        cache.templates.subscribe(self._on_child)
        cache.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_queue)
            tasks.start_soon(self._resync.run)
            tasks.start_soon(self._statuses.run)
            tasks.start_soon(self._cleanup.run)

    async def _run_queue(self) -> None:
        # One worker: an item must find what the item before it has created.
        await self._queue.run(self._process, workers=1)

    def _on_domain(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None:
            self._enqueue(new)

    def _on_child(self, key: Key, old: Body | None, new: Body | None) -> None:
        """The driver does not watch its children's deletion; the next resync finds it."""
        if new is None:
            self._resync.request()

    def _on_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Nor does it watch that a node joins a domain that is being deleted."""
        uid = labels_of(new).get(nvidia.DOMAIN_LABEL) if new is not None else None
        if uid is not None and (domain := self._cache.domain(uid)) is not None and is_deleting(domain):
            self._resync.request()

    def _enqueue(self, domain: Body) -> None:
        self._queue.add_after(DomainItem(key_of(domain), domain["metadata"]["resourceVersion"]), FIRST_RETRY)

    async def _enqueue_all(self) -> None:
        for domain in self._cache.domains.objects.values():
            self._enqueue(domain)

    async def _process(self, item: DomainItem) -> float | None:
        if self._crashes():
            return RESTART
        domain = self._cache.domains.get(*item.key)
        if domain is None:
            return None
        if is_deleting(domain):
            await self._teardown.advance(domain)
        else:
            await self._set_up(domain)
        return None

    def _crashes(self) -> bool:
        """A domain without a spec makes the controller panic, so as long as there is one, no domain is processed."""
        domains = self._cache.domains.objects.values()
        return any(not (domain.get("spec") or {}).get("channel") and not is_deleting(domain) for domain in domains)

    async def _set_up(self, domain: Body) -> None:
        """The finalizer first, then the daemons' objects, then the workload's. A step that fails ends the attempt."""
        domain = await self._add_finalizer(domain)
        self._cleanup.request_labels()
        cache = self._cache
        if not self._options.host_managed:
            await self._ensure(cache.templates, domain, kinds.RESOURCE_CLAIM_TEMPLATE, daemon_template(domain, self._options), DAEMON)
            await self._ensure(cache.daemon_sets, domain, kinds.DAEMON_SET, daemon_set(domain, self._options), "")
        await self._ensure(cache.templates, domain, kinds.RESOURCE_CLAIM_TEMPLATE, workload_template(domain), nvidia.WORKLOAD)
        await self._statuses.write(domain, overall_status(domain, status_of(domain).get("nodes") or ()))

    async def _add_finalizer(self, domain: Body) -> Body:
        finalizers = finalizers_of(domain)
        if nvidia.DOMAIN_LABEL in finalizers:
            return domain
        desired = {**domain, "metadata": {**domain["metadata"], "finalizers": [*finalizers, nvidia.DOMAIN_LABEL]}}
        answer = await self._client.replace(nvidia.COMPUTE_DOMAIN, *key_of(domain), desired)
        self._cache.domains.assume(answer)
        return answer

    async def _ensure(self, store: DomainStore, domain: Body, kind: Kind, desired: Body, target: str) -> None:
        """Create it unless there is one by label. An object of its name without the label makes this fail; it is never adopted."""
        if store.the_one(uid_of(domain), target) is None:
            store.apply("ADDED", await self._client.create(kind, desired["metadata"]["namespace"], desired))
