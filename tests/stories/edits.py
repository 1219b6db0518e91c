"""Edits: what users, other programs and accidents do to settled workloads, one after the other, each followed by a sync."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from engine.errors import NotFound
from engine.ids import Kind
from engine.resource import Body
from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.controlplane.enforcement import Policy, limit_pods
from tests.waiting import Objects, eventually, until_objects

HOLD = "example.com/hold"


@dataclass(frozen=True)
class User:
    """Somebody with a kubectl, in one namespace."""

    client: KubernetesClient
    namespace: str
    operator: KubernetesClient
    """The same cluster for Grove's operator, whose fields are its own."""

    async def apply(self, *bodies: Body) -> None:
        """`kubectl apply --server-side`."""
        for body in bodies:
            await self.client.patch(kind_of(body), self.namespace, body["metadata"]["name"], self.located(body), how="apply", force=True)

    async def create(self, kind: Kind, body: Body) -> None:
        """`kubectl create`."""
        await self.client.create(kind, self.namespace if kind.namespaced else "", self.located(body) if kind.namespaced else dict(body))

    async def patch(self, kind: Kind, name: str, patch: Mapping[str, Any], subresource: str = "") -> None:
        """`kubectl patch`, `kubectl label` and `kubectl scale`."""
        await self.client.patch(kind, self.namespace if kind.namespaced else "", name, dict(patch), subresource=subresource)

    async def delete(self, kind: Kind, name: str, propagation: str = "Background") -> None:
        """`kubectl delete --wait=false`."""
        await self.client.delete(kind, self.namespace if kind.namespaced else "", name, propagation=propagation)

    async def names(self, kind: Kind) -> list[str]:
        """The names of all objects of a kind, sorted."""
        namespace = self.namespace if kind.namespaced else ""
        return sorted(body["metadata"]["name"] for body in (await self.client.list(kind, namespace)).items)

    async def first(self, kind: Kind, prefix: str = "") -> str:
        """The first name that begins so."""
        return next(name for name in await self.names(kind) if name.startswith(prefix))

    def located(self, body: Body) -> dict[str, Any]:
        """The manifest in this namespace, unless it names another one."""
        given = body["metadata"].get("namespace", "default")
        return {**body, "metadata": {**body["metadata"], "namespace": self.namespace if given == "default" else given}}


Act = Callable[[User], Awaitable[None]]


async def nothing(user: User) -> None:
    """No act."""


@dataclass(frozen=True)
class Edit:
    """An edit and what it leads to."""

    name: str
    do: Act = nothing
    manifests: Sequence[Body] = ()
    """What the command applies itself."""
    ending: Ending = Ending.DONE
    """How the sync ends."""
    undo: Act = nothing
    """What is done afterwards, before the next edit."""
    removes: Sequence[tuple[Kind, str]] = ()
    """What the command removes itself, once its manifests are applied, as `sync --prune` does."""
    applyset: str = ""
    """The ApplySet of the command, of which its manifests are all members; empty without `--prune`."""
    seen_by_reader: bool = False
    """Whether the preview is that of an account that may only read."""
    done_by_reader: bool = False
    """Whether the sync is that of an account that may only read."""
    unknown: bool = False
    """Whether the server refuses what nobody can know before: then less may be written than was forecast."""

    hopeless: bool = False
    """Whether the sync waits for what does not come although it is known to be missing: somebody may create it meanwhile."""

    @property
    def goes_wrong(self) -> bool:
        """Whether it does not end as its user wants."""
        return self.ending is not Ending.DONE


@dataclass(frozen=True)
class EditSeries:
    """Edits of the same workloads, one after the other."""

    namespace: str
    workloads: Sequence[Body]
    edits: Sequence[Edit]
    before: Act = nothing
    """What is done before the workloads are applied."""
    take_over: bool = False
    """Whether the commands have `--take-over`."""
    ahead: timedelta = timedelta(0)
    """How far the engine's clock is ahead of the server's: what it waits for by the server's times lasts so much less."""


def kind_of(body: Body) -> Kind:
    """The kind of a manifest of a workload."""
    return next(kind for kind in (kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH, kinds.TOPOLOGY_BINDING) if kind.name == body["kind"])


def patched(kind: Kind, name: str, patch: Mapping[str, Any], subresource: str = "") -> Act:
    """The object of this name is patched."""

    async def do(user: User) -> None:
        await user.patch(kind, name, patch, subresource)

    return do


def applied(*bodies: Body) -> Act:
    """The manifests are applied by somebody else."""

    async def do(user: User) -> None:
        await user.apply(*bodies)

    return do


