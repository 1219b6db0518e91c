"""Garbage: what is left when owners go, collected as kube-controller-manager does."""

from collections.abc import Sequence
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, is_deleting, key_of, uid_of
from providers.sandbox.actors.kinship import (
    FOREGROUND,
    ORPHAN,
    Kinship,
    Reference,
    Thing,
    blocks,
    finalizers,
    leaves_orphans,
    references,
    waits_for_children,
    without,
)
from providers.sandbox.actors.reflector import Listener, Reflection, is_established, reflect
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import CRD

SOLID, WAITING, ABSENT = "solid", "waiting", "absent"
"""An owner that stays; one that waits for its children to go; one that is not there."""

NEVER_OWNED: Final = frozenset({"Event"})
DISCOVERY_PAUSE: Final = 1.0
"""Seconds until the server is asked again for kinds whose definitions are established and which it does not list yet."""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Delete what has no owner left; carry out deletions in the foreground and deletions that leave orphans."""
    await Garbage(client, clock).run()


class Garbage:
    """What the collector knows: every object's owners, and which kinds are watched. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._agenda: Agenda[str] = Agenda(clock)
        self._discovery: Agenda[str] = Agenda(clock)
        self._kin = Kinship()
        self._definitions = Reflection(CRD, lambda key, old, new: self._discovery.add("kinds"))
        self._watched: dict[Kind, tuple[Reflection, anyio.CancelScope]] = {}

    async def run(self) -> None:
        """Collect, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reflect, self._client, self._clock, self._definitions)
            self._discovery.add("kinds")

            async def discover(_: str) -> float | None:
                return await self._discover(tasks)

            tasks.start_soon(self._discovery.work, discover)
            await self._agenda.work(self._look)

    async def _discover(self, tasks: TaskGroup) -> float | None:
        """Watch exactly the kinds that are served."""
        served = {kind for kind in await self._client.kinds() if kind.name not in NEVER_OWNED}
        for kind in sorted(served - self._watched.keys(), key=lambda kind: (kind.group, kind.plural)):
            seen = Reflection(kind, self._listener(kind))
            self._watched[kind] = seen, anyio.CancelScope()
            tasks.start_soon(self._watch, seen, self._watched[kind][1])
        for kind in self._watched.keys() - served:
            self._watched.pop(kind)[1].cancel()
        listed = {(kind.group, kind.plural) for kind in served}
        defined = {
            (body["spec"]["group"], body["spec"]["names"]["plural"]) for body in self._definitions.objects.values() if is_established(body)
        }
        return None if defined <= listed else DISCOVERY_PAUSE

    async def _watch(self, seen: Reflection, scope: anyio.CancelScope) -> None:
        with scope:
            await reflect(self._client, self._clock, seen)

    def _listener(self, kind: Kind) -> Listener:
        def saw(key: Key, old: Body | None, new: Body | None) -> None:
            self._saw(kind, old, new)

        return saw

    def _saw(self, kind: Kind, old: Body | None, new: Body | None) -> None:
        """Note the change, and look at whom it concerns: the thing, what it owns, and owners that wait for it."""
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._look_at(self._kin.children(uid_of(old)))
            self._kin.drop(uid_of(old))
        if new is not None:
            self._kin.put(Thing(kind, new))
            if waits_for_children(new):
                self._look_at(self._kin.children(uid_of(new)))
            if _fate(new) != _fate(old) and (references(new) or finalizers(new)):
                self._agenda.add(uid_of(new))
        for reference in references(old):
            owner = self._kin.get(reference["uid"])
            if owner is not None and waits_for_children(owner.body):
                self._agenda.add(reference["uid"])

    def _look_at(self, things: Sequence[Thing]) -> None:
        for thing in things:
            self._agenda.add(uid_of(thing.body))

    async def _look(self, uid: str) -> float | None:
        # Who owns nothing can only be said once everything has been listed.
        for seen in [seen for seen, _ in self._watched.values() if not seen.synced.is_set()]:
            await seen.synced.wait()
        thing = self._kin.get(uid)
        if thing is None:
            return None
        if leaves_orphans(thing.body):
            await self._leave_orphans(thing)
        elif waits_for_children(thing.body):
            await self._wait_for_children(thing)
        elif not is_deleting(thing.body) and references(thing.body):
            await self._judge(thing)
        return None

    async def _leave_orphans(self, owner: Thing) -> None:
        uid = uid_of(owner.body)
        for child in self._kin.children(uid):
            await self._set_owners(child, without(child.body, {uid}))
        await self._release(owner, ORPHAN)

    async def _wait_for_children(self, owner: Thing) -> None:
        children = self._kin.children(uid_of(owner.body))
        if any(blocks(child.body, uid_of(owner.body)) for child in children):
            self._look_at([child for child in children if not is_deleting(child.body)])
        else:
            await self._release(owner, FOREGROUND)

    async def _judge(self, thing: Thing) -> None:
        """Keep what has an owner left; delete what has none."""
        states = {one["uid"]: await self._state(thing, one) for one in references(thing.body)}
        if SOLID in states.values():
            leaving = {uid for uid, state in states.items() if state != SOLID}
            if leaving:
                await self._set_owners(thing, without(thing.body, leaving))
        elif WAITING in states.values() and (children := self._kin.children(uid_of(thing.body))):
            if any(waits_for_children(child.body) for child in children) and any(
                one.get("blockOwnerDeletion") for one in references(thing.body)
            ):
                # A circle of owners would wait for itself for ever. The change brings us back here.
                await self._set_owners(thing, [{**one, "blockOwnerDeletion": False} for one in references(thing.body)])
            else:
                await self._delete(thing, "Foreground")
        else:
            kept = finalizers(thing.body)
            await self._delete(thing, "Orphan" if ORPHAN in kept else "Foreground" if FOREGROUND in kept else "Background")

    async def _state(self, thing: Thing, reference: Reference) -> str:
        """What has become of one owner. The watches of two kinds are not in step, so one that they have not told of is asked for."""
        namespace = key_of(thing.body)[0]
        owner = self._kin.get(reference["uid"])
        if owner is not None and key_of(owner.body)[0] in ("", namespace):
            return WAITING if waits_for_children(owner.body) else SOLID
        if self._kin.is_gone(reference["uid"]):
            return ABSENT
        kind = self._kind_of(reference)
        if kind is None or (kind.namespaced and not namespace):
            return SOLID  # Nobody can tell: better kept than lost.
        try:
            live = await self._client.get(kind, namespace if kind.namespaced else "", reference["name"])
        except NotFound:
            return ABSENT
        return SOLID if uid_of(live) == reference["uid"] else ABSENT

    def _kind_of(self, reference: Reference) -> Kind | None:
        group = reference["apiVersion"].rpartition("/")[0]
        return next((kind for kind in self._watched if (kind.group, kind.name) == (group, reference["kind"])), None)

    async def _set_owners(self, thing: Thing, owners: Sequence[Reference]) -> None:
        await self._patch(thing, {"ownerReferences": list(owners) or None})

    async def _release(self, thing: Thing, finalizer: str) -> None:
        await self._patch(thing, {"finalizers": [one for one in finalizers(thing.body) if one != finalizer] or None})

    async def _patch(self, thing: Thing, metadata: dict[str, Any]) -> None:
        bound = {"uid": uid_of(thing.body), "resourceVersion": thing.body["metadata"]["resourceVersion"]}
        try:
            answer = await self._client.patch(thing.kind, *key_of(thing.body), {"metadata": {**bound, **metadata}})
        except NotFound:
            return
        self._assume(thing.kind, answer)

    async def _delete(self, thing: Thing, propagation: str) -> None:
        metadata = thing.body["metadata"]
        try:
            await self._client.delete(
                thing.kind, *key_of(thing.body), uid=metadata["uid"], revision=metadata["resourceVersion"], propagation=propagation
            )
        except NotFound:
            return

    def _assume(self, kind: Kind, body: Body) -> None:
        if kind in self._watched:
            self._watched[kind][0].assume(body)


def _fate(body: Body | None) -> tuple[object, ...]:
    """What of an object decides whether it stays; everything else that changes is no business of the collector."""
    return (uid_of(body), references(body), finalizers(body), is_deleting(body)) if body else ()
