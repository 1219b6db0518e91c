"""Namespaces: those that are being deleted are emptied, pods first, and then let go."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import anyio

from engine import conditions
from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, conditions_of, is_deleting, key_of, uid_of
from providers.sandbox.actors.moments import written
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import NAMESPACE, POD

FINALIZER: Final = "kubernetes"
PAUSE: Final = 0.5
"""Seconds between two looks at what is left of a namespace."""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Empty and finalize every namespace that is being deleted."""
    agenda: Agenda[str] = Agenda(clock)

    def saw(key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and is_deleting(new):
            agenda.add(key[1])

    namespaces = Reflection(NAMESPACE, saw)

    async def look(name: str) -> float | None:
        body = namespaces.get("", name)
        if body is None or not is_deleting(body) or FINALIZER not in (body["spec"].get("finalizers") or ()):
            return None
        left = await _empty(client, name)
        if left:
            await _tell(client, clock, namespaces, body, left)
            return PAUSE
        kept = [one for one in body["spec"]["finalizers"] if one != FINALIZER]
        await client.replace(NAMESPACE, "", name, {**body, "spec": {**body["spec"], "finalizers": kept}}, subresource="finalize")
        return None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reflect, client, clock, namespaces)
        tasks.start_soon(agenda.work, look)


async def _empty(client: Client, namespace: str) -> list[tuple[Kind, Body]]:
    """Ask for the deletion of everything in the namespace; what is still there. Nothing else goes while pods may need it."""
    pods = await _clear(client, POD, namespace)
    if pods:
        return pods
    others = [kind for kind in await client.kinds() if kind.namespaced and kind != POD]
    return [left for kind in others for left in await _clear(client, kind, namespace)]


async def _clear(client: Client, kind: Kind, namespace: str) -> list[tuple[Kind, Body]]:
    try:
        found = (await client.list(kind, namespace)).items
    except NotFound:
        return []  # The kind went away meanwhile, and all of it with it.
    for body in found:
        if not is_deleting(body):
            await _delete(client, kind, body)
    return [(kind, body) for body in found]


async def _delete(client: Client, kind: Kind, body: Body) -> None:
    try:
        await client.delete(kind, *key_of(body), uid=uid_of(body), propagation="Background")
    except NotFound:
        return


async def _tell(client: Client, clock: Clock, namespaces: Reflection, body: Body, left: Iterable[tuple[Kind, Body]]) -> None:
    """Write into the namespace's status what keeps it."""
    kinds = Counter(f"{kind.plural}.{kind.group}" if kind.group else f"{kind.plural}." for kind, _ in left)
    keepers = Counter(finalizer for _, one in left for finalizer in one["metadata"].get("finalizers") or ())
    content = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(kinds.items()))
    finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(keepers.items()))
    live = conditions_of(body)
    wanted = [
        _condition(live, clock, "NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {content}"),
        _condition(
            live,
            clock,
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain" if keepers else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {finalizers}"
            if keepers
            else "All content-preserving finalizers finished",
            holds=bool(keepers),
        ),
    ]
    if any(conditions.find(live, one["type"]) != one for one in wanted):
        patch = {"metadata": {"uid": uid_of(body)}, "status": {"conditions": wanted}}
        namespaces.assume(await client.patch(NAMESPACE, "", body["metadata"]["name"], patch, how="strategic", subresource="status"))


def _condition(
    live: Iterable[Mapping[str, Any]], clock: Clock, type: str, reason: str, message: str, *, holds: bool = True
) -> dict[str, Any]:
    old = conditions.find(live, type) or {}
    since = old.get("lastTransitionTime") if old.get("status") == str(holds) else None
    said = {"type": type, "status": str(holds), "reason": reason, "message": message}
    return said | {"lastTransitionTime": since or written(clock.now())}
