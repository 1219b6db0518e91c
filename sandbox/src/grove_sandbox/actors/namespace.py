"""Namespace: the namespace controller; it empties namespaces that are being deleted, pods first, and finalizes them."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import anyio

from grove_sandbox.actors.body import Body, Key, condition, conditions_of, finalizers_of, is_deleting
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import Client, Clock, Kind, NotFound, conditions, kinds

FINALIZER: Final = "kubernetes"
RETRY_AFTER: Final = 0.5
"""Seconds after which a namespace that is not empty is processed again."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Empty and finalize every namespace that is being deleted."""
    queue: WorkQueue[str] = WorkQueue(clock)

    def on_namespace(key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and is_deleting(new):
            queue.add(key[1])

    namespaces = InformerStore(kinds.NAMESPACE, on_namespace)

    async def process(name: str) -> float | None:
        namespace = namespaces.get("", name)
        if namespace is None or not is_deleting(namespace) or FINALIZER not in (namespace["spec"].get("finalizers") or ()):
            return None
        remaining = await _empty(client, name)
        if remaining:
            await _write_conditions(client, clock, namespaces, namespace, remaining)
            return RETRY_AFTER
        finalizers = [finalizer for finalizer in namespace["spec"]["finalizers"] if finalizer != FINALIZER]
        finalized = {**namespace, "spec": {**namespace["spec"], "finalizers": finalizers}}
        await client.replace(kinds.NAMESPACE, "", name, finalized, subresource="finalize")
        return None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_informers, client, clock, namespaces)
        tasks.start_soon(queue.run, process)


async def _empty(client: Client, namespace: str) -> list[tuple[Kind, Body]]:
    """Delete everything in the namespace, other objects only after the pods. Returns what is still there."""
    if pods := await _delete_all(client, kinds.POD, namespace):
        return pods
    others = [kind for kind in await client.kinds() if kind.namespaced and kind != kinds.POD]
    return [remaining for kind in others for remaining in await _delete_all(client, kind, namespace)]


async def _delete_all(client: Client, kind: Kind, namespace: str) -> list[tuple[Kind, Body]]:
    try:
        bodies = (await client.list(kind, namespace)).items
    except NotFound:
        return []  # The kind is no longer served, so there are no objects of it.
    for body in bodies:
        if not is_deleting(body):
            await delete(client, kind, body, propagation="Background")
    return [(kind, body) for body in bodies]


async def _write_conditions(
    client: Client, clock: Clock, namespaces: InformerStore, namespace: Body, remaining: Iterable[tuple[Kind, Body]]
) -> None:
    """Write what remains into the namespace's status, in the namespace controller's words."""
    objects = list(remaining)
    by_kind = Counter(f"{kind.plural}.{kind.group}" for kind, _ in objects)
    by_finalizer = Counter(finalizer for _, body in objects for finalizer in finalizers_of(body))
    content = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(by_kind.items()))
    finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(by_finalizer.items()))
    if finalizers:
        reason, message = "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {finalizers}"
    else:
        reason, message = "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    now, some_remain = clock.now(), f"Some resources are remaining: {content}"
    desired = [
        condition(namespace, "NamespaceContentRemaining", True, "SomeResourcesRemain", some_remain, now),
        condition(namespace, "NamespaceFinalizersRemaining", bool(finalizers), reason, message, now),
    ]
    live = conditions_of(namespace)
    if any(conditions.find(live, entry["type"]) != entry for entry in desired):
        status = {"status": {"conditions": desired}}
        await namespaces.patch(client, namespace, status, how="strategic", subresource="status", by_uid=True)
