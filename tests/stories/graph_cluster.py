"""Graphs on a real control plane: a namespace of its own for a story, `engine sync` as the operator, and what the cluster then has."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from engine.conditions import find
from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.passes import Engine
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending, SyncReport
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import KubernetesClient
from providers.registry import SCHEDULERS
from providers.watching import WatchingCluster
from resources.base import kinds
from resources.install.modes import Use
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from resources.schema.crds import crds
from tests.controlplane.accounts import LEASE, user_of
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.controlplane.schedulers.program import create, is_served, wait_until
from tests.stories.forecasts import assert_as_forecast, forecast_on
from tests.stories.stage import DEFAULT
from tests.stories.test_control_plane import Audit, connection
from tests.waiting import PATIENCE, Objects, until_objects

KAI = "kai-scheduler"
KAI_SETUP = Configuration({DEFAULT: SCHEDULERS[DEFAULT], KAI: SCHEDULERS[KAI]}, KAI)

STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
GROVE_OBJECTS = (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.KAI_POD_GROUP)
"""The kinds of objects that exist on the Grove path only."""
COMPONENT_OBJECTS = (
    kinds.LEADER_WORKER_SET,
    kinds.VOLCANO_POD_GROUP,
    kinds.DEPLOYMENT,
    STATEFUL_SET,
    REPLICA_SET,
    CONTROLLER_REVISION,
)
"""The kinds of objects that exist on the component path only."""
ALL_OBJECTS = (*GROVE_OBJECTS, *COMPONENT_OBJECTS, kinds.DYNAMO_GRAPH, kinds.SERVICE, kinds.POD, kinds.SECRET)


def install_crds(plane: ControlPlane, *of: Kind) -> None:
    """Install our CRDs, or those of these kinds, and wait until they are served."""
    names = {f"{kind.plural}.{kind.group}" for kind in of or kinds.DEFINED}
    for definition in crds():
        if definition["metadata"]["name"] in names:
            create(plane, kinds.CRD, definition)
    for name in names:
        wait_until(partial(is_served, plane, name), f"CRD {name} is not served", plane.folder / "kube-apiserver.log")


@dataclass(slots=True)
class GraphCluster:
    """A namespace of a control plane, its administrator, and the operator's processes."""

    plane: ControlPlane
    client: KubernetesClient
    """The administrator's."""
    namespace: str
    configuration: Configuration
    audit: Audit = field(init=False)

    def __post_init__(self) -> None:
        self.audit = Audit(self.plane)

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """`kubectl apply` of a graph or a set to the namespace."""
        kind = next(kind for kind in kinds.DEFINED if kind.name == manifest["kind"])
        body = {**manifest, "metadata": {**manifest["metadata"], **({"namespace": self.namespace} if kind.namespaced else {})}}
        place = self.namespace if kind.namespaced else ""
        await self.client.patch(kind, place, body["metadata"]["name"], body, how="apply", force=True)

    async def delete(self, kind: Kind, name: str) -> None:
        """`kubectl delete`, without waiting."""
        await self.client.delete(kind, self.namespace, name, propagation="Background")

    async def sync(self, **options: Any) -> SyncReport[Configuration]:
        """`engine sync` in a process of its own. If it settles everything, it has done what `engine diff` forecast just before."""
        clock = SystemClock()
        async with connection(self.plane, user_of(self.plane, self.configuration, Use.SYNC)) as client:
            forecast = await forecast_on(client, self.configuration, self.namespace) if options.get("wait", True) else None
            scope = replace(scope_of(self.configuration), namespaces=(self.namespace,))
            provider = WatchingCluster(client, clock)
            engine = Engine(provider, clock, scope, BLUEPRINTS, self.configuration, events_of=event_builder(self.configuration))
            lease = Lease(client, clock, SYSTEM, LEASE, identify())
            report = await sync(engine, lease, patience=PATIENCE, **options)
        assert_as_forecast(forecast, report)
        return report

    async def settle(self) -> Counter[str]:
        """`engine sync` until everything is ready, without a call that is refused. Returns how often it wrote what."""
        self.audit = Audit(self.plane)
        report = await self.sync()
        assert report.ending is Ending.DONE, remarks(report)
        seen = self.audit.read()
        assert seen.refused == []
        return seen.writes

    async def objects(self, kind: Kind) -> Objects:
        """The objects of a kind in the namespace by name."""
        return {body["metadata"]["name"]: body for body in (await self.client.list(kind, self.namespace)).items}

    async def until(self, kind: Kind, true: Callable[[Objects], bool]) -> Objects:
        """Wait until that holds of the objects of a kind in the namespace, and return them."""
        return await until_objects(self.client, kind, self.namespace, true)

    async def status(self, name: str) -> dict[str, Any]:
        """The status of a graph."""
        body = await self.client.get(kinds.DYNAMO_GRAPH, self.namespace, name)
        return dict(body.get("status") or {})

    async def state(self, name: str) -> tuple[str, str]:
        """The state of a graph and the message of its condition."""
        status = await self.status(name)
        condition = find(status.get("conditions", ()), "Ready") or {}
        return str(status.get("state")), str(condition.get("message"))

    async def running(self) -> int:
        """The number of pods, all of which are running."""
        pods = await self.objects(kinds.POD)
        assert {name for name, pod in pods.items() if pod["status"].get("phase") != "Running"} == set()
        return len(pods)

    async def left(self, *of: Kind) -> list[str]:
        """Kind and name of each object in the namespace, of all kinds or of these."""
        return [f"{kind.name} {name}" for kind in of or ALL_OBJECTS for name in await self.objects(kind)]

    async def emptied(self, *of: Kind) -> None:
        """Wait until no object of these kinds (none given: of all) is left in the namespace."""
        for kind in of or ALL_OBJECTS:
            await self.until(kind, lambda objects: not objects)


def remarks(report: SyncReport[Configuration]) -> list[str]:
    """Everything that a sync could not do or waited for, and what it reported, each with its reason."""
    waits = (f"{wait.id}: {wait.why}" for plan in report.plans for wait in (*plan.pending, *plan.deferred))
    alarms = (alarm.text for plan in report.plans for alarm in plan.alarms)
    return [*report.problems, *alarms, *waits, *map(str, report.failures), *map(str, report.objections), *map(str, report.internal_errors)]
