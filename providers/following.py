"""Following: the objects of one list, kept current by a watch, and by what the server has answered to our own writes."""

import random
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import orjson

from engine.errors import ClusterError, Expired, NotFound, ServerFault
from engine.ids import ResourceId
from engine.observed import Live, live
from engine.operation import Operation, Verb
from engine.resource import Body
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.listing import is_hole, listed, typed
from providers.scoping import Target

FIRST_PAUSE, LAST_PAUSE = 0.5, 30.0
"""Seconds between two attempts that bring nothing: doubled each time, a little more or less."""

STALE_AFTER = 30.0
"""Seconds without an answer after which what was seen last is no longer taken for what is there."""

ABSENT_FOR = 60.0
"""Seconds after which we ask again whether the server has a kind by now."""

GOING = frozenset({Verb.DELETE, Verb.RELEASE})

REMEMBERED = 10_000
"""How many of those that have gone are remembered, so that a late answer does not bring them back."""


class Following:
    """One list of a server, followed. What is there is in `lives`; what speaks against it in `trouble`."""

    def __init__(self, client: Client, clock: Clock, target: Target, on_change: Callable[[], None]) -> None:
        self.target = target
        self.kind = target.kind
        """As the server has it: an older version where there is no other."""
        self.synced = anyio.Event()
        """Set once it is known what is there, or why not."""
        self.served = True
        self.lives: dict[ResourceId, Live] = {}
        self._client, self._clock, self._on_change = client, clock, on_change
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._revision = ""
        self._has_listed = self._heard_of = False
        self._error: ClusterError | None = None
        self._alone_since: float | None = None
        """When it failed, not having succeeded since."""

    @property
    def trouble(self) -> ClusterError | None:
        """Why what is in `lives` is not what is there; None as long as it is, or can have changed only a moment ago."""
        if self._error is None or self._alone_since is None:
            return None
        is_stale = self._clock.monotonic() - self._alone_since >= STALE_AFTER
        return self._error if is_stale or not self._has_listed else None

    async def run(self) -> None:
        """Follow, for ever."""
        pause = 0.0
        while True:
            began, self._heard_of = self._clock.monotonic(), False
            try:
                await self._follow()
            except Expired:
                self._revision = ""
            except NotFound:
                await self._absent()
            except ClusterError as error:
                await self._failed(error)
            except (KeyError, TypeError, ValueError) as error:
                await self._failed(ServerFault(f"{self.target.kind.plural} cannot be read: {type(error).__name__}: {error}"))
            # Servers end watches as they please, and the next one follows at once; unless the one before brought nothing either.
            was_good = self._heard_of or self._clock.monotonic() - began > LAST_PAUSE
            pause = 0.0 if was_good else min(pause * 2 or FIRST_PAUSE, LAST_PAUSE)
            await self._clock.sleep(pause * random.uniform(0.8, 1.2))

    def assume(self, operation: Operation, answer: Body | None) -> None:
        """Take a write's answer for what is there, ahead of the watch."""
        if answer is not None:
            self._put(_kept(live(answer)))
        elif operation.verb in GOING:
            self._drop(operation.id, operation.expect.uid)

    async def _follow(self) -> None:
        """One list, if one is due, and one watch."""
        target = self.target
        if not self._revision:
            found = await listed(self._client, target)
            self.lives, self._revision, self.kind = {one.id: one for one in found.lives}, found.revision, found.kind
            self.served = self._has_listed = True
            self._well()
        async with aclosing(self._client.watch(self.kind, target.namespace, since=self._revision, labels=target.labels)) as events:
            async for verb, body in events:
                self._heard_of = True
                self._hear(verb, body)

    def _hear(self, verb: str, body: dict[str, Any]) -> None:
        if verb != "BOOKMARK":
            one = typed(self.kind, body)
            if verb == "DELETED":
                self._drop(one.id, one.uid)
            else:
                self._put(_kept(one))
        self._revision = body["metadata"]["resourceVersion"]

    def _well(self, *, told: bool = True) -> None:
        self._error, self._alone_since = None, None
        self.synced.set()
        if told:
            self._on_change()

    async def _absent(self) -> None:
        """There is no such kind: there is none of it, until there is."""
        was_served = self.served or bool(self.lives)
        self.lives, self.served, self._revision = {}, False, ""
        self._well(told=was_served)
        await self._clock.sleep(ABSENT_FOR * random.uniform(0.8, 1.2))

    async def _failed(self, error: ClusterError) -> None:
        """What was seen last stands for a while; whatever comes next begins with a list, which says how things are."""
        if not self._revision and not await is_hole(self._client, self.target.kind, error):
            await self._absent()
            return
        self._error, self._revision = error, ""
        self._alone_since = self._alone_since if self._alone_since is not None else self._clock.monotonic()
        self.synced.set()
        self._on_change()

    def _put(self, one: Live) -> None:
        old = self.lives.get(one.id)
        if one.uid in self._gone or (old is not None and old.uid == one.uid and not is_newer(one, old)):
            return
        self.lives[one.id] = one
        self._on_change()

    def _drop(self, id: ResourceId, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        old = self.lives.get(id)
        if old is not None and old.uid == uid:
            del self.lives[id]
            self._on_change()


def is_newer(one: Live, other: Live) -> bool:
    """Whether it is a later version of the same object. Revisions that cannot be compared are taken as they come."""
    if one.revision.isdecimal() and other.revision.isdecimal():
        return int(one.revision) > int(other.revision)
    return one.revision != other.revision


def _kept(one: Live) -> Live:
    """As bytes, which weigh a tenth of what they were parsed into."""
    return replace(one, source=orjson.dumps(one.body))
