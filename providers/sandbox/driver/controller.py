"""Controller: makes what a ComputeDomain needs, and takes it down the moment the domain is being deleted, whoever still uses it."""

from typing import Final, NamedTuple

import anyio

from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, is_deleting, key_of, labels_of, status_of, uid_of
from providers.sandbox.actors.settings import Driver
from providers.sandbox.driver.facts import Facts, OfDomains
from providers.sandbox.driver.lookup import one_of_domain
from providers.sandbox.driver.objects import daemon_set, daemon_template, workload_template
from providers.sandbox.driver.rounds import Rounds
from providers.sandbox.driver.status import Statuses, overall
from providers.sandbox.driver.sweeps import Sweeps
from providers.sandbox.driver.teardown import Teardown
from providers.sandbox.installation.kinds import COMPUTE_DOMAIN, DAEMON, DAEMON_SET, DOMAIN, WORKLOAD
from resources.base.kinds import RESOURCE_CLAIM_TEMPLATE

FIRST, LAST = 0.005, 1000.0
"""Seconds before a domain is looked at, and before it is looked at again: at first, and at most."""
RESYNC: Final = 600.0
"""Seconds after which everything is looked at again, whether anything was heard of it or not."""
RESTART: Final = 10.0
"""Seconds until a controller that has crashed is up again."""


class Item(NamedTuple):
    """One thing that was heard of a domain. Each is worked off by itself, however many there are, and retried by itself."""

    key: Key
    revision: str


class Controller:
    """The chain of work for a domain, and the controller's rounds."""

    def __init__(self, client: Client, clock: Clock, settings: Driver, facts: Facts) -> None:
        self._client, self._clock, self._settings, self._facts = client, clock, settings, facts
        self._agenda: Agenda[Item] = Agenda(clock, first=FIRST, last=LAST)
        self._resync = Rounds(clock, RESYNC, self._enqueue_all)
        self._statuses = Statuses(client, clock, facts)
        self._sweeps = Sweeps(client, clock, facts)
        self._teardown = Teardown(client, facts)
        facts.domains.tell(self._saw_domain)
        facts.daemon_sets.tell(self._saw_made)
        facts.templates.tell(self._saw_made)
        facts.nodes.tell(self._saw_node)

    async def run(self) -> None:
        """Control, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._work)
            tasks.start_soon(self._resync.go)
            tasks.start_soon(self._statuses.run)
            tasks.start_soon(self._sweeps.run)

    async def _work(self) -> None:
        # One worker: what one item has made, the next one finds.
        await self._agenda.work(self._look, workers=1)

    def _saw_domain(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None:
            self._enqueue(new)

    def _saw_made(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Nobody watches what was made go away; that is found in the next resync."""
        if new is None:
            self._resync.note()

    def _saw_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Nor that a node is put into a domain that is being taken down."""
        label = labels_of(new).get(DOMAIN) if new is not None else None
        if label is not None and (domain := self._facts.domain(label)) is not None and is_deleting(domain):
            self._resync.note()

    def _enqueue(self, domain: Body) -> None:
        self._agenda.later(Item(key_of(domain), domain["metadata"]["resourceVersion"]), FIRST)

    async def _enqueue_all(self) -> None:
        for domain in self._facts.domains.objects.values():
            self._enqueue(domain)

    async def _look(self, item: Item) -> float | None:
        if self._crashes():
            return RESTART
        domain = self._facts.domains.get(*item.key)
        if domain is None:
            return None
        if is_deleting(domain):
            await self._teardown.go_on(domain)
        else:
            await self._serve(domain)
        return None

    def _crashes(self) -> bool:
        """A domain without a spec is more than the controller can bear; as long as there is one, it does nothing for anybody."""
        return any(not (one.get("spec") or {}).get("channel") and not is_deleting(one) for one in self._facts.domains.objects.values())

    async def _serve(self, domain: Body) -> None:
        """Finalizer first, then the daemons', then the workload's; a step that fails keeps the later ones from being tried."""
        domain = await self._finalized(domain)
        self._sweeps.note_labels()
        facts = self._facts
        await self._have(facts.templates, domain, RESOURCE_CLAIM_TEMPLATE, daemon_template(domain, self._settings), DAEMON)
        await self._have(facts.daemon_sets, domain, DAEMON_SET, daemon_set(domain, self._settings), "")
        await self._have(facts.templates, domain, RESOURCE_CLAIM_TEMPLATE, workload_template(domain), WORKLOAD)
        await self._statuses.write(domain, overall(domain, status_of(domain).get("nodes") or ()))

    async def _finalized(self, domain: Body) -> Body:
        metadata = domain["metadata"]
        finalizers = metadata.get("finalizers") or []
        if DOMAIN in finalizers:
            return domain
        wanted = {**domain, "metadata": {**metadata, "finalizers": [*finalizers, DOMAIN]}}
        made = await self._client.replace(COMPUTE_DOMAIN, *key_of(domain), wanted)
        self._facts.domains.assume(made)
        return made

    async def _have(self, seen: OfDomains, domain: Body, kind: Kind, wanted: Body, target: str) -> None:
        """Make it unless there is one by label. One that has its name and not its label is in the way, and is never adopted."""
        found = one_of_domain(seen, uid_of(domain), target)
        if found is None:
            made = await self._client.create(kind, wanted["metadata"]["namespace"], wanted)
            seen.saw("ADDED", made)
