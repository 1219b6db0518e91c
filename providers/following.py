"""Following: the objects of one list, kept current by a watch, and by what the server has answered to our own writes."""

import random
from collections import OrderedDict
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import orjson

from engine.errors import ClusterError, Expired, NotFound, ServerFault
from engine.ids import ResourceId
from engine.observed import Live, live
from engine.operation import Operation
from engine.resource import Body
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.verb import Verb
from providers.listing import is_hole, listed, typed
from providers.scoping import Target, is_labelled

FIRST_PAUSE, LAST_PAUSE = 0.5, 30.0
"""Seconds between two attempts that bring nothing: doubled each time, a little more or less."""

STALE_AFTER = 30.0
"""Seconds without an answer after which what was seen last is no longer taken for what is there."""

ABSENT_FOR = 60.0
"""Seconds after which we ask again whether the server has a kind by now."""

GOING = frozenset({Verb.DELETE, Verb.RELEASE})

FOR_GOOD = ""
"""The revision of what has gone by an answer to us: that uid never comes back."""

REMEMBERED = 10_000
"""How many of those that have gone are remembered, so that a late answer does not bring them back."""


class Gone(NamedTuple):
    """That an incarnation has gone, and at which revision."""

    id: ResourceId
    uid: str
    revision: str


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
        self._gone: OrderedDict[str, str] = OrderedDict()
        """Uid -> the revision at which it went."""
        self._meanwhile: list[Live | Gone] | None = None
        """What we learn while a list is under way."""
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
        """Follow, for ever, whatever happens: a kind that nobody follows would be taken for one in which nothing happens."""
        pause = 0.0
        while True:
            began, self._heard_of, ended_well = self._clock.monotonic(), False, False
            try:
                ended_well = await self._attempt()
            except Exception as error:
                self._failed(ServerFault(f"{self.target.kind.plural} cannot be followed: {type(error).__name__}: {error}"))
            # Servers end watches as they please, and the next one follows at once; unless the one before brought nothing either.
            was_good = (ended_well and self._heard_of) or self._clock.monotonic() - began > LAST_PAUSE
            pause = 0.0 if was_good else min(pause * 2 or FIRST_PAUSE, LAST_PAUSE)
            await self._clock.sleep(pause * random.uniform(0.8, 1.2))

    def assume(self, operation: Operation, answer: Body | None) -> None:
        """Take a write's answer for what is there, ahead of the watch."""
        if answer is not None:
            self._learn(_kept(live(answer)))
        elif operation.verb in GOING:
            self._learn(Gone(operation.id, operation.expect.uid, FOR_GOOD))

    def correct(self, known: Live | None, found: Live | None) -> None:
        """Take for what is there what was found where something else, or nothing, was known."""
        if found is not None and is_labelled(found, self.target.labels):
            self._learn(_kept(found))
        elif known is not None:
            same = found is not None and found.uid == known.uid
            self._learn(Gone(known.id, known.uid, found.revision if found is not None and same else FOR_GOOD))

    def _learn(self, news: "Live | Gone") -> None:
        """What the server has told us by another way than the watch; a list under way may be older than that."""
        if self._meanwhile is not None:
            self._meanwhile.append(news)
        if isinstance(news, Gone):
            self._drop(*news)
        else:
            self._put(news)

    async def _attempt(self) -> bool:
        """Follow until something ends it. Whether that was nobody's fault."""
        try:
            await self._follow()
        except Expired:
            self._revision = ""
        except NotFound:
            await self._absent()
        except ClusterError as error:
            if self._revision or await is_hole(self._client, self.target.kind, error):
                self._failed(error)
            else:
                await self._absent()
        else:
            return True
        return False

    async def _follow(self) -> None:
        """One list, if one is due, and one watch."""
        target = self.target
        if not self._revision:
            await self._list()
        async with aclosing(self._client.watch(self.kind, target.namespace, since=self._revision, labels=target.labels)) as events:
            async for verb, body in events:
                self._hear(verb, body)

    async def _list(self) -> None:
        """Begin anew. What our writes were answered meanwhile may be ahead of the list: it still counts."""
        meanwhile = self._meanwhile = list[Live | Gone]()
        try:
            found = await listed(self._client, self.target)
        finally:
            self._meanwhile = None
        self.lives, self._revision, self.kind = {one.id: one for one in found.lives}, found.revision, found.kind
        for one in found.lives:
            self._gone.pop(one.uid, None)
        for news in meanwhile:
            self._learn(news)
        self.served = self._has_listed = True
        self._well()

    def _hear(self, verb: str, body: dict[str, Any]) -> None:
        if verb != "BOOKMARK":
            self._heard_of = True
            one = typed(self.kind, body)
            if verb == "DELETED":
                self._drop(one.id, one.uid, one.revision)
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

    def _failed(self, error: ClusterError) -> None:
        """What was seen last stands for a while; whatever comes next begins with a list, which says how things are."""
        self._error, self._revision = error, ""
        self._alone_since = self._alone_since if self._alone_since is not None else self._clock.monotonic()
        self.synced.set()
        self._on_change()

    def _put(self, one: Live) -> None:
        old, gone_at = self.lives.get(one.id), self._gone.get(one.uid)
        if gone_at is not None and not _is_later(one.revision, gone_at):
            return
        # One of another uid is no exception: a watch that is behind still tells of what we have replaced.
        if old is not None and not is_newer(one, old):
            return
        self._gone.pop(one.uid, None)
        self.lives[one.id] = one
        self._on_change()

    def _drop(self, id: ResourceId, uid: str, revision: str) -> None:
        """It has gone. What loses our labels has gone as well, and comes back with them, at a later revision."""
        self._gone.setdefault(uid, revision)
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)
        old = self.lives.get(id)
        if old is not None and old.uid == uid:
            del self.lives[id]
            self._on_change()


def is_newer(one: Live, other: Live) -> bool:
    """Whether it is a later version. Revisions that cannot be compared are taken as they come."""
    if one.revision.isdecimal() and other.revision.isdecimal():
        return _is_later(one.revision, other.revision)
    return one.revision != other.revision


def _is_later(revision: str, than: str) -> bool:
    return revision.isdecimal() and than.isdecimal() and int(revision) > int(than)


def _kept(one: Live) -> Live:
    """As bytes, which weigh a tenth of what they were parsed into."""
    return replace(one, source=orjson.dumps(one.body))
