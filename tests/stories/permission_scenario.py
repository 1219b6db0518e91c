"""A scenario that uses every permission of the engine: workloads of every kind come up, are tampered with, are scaled and go."""

import io
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from engine.blueprint import Blueprint
from engine.errors import EngineError, NotFound
from engine.ids import Kind
from engine.intent import Intent
from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.logs import Log, logger
from engine.runtime.loop import run
from engine.runtime.passes import Engine
from engine.runtime.session import sync
from enginectl.wiring.scope import Selection, scope_of
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.kubernetes.client import KubernetesClient
from providers.registry import SCHEDULERS
from providers.watching import WatchingCluster
from resources.base import kinds, labels
from resources.install.modes import Use
from resources.ports.configuration import Configuration, DynamoSettings
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.controlplane.accounts import LEASE
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import limit_pods
from tests.maps import binding
from tests.mnnvl.sets import auto, gpu
from tests.stories.graphs import graph, service
from tests.stories.interfering import Interfering
from tests.takeover.epochs import leftover_map
from tests.waiting import PATIENCE

CONFIGURATION = Configuration(
    SCHEDULERS,
    "default-scheduler",
    topology=True,
    fabrics=(Nvidia(auto=True),),
    dynamo=DynamoSettings(create_ssh_secret=True, ingress_class="nginx"),
)
"""Everything is enabled."""
INTERVAL = 1.0
"""Seconds between two passes of the loop, after which it also tries again what was refused."""
POLL = 0.4
"""Seconds between two looks at the cluster: many scenarios share two processors with their API server."""
NO_PODS = "no-pods"
"""The name of a quota."""
TAMPERED = "tampered"
"""The value that somebody gives to a label of ours."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Workloads of one kind of root."""

    name: str
    roots: tuple[Kind, ...]
    workloads: Callable[[str, str], Iterable[tuple[Kind, Body]]]
    """Namespace, prefix of names -> the workloads."""
    children: tuple[Kind, ...]
    """The kinds of objects that they consist of."""
    edited: Callable[[Body], Body]
    """Workload -> the merge patch by which a user edits it afterwards."""
    effects: Mapping[tuple[Kind, str], Callable[[Body], bool]]
    """Kind of a child and a part of its name -> what holds of it once the edit has been dealt with."""


def sets(namespace: str, name: str) -> Iterable[tuple[Kind, Body]]:
    """A set with a start order, autoscalers and shared claims, which may be taken over from another release of Grove."""
    cliques = (clique("router", autoScalingConfig={"maxReplicas": 3}), clique("worker", startsAfter=["router"]), clique("leader"))
    plain = podcliqueset(
        f"{name}-web",
        *cliques,
        groups=(group("pool", "leader"),),
        namespace=namespace,
        cliqueStartupType="CliqueStartupTypeExplicit",
        resourceClaimTemplates=[claim_template("device")],
        resourceSharing=[share("device")],
    )
    plain["metadata"]["annotations"] = {labels.TAKE_OVER: "true"}
    yield kinds.PODCLIQUESET, plain


def gangs(namespace: str, name: str) -> Iterable[tuple[Kind, Body]]:
    """A set with a domain, and one for each scheduler with objects for gangs."""
    yield kinds.PODCLIQUESET, auto(1, gpu(), name=f"{name}-fab", namespace=namespace)
    for scheduler in ("kai-scheduler", "volcano"):
        pod_spec = {"containers": [{"name": "main", "image": "example/worker:1"}], "schedulerName": scheduler}
        of_set = podcliqueset(f"{name}-{scheduler[:3]}", clique("worker", pod_spec=pod_spec), namespace=namespace)
        of_set["metadata"]["labels"] = {"kai.scheduler/queue": "dynamo"} if scheduler == "kai-scheduler" else {}
        yield kinds.PODCLIQUESET, of_set


