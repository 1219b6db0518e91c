"""Reflection: the objects of one kind as an actor has last seen them, kept current by a list and a watch."""

from collections.abc import Callable, Iterable
from contextlib import aclosing

import anyio

from engine import conditions
from engine.errors import ClusterError, Expired, NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.body import Body, Key, by_age, conditions_of, key_of, revision_of, uid_of
from resources.base.kinds import CRD

Listener = Callable[[Key, Body | None, Body | None], None]
"""Told of each change: the key, what was there, what is there now."""

FIRST_PAUSE, LAST_PAUSE = 0.1, 30.0
"""Seconds between two attempts to list or watch, once the first repetition brought nothing either."""


class Reflection:
    """The objects of one kind by key. Bodies are shared: they are read, never written to."""

    def __init__(self, kind: Kind, *listeners: Listener, namespace: str = "", labels: str = "") -> None:
        self.kind = kind
        self.namespace, self.labels = namespace, labels
        """Which of them: those of a namespace, those that a label selector picks."""
        self.objects: dict[Key, Body] = {}
        self.synced = anyio.Event()
        """Set once the first listing is in, or once it is known that there is nothing to list."""
        self._listeners = list(listeners)

    def get(self, namespace: str, name: str) -> Body | None:
        """The object as last seen."""
        return self.objects.get((namespace, name))

    def tell(self, listener: Listener) -> None:
        """Tell somebody else too, from now on."""
        self._listeners.append(listener)

    def assume(self, body: Body) -> None:
        """Take a write's answer for what is there, ahead of the watch; one that the watch has overtaken is ignored."""
        seen = self.objects.get(key_of(body))
        if seen is not None and uid_of(seen) == uid_of(body):
            self._put(body)

    def saw(self, verb: str, body: Body) -> None:
        """Take in an event of the watch."""
        if verb == "DELETED":
            self._drop(key_of(body))
        else:
            self._put(body)

    def listed(self, bodies: Iterable[Body]) -> None:
        """Take in a whole listing, oldest object first, so that actors meet the world in the order it was made."""
        fresh = {key_of(body): body for body in sorted(bodies, key=by_age)}
        for key in [key for key in self.objects if key not in fresh]:
            self._drop(key)
        for body in fresh.values():
            self._put(body)
        self.synced.set()

    def _put(self, body: Body) -> None:
        key = key_of(body)
        old = self.objects.get(key)
        if old is not None and revision_of(body) <= revision_of(old):
            return
        self.objects[key] = body
        self._tell(key, old, body)

    def _drop(self, key: Key) -> None:
        old = self.objects.pop(key, None)
        if old is not None:
            self._tell(key, old, None)

    def _tell(self, key: Key, old: Body | None, new: Body | None) -> None:
        for listener in self._listeners:
            listener(key, old, new)


async def reflect(client: Client, clock: Clock, *reflections: Reflection) -> None:
    """Keep the reflections current, for ever. A kind that the server does not serve is empty until its definition is established."""
    async with anyio.create_task_group() as tasks:
        for reflection in reflections:
            tasks.start_soon(_follow, client, clock, reflection)


async def _follow(client: Client, clock: Clock, seen: Reflection) -> None:
    revision, pause = "", 0.0
    while True:
        try:
            if not revision:
                listing = await client.list(seen.kind, seen.namespace, labels=seen.labels)
                seen.listed(listing.items)
                revision = listing.revision
            async with aclosing(client.watch(seen.kind, seen.namespace, since=revision, labels=seen.labels)) as events:
                async for verb, body in events:
                    revision, pause = body["metadata"]["resourceVersion"], 0.0
                    if verb != "BOOKMARK":
                        seen.saw(verb, body)
        except NotFound:
            revision = ""
            seen.listed(())
            await _established(client, clock, seen.kind)
        except Expired:
            revision = ""
        except ClusterError:
            pass  # Whatever it was, the last revision still says where to go on from; how often is what `pause` is for.
        # Servers end watches as they please, and the next one follows at once; unless the one before brought nothing either.
        await clock.sleep(pause)
        pause = min(pause * 2 or FIRST_PAUSE, LAST_PAUSE)


async def _established(client: Client, clock: Clock, kind: Kind) -> None:
    """Return once a CustomResourceDefinition serves the kind; without asking again and again."""
    if kind == CRD:
        return
    served = anyio.Event()

    def look(key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and key[1] == f"{kind.plural}.{kind.group}" and is_established(new):
            served.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_follow, client, clock, Reflection(CRD, look))
        await served.wait()
        tasks.cancel_scope.cancel()


def is_established(definition: Body) -> bool:
    """Whether the server serves what this CustomResourceDefinition defines."""
    return conditions.is_true(conditions_of(definition), "Established")
