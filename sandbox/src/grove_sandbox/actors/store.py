"""InformerStore: the objects of one kind as an actor knows them, kept up to date by an informer."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from grove_sandbox.actors.body import Body, Key, by_age, conditions_of, key_of, revision_of, uid_of
from grove_sandbox.product import Client, Clock, Informer, Kind, NotFound, PatchType, conditions, kinds

Listener = Callable[[Key, Body | None, Body | None], None]
"""Called after each change with the key, the old object and the new one (None: there is none)."""


class InformerStore:
    """The objects of one kind by key. Their bodies are shared: read them, never change them."""

    def __init__(self, kind: Kind, *listeners: Listener, namespace: str = "", labels: str = "") -> None:
        self.kind, self.namespace, self.labels = kind, namespace, labels
        self.objects: dict[Key, Body] = {}
        self.synced = anyio.Event()
        """Set after the first list, or when it is known that the kind is not served."""
        self._listeners = list(listeners)

    def get(self, namespace: str, name: str) -> Body | None:
        """The object of that key."""
        return self.objects.get((namespace, name))

    def subscribe(self, listener: Listener) -> None:
        """Call this listener, too, after each change."""
        self._listeners.append(listener)

    async def list(self, client: Client) -> str:
        """Replace the contents by a list, oldest object first, and return its revision."""
        listing = await client.list(self.kind, self.namespace, labels=self.labels)
        self._replace(listing.items)
        return listing.revision

    def clear(self) -> None:
        """Remove everything."""
        self._replace(())

    def apply(self, event: str, body: Body) -> None:
        """Apply an event of the watch, or what one will report."""
        if event == "DELETED":
            self._remove(key_of(body))
        else:
            self._put(body)

    def assume(self, body: Body) -> None:
        """Apply the answer to a write before the watch reports it; an object that is gone by now does not come back."""
        known = self.objects.get(key_of(body))
        if known is not None and uid_of(known) == uid_of(body):
            self._put(body)

    async def patch(
        self, client: Client, body: Body, patch: Mapping[str, Any], *, how: PatchType = "merge", subresource: str = "", by_uid: bool = False
    ) -> Body:
        """Patch an object if it still has this revision, or (`by_uid`) whatever its revision, and store the answer."""
        bound = {"uid": uid_of(body)} if by_uid else {"resourceVersion": body["metadata"]["resourceVersion"]}
        bound_patch = {**patch, "metadata": {**bound, **patch.get("metadata", {})}}
        answer = await client.patch(self.kind, *key_of(body), bound_patch, how=how, subresource=subresource)
        self.assume(answer)
        return answer

    def _replace(self, bodies: Iterable[Body]) -> None:
        listed = {key_of(body): body for body in sorted(bodies, key=by_age)}
        for key in [key for key in self.objects if key not in listed]:
            self._remove(key)
        for body in listed.values():
            self._put(body)
        self.synced.set()

    def _put(self, body: Body) -> None:
        key = key_of(body)
        old = self.objects.get(key)
        if old is not None and revision_of(body) <= revision_of(old):
            return
        self.objects[key] = body
        self._notify(key, old, body)

    def _remove(self, key: Key) -> None:
        old = self.objects.pop(key, None)
        if old is not None:
            self._notify(key, old, None)

    def _notify(self, key: Key, old: Body | None, new: Body | None) -> None:
        for listener in self._listeners:
            listener(key, old, new)


async def run_informers(client: Client, clock: Clock, *stores: InformerStore) -> None:
    """Keep the stores up to date until cancelled. A kind that is not served is listed once its definition is established."""
    first, *others = [_informer(client, clock, store) for store in stores]
    if not others:
        return await first.run()
    async with anyio.create_task_group() as tasks:
        for informer in (first, *others):
            tasks.start_soon(informer.run)


def _informer(client: Client, clock: Clock, store: InformerStore) -> Informer[InformerStore]:
    until_served = partial(_until_established, client, clock, store.kind) if store.kind != kinds.CRD else None
    return Informer(store, client, clock, until_served=until_served)


async def _until_established(client: Client, clock: Clock, kind: Kind) -> None:
    served = anyio.Event()

    def on_definition(key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and key[1] == f"{kind.plural}.{kind.group}" and is_established(new):
            served.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_informers, client, clock, InformerStore(kinds.CRD, on_definition))
        await served.wait()
        tasks.cancel_scope.cancel()


def is_established(definition: Body) -> bool:
    """Whether the server serves the kind that this CustomResourceDefinition defines."""
    return conditions.is_true(conditions_of(definition), "Established")


async def delete(client: Client, kind: Kind, body: Body, *, propagation: str = "") -> None:
    """Delete the object of this uid, if it is still there."""
    with suppress(NotFound):
        await client.delete(kind, *key_of(body), uid=uid_of(body), propagation=propagation)