def graphs(namespace: str, name: str) -> Iterable[tuple[Kind, Body]]:
    """A graph that Grove runs, and one that components run; with claims, Ingresses, SSH keys and a scaling adapter."""
    volume = {"create": True, "name": f"{name}-models", "storageClass": "any", "size": "1Gi", "volumeAccessMode": "ReadWriteMany"}
    frontend = service(componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    for suffix, annotations in (("grove", {}), ("parts", {"nvidia.com/enable-grove": "false"})):
        engine = service(1, nodes=2, script="python3 -m dynamo.trtllm --model m", annotations={})
        body = graph(f"{name}-{suffix}", annotations, Frontend=frontend, decode=engine)
        body["metadata"]["namespace"] = namespace
        if suffix == "parts":
            body["spec"]["pvcs"] = [volume]
        else:
            body["spec"]["services"]["Scaled"] = service(script="python3 -m dynamo.trtllm --model m", scalingAdapter={"enabled": True})
        body["spec"]["backendFramework"] = "trtllm"
        yield kinds.DYNAMO_GRAPH, body


def bindings(namespace: str, name: str) -> Iterable[tuple[Kind, Body]]:
    """A binding for which the engine manages the topology of KAI."""
    yield kinds.TOPOLOGY_BINDING, binding(name, "topology.kubernetes.io/zone", "example.com/rack")


def more_replicas(body: Body) -> Body:
    """The set with one replica more."""
    return {"spec": {"replicas": body["spec"]["replicas"] + 1}}


def more_of_each_service(body: Body) -> Body:
    """The graph with one replica more of each service."""
    return {"spec": {"services": {name: {"replicas": each["replicas"] + 1} for name, each in body["spec"]["services"].items()}}}


def fewer_levels(body: Body) -> Body:
    """The binding without its last level, for which a topology must be replaced."""
    return {"spec": {"levels": body["spec"]["levels"][:-1]}}


CHILDREN_OF_SETS = (
    kinds.SERVICE_ACCOUNT,
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.AUTOSCALER,
    kinds.SCALING_GROUP,
    kinds.PODCLIQUE,
    kinds.PODGANG,
    kinds.RESOURCE_CLAIM,
    kinds.POD,
)
CHILDREN_OF_GANGS = (kinds.PODGANG, kinds.KAI_POD_GROUP, kinds.VOLCANO_POD_GROUP, COMPUTE_DOMAIN)
CHILDREN_OF_GRAPHS = (
    kinds.PODCLIQUESET,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.PVC,
    kinds.INGRESS,
    kinds.DEPLOYMENT,
    kinds.VOLCANO_POD_GROUP,
    kinds.LEADER_WORKER_SET,
    kinds.SCALING_ADAPTER,
)
PARTS = (
    Part("sets", (kinds.PODCLIQUESET,), sets, CHILDREN_OF_SETS, more_replicas, {(kinds.POD, "web-1-router"): bool}),
    Part("gangs", (kinds.PODCLIQUESET,), gangs, CHILDREN_OF_GANGS, more_replicas, {(kinds.KAI_POD_GROUP, "kai-1"): bool}),
    Part(
        "graphs",
        (kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH),
        graphs,
        CHILDREN_OF_GRAPHS,
        more_of_each_service,
        {
            (kinds.PODCLIQUE, "grove-0-frontend"): lambda body: body["spec"]["replicas"] == 2,
            (kinds.SCALING_GROUP, "grove-0-decode"): lambda body: body["spec"]["replicas"] == 2,
        },
    ),
    Part(
        "bindings",
        (kinds.TOPOLOGY_BINDING,),
        bindings,
        (kinds.KAI_TOPOLOGY,),
        fewer_levels,
        {(kinds.KAI_TOPOLOGY, "bindings"): lambda body: len(body["spec"]["levels"]) == 1},
    ),
)
NEVER_RESTORED = (kinds.PVC, kinds.KAI_TOPOLOGY, kinds.PODCLIQUESET)
"""Kinds that have no labels which the engine restores."""


def blueprints_of(part: Part) -> tuple[Blueprint[Configuration], ...]:
    """The blueprints of a part's workloads."""
    return tuple(blueprint for blueprint in BLUEPRINTS if blueprint.kind in part.roots)


class Stopped(Exception):
    """The scenario is over early: what the test waits for has happened."""


@dataclass(slots=True)
class Scenario:
    """One part in one namespace, with a process of ours."""

    plane: ControlPlane
    admin: KubernetesClient
    user: str
    """The kubeconfig of our process."""
    namespace: str
    part: Part
    use: Use = Use.RUN
    is_over: Callable[[], bool] = lambda: False
    """Asked all the while; the scenario ends as soon as it is true."""
    stays: bool = False
    """Whether the process goes on at the end until the scenario is over."""
    log: io.StringIO = field(default_factory=io.StringIO)
    """What our process logs and reports."""
    engine: Engine[Configuration] | None = None
    meddled: Interfering | None = None
    """The client of our process."""
    lease: Lease | None = None

    async def play(self) -> None:
        """The workloads come up, objects are tampered with, a user edits the workloads, and they go. Raises `TimeoutError`, `Stopped`."""
        try:
            await self._play()
        except* Stopped as stopped:
            raise stopped.exceptions[0] from None
        except* TimeoutError as late:
            raise late.exceptions[0] from None

    async def leave(self) -> None:
        """Remove what is in no namespace, as a user would without the engine."""
        for kind in (*self.part.roots, *self.part.children):
            for body in await self._objects(kind) if not kind.namespaced else ():
                with suppress(NotFound):
                    await self.admin.delete(kind, "", body["metadata"]["name"])

    async def _play(self) -> None:
        async with self._process():
            workloads = list(self.part.workloads(self.namespace, self.part.name))
            if self.use is Use.RUN:
                for kind, body in workloads:
                    await self.admin.create(kind, self._place(kind), body)
            proposed = [body for _, body in workloads] if self.use is Use.SYNC else []
            await self._until(self._all_exist, proposed, "objects of every kind exist")
            await self._until(self._all_have_statuses, (), "statuses are written")
            tampered = [kind for kind in self.part.children if kind not in NEVER_RESTORED]
            for kind in tampered:
                await self._tamper(kind)
            await self._until(lambda: self._none_is_tampered(tampered), (), "labels are restored")
            if self.part.name == "sets":
                await self._leave_a_map()
                await self._until(self._has_no_map, (), "what another release of Grove has left is removed")
            await self._edit(workloads)
            for kind, body in workloads:
                await self.admin.delete(kind, self._place(kind), body["metadata"]["name"], propagation="Background")
            if kinds.PVC in self.part.children:
                await self._unprotect_claims()
            await self._until(self._all_gone, (), "everything is gone")
            if self.stays:
                await self._until(self._never, (), "the scenario is over")

    async def _leave_a_map(self) -> None:
        """Another release of Grove has planned the PodGangs of the set."""
        (root,) = (body for body in await self._objects(kinds.PODCLIQUESET) if body["metadata"]["name"].startswith(self.part.name))
        await self.admin.create(kinds.PODGANG_MAP, self.namespace, leftover_map(root))

    async def _has_no_map(self) -> bool:
        return not await self._objects(kinds.PODGANG_MAP)

    async def _unprotect_claims(self) -> None:
        """Remove the finalizer of claims, as the controller does that does not run here."""
        for body in await self._objects(kinds.PVC):
            await self.admin.patch(kinds.PVC, self.namespace, body["metadata"]["name"], {"metadata": {"finalizers": None}})

    async def _edit(self, workloads: Sequence[tuple[Kind, Body]]) -> None:
        """Edit the workloads, as their user or by files, and wait until the engine has dealt with it."""
        if self.use is Use.SYNC:
            proposed = [merged(body, self.part.edited(body)) for _, body in workloads]
            await self._until(self._is_dealt_with, proposed, "the edit is dealt with")
            return
        is_short_of_room = kinds.POD in self.part.children
        if is_short_of_room:
            await limit_pods(self.admin, self.namespace, NO_PODS, 0)
        for kind, body in workloads:
            await self.admin.patch(kind, self._place(kind), body["metadata"]["name"], self.part.edited(body))
        if is_short_of_room:
            await self._until(self._are_quotas_read, (), "quotas are read")
            await self.admin.delete(kinds.RESOURCE_QUOTA, self.namespace, NO_PODS)
        await self._until(self._is_dealt_with, (), "the edit is dealt with")

    async def _are_quotas_read(self) -> bool:
        return self.meddled is not None and kinds.RESOURCE_QUOTA.key in self.meddled.listed

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[None]:
        """`engine run`, or what is needed for `engine sync`."""
        from tests.stories.test_control_plane import connection

        clock, stop, log = SystemClock(), anyio.CancelScope(), logger(self.log, format="text")
        async with connection(self.plane, self.user) as client, anyio.create_task_group() as tasks:
            self.meddled = Interfering(client, self.admin)
            self.engine = self._engine(self.meddled, clock, log)
            self.lease = Lease(client, clock, self.namespace, LEASE, identify())
            if self.use is Use.RUN:
                engine, lease = self.engine, self.lease

                async def lead() -> None:
                    await run(engine, lease, log, interval=INTERVAL, stop=stop)

                tasks.start_soon(lead)
            try:
                yield
            finally:
                stop.cancel()

    def _engine(self, client: Any, clock: SystemClock, log: Log) -> Engine[Configuration]:
        selection = Selection((self.namespace,), self.part.roots)
        return Engine(
            WatchingCluster(client, clock, log),
            clock,
            scope_of(CONFIGURATION, selection),
            blueprints_of(self.part),
            CONFIGURATION,
            events_of=event_builder(CONFIGURATION),
            log=log,
        )

    async def _until(self, true: Callable[[], Any], proposed: Sequence[Body], what: str) -> None:
        """Wait for that; `engine sync` is called again and again meanwhile."""
        with anyio.move_on_after(PATIENCE) as scope:
            while True:
                if self.is_over():
                    raise Stopped
                if self.use is Use.SYNC:
                    await self._sync(proposed)
                if await true():
                    return
                await anyio.sleep(POLL)
        if scope.cancelled_caught:
            raise TimeoutError(f"{self.part.name} in {self.namespace}: not yet: {what}\n{self.log.getvalue()[-3000:]}")

    async def _sync(self, proposed: Sequence[Body]) -> None:
        assert self.engine is not None
        try:
            report = await sync(self.engine, self.lease, Intent(tuple(proposed)), wait=False, patience=10)
        except EngineError as error:
            self.log.write(f"{error}\n")
            return
        lines = [*(str(result.error) for result in report.results if result.error), *report.incomplete.values(), str(report.error or "")]
        self.log.write("\n".join(filter(None, lines)) + "\n")

    async def _objects(self, kind: Kind) -> list[Body]:
        return (await self.admin.list(kind, self._place(kind))).items

    def _place(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    async def _all_exist(self) -> bool:
        for kind in self.part.children:
            if not await self._ours(kind):
                return False
        return True

    async def _all_have_statuses(self) -> bool:
        """Whether each of our kinds has an object with a status."""
        ours = [kind for kind in (*self.part.roots, *self.part.children) if kind in kinds.DEFINED]
        for kind in ours:
            if not any(body.get("status") for body in await self._objects(kind)):
                return False
        return True

    async def _never(self) -> bool:
        return False

    async def _ours(self, kind: Kind) -> list[Body]:
        """The objects of a kind that our process has created."""
        managed = [body for body in await self._objects(kind) if any(map(is_ours, body["metadata"].get("managedFields", ())))]
        return [body for body in managed if body["metadata"]["name"].startswith(self.part.name) or kind not in self.part.roots]

    async def _tamper(self, kind: Kind) -> None:
        """Somebody changes the value of a label of ours."""
        body = (await self._ours(kind))[0]
        others = (label for label in sorted(body["metadata"]["labels"]) if label not in (labels.MANAGED_BY, labels.PART_OF))
        label = next(others, labels.MANAGED_BY)
        await self.admin.patch(kind, self._place(kind), body["metadata"]["name"], {"metadata": {"labels": {label: TAMPERED}}})

    async def _none_is_tampered(self, of: Iterable[Kind]) -> bool:
        bodies = [body for kind in of for body in await self._objects(kind)]
        return not any(TAMPERED in (body["metadata"].get("labels") or {}).values() for body in bodies)

    async def _is_dealt_with(self) -> bool:
        """Whether the edit has had its effects."""
        for (kind, end), holds in self.part.effects.items():
            named = [body for body in await self._objects(kind) if end in body["metadata"]["name"]]
            if not any(map(holds, named)):
                return False
        return True

    async def _all_gone(self) -> bool:
        try:
            left = Counter({kind.name: len(await self._ours(kind)) for kind in (*self.part.roots, *self.part.children)})
        except NotFound:
            return True
        return not +left


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of `managedFields` is of our process or of somebody who was faster with the same object."""
    return entry.get("manager") == "engine"


def merged(body: Body, patch: Body) -> Body:
    """The body with a merge patch."""
    return {
        key: merged(body.get(key, {}), patch[key]) if isinstance(patch.get(key), dict) else patch.get(key, body.get(key))
        for key in {**body, **patch}
    }
