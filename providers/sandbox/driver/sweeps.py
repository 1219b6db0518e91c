"""Sweeps: what bears the uid of a domain that does not exist is cleaned up, at the start and every ten minutes.

A domain that somebody's finalizer keeps exists, so nothing of it is swept.
"""

from contextlib import suppress
from typing import Final

import anyio

from engine.errors import NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, key_of, labels_of, uid_of
from providers.sandbox.driver.facts import Facts, OfDomains
from providers.sandbox.driver.rounds import Rounds
from providers.sandbox.driver.teardown import delete, release, unlabel
from providers.sandbox.installation.kinds import DOMAIN

EVERY: Final = 600.0
LABELS: Final = "labels"


class Sweeps:
    """The sweeper of what nobody will ask for again."""

    def __init__(self, client: Client, clock: Clock, facts: Facts) -> None:
        self._client, self._facts = client, facts
        self._rounds = Rounds(clock, EVERY, self._sweep)
        self._labels: Agenda[str] = Agenda(clock)
        facts.domains.tell(self._saw)
        for seen in (facts.templates, facts.daemon_sets, facts.nodes):
            seen.tell(self._saw)

    async def run(self) -> None:
        """Sweep, for ever."""
        self._rounds.note(at_once=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._rounds.go)
            tasks.start_soon(self._labels.work, self._sweep_labels)

    def note_labels(self) -> None:
        """Look at the nodes' labels as soon as may be."""
        self._labels.add(LABELS)

    def _saw(self, key: Key, old: Body | None, new: Body | None) -> None:
        """A domain that has gone leaves something, or something has come that no domain is known for."""
        labelled = [labels_of(body)[DOMAIN] for body in (old, new) if body is not None and DOMAIN in labels_of(body)]
        if new is None or any(self._facts.domain(uid) is None for uid in labelled):
            self._rounds.note()

    async def _sweep(self) -> None:
        for seen in (self._facts.templates, self._facts.daemon_sets):
            for body in self._orphans(seen):
                await delete(self._client, seen.kind, body)
                with suppress(NotFound):
                    dying = await self._client.get(seen.kind, *key_of(body))
                    if uid_of(dying) == uid_of(body):
                        await release(self._client, seen.kind, dying)
        await self._sweep_labels(LABELS)

    async def _sweep_labels(self, _: str) -> None:
        for node in self._orphans(self._facts.nodes):
            await unlabel(self._client, self._facts.nodes, node)

    def _orphans(self, seen: OfDomains) -> list[Body]:
        return [body for uid in seen.uids if self._facts.domain(uid) is None for body in seen.of(uid)]