def deleted(kind: Kind, *prefixes: str, propagation: str = "Background") -> Act:
    """The first object of each prefix is deleted."""

    async def do(user: User) -> None:
        for prefix in prefixes:
            await user.delete(kind, await user.first(kind, prefix), propagation)

    return do


def all_deleted(kind: Kind, prefix: str) -> Act:
    """All objects whose names begin so are deleted."""

    async def do(user: User) -> None:
        for name in await user.names(kind):
            if name.startswith(prefix):
                await user.delete(kind, name)

    return do


def gone(kind: Kind, prefix: str) -> Act:
    """A controller of Kubernetes answers: no object has a name that begins so any more."""

    async def do(user: User) -> None:
        await until_objects(user.client, kind, user.namespace, lambda objects: not any(name.startswith(prefix) for name in objects))

    return do


async def claims_are_released(user: User) -> None:
    """The controllers of Kubernetes have answered: deleted pods are gone, and no claim is reserved for them any more."""

    async def is_done() -> bool:
        pods = (await user.client.list(kinds.POD, user.namespace)).items
        claims = (await user.client.list(kinds.RESOURCE_CLAIM, user.namespace)).items
        reserved = {each["uid"] for claim in claims for each in (claim.get("status") or {}).get("reservedFor") or ()}
        return reserved <= {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    await eventually(is_done)


def collected(*of: Kind) -> Act:
    """The garbage collector has answered to a deletion with dependents first: what has an owner is gone, or kept by a finalizer."""

    async def do(user: User) -> None:
        for kind in of:
            await until_objects(user.client, kind, user.namespace, lambda objects: all(map(_is_collected, objects.values())))

    return do


def _is_collected(body: Body) -> bool:
    return "deletionTimestamp" in body["metadata"] or "ownerReferences" not in body["metadata"]


def orphaned(kind: Kind, name: str) -> Act:
    """The garbage collector has answered to a deletion that leaves the dependents: they have no owner any more."""

    async def do(user: User) -> None:
        def is_done(objects: Objects) -> bool:
            return name not in objects or "orphan" not in objects[name]["metadata"].get("finalizers", ())

        await until_objects(user.client, kind, user.namespace, is_done)

    return do


def scaled(kind: Kind, name: str, replicas: int) -> Act:
    """`kubectl scale`."""
    return patched(kind, name, {"spec": {"replicas": replicas}}, "scale")


def unlabelled(kind: Kind, prefix: str, *keys: str) -> Act:
    """Labels of the first object of that prefix are removed."""

    async def do(user: User) -> None:
        await user.patch(kind, await user.first(kind, prefix), {"metadata": {"labels": dict.fromkeys(keys)}})

    return do


def together(*acts: Act) -> Act:
    """One after the other."""

    async def do(user: User) -> None:
        for act in acts:
            await act(user)

    return do


def evicted(prefix: str) -> Act:
    """The first pod of that prefix is evicted, as a node that fails does it."""

    async def do(user: User) -> None:
        status = {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}
        await user.patch(kinds.POD, await user.first(kinds.POD, prefix), status, "status")

    return do


def cordoned(node: str, *, is_cordoned: bool = True) -> Act:
    """`kubectl cordon` and `kubectl uncordon`."""
    return patched(kinds.NODE, node, {"spec": {"unschedulable": is_cordoned or None}})


def held(kind: Kind, name: str) -> Act:
    """The object gets a finalizer of another program, and is deleted."""

    async def do(user: User) -> None:
        body = await user.client.get(kind, user.namespace, name)
        finalizers = [*(body["metadata"].get("finalizers") or ()), HOLD]
        await user.patch(kind, name, {"metadata": {"finalizers": finalizers}})
        await user.delete(kind, name)

    return do


def released(kind: Kind, name: str) -> Act:
    """The other program removes its finalizer."""

    async def do(user: User) -> None:
        try:
            await user.patch(kind, name, {"metadata": {"finalizers": None}})
        except NotFound:
            return

    return do


def enforced(policy: Policy) -> Act:
    """An administrator's policy takes effect."""
    return lambda user: policy.enforce(user.client)


def lifted(policy: Policy) -> Act:
    """The policy is removed."""
    return lambda user: policy.lift(user.client)


def limited(name: str, pods: int, used: int, cpu: int | None = None) -> Act:
    """A quota of pods takes effect, of which so many are used. With `cpu` it allows so many CPUs, and each pod must request some."""
    return lambda user: limit_pods(user.client, user.namespace, name, pods, used, cpu)


def created(kind: Kind, body: Body) -> Act:
    """Another program creates an object."""

    async def do(user: User) -> None:
        await user.create(kind, body)

    return do
