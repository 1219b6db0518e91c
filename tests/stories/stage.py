"""A stage for stories: a cluster in memory with all its actors, a clock that is turned by hand, and users with a kubectl."""

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from engine.guard import Limits
from engine.ids import Kind, ResourceId
from engine.intent import Record, Removal
from engine.resource import Body
from engine.runtime.lease import Lease
from engine.runtime.logs import logger
from engine.runtime.loop import Reload, run
from engine.runtime.passes import Engine, Pass, preview
from engine.runtime.provider import Observation, Scope
from engine.runtime.session import sync
from engine.runtime.sync_report import SyncReport
from enginectl.wiring.scope import EVERYTHING, scope_of
from grove_sandbox.actors.nodes import node_names
from grove_sandbox.actors.options import ActorOptions, DriverOptions
from grove_sandbox.actors.script import FAIL
from grove_sandbox.api.request import Request, Selection
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from grove_sandbox.installation.addons import addon_objects
from grove_sandbox.installation.installation import installation, simulated_classes
from grove_sandbox.registry import ACTORS, run_actors
from providers.cache_state import InformerObserver
from providers.divided_watch import DivisibleCluster
from providers.metrics.metrics import EngineMetrics
from providers.registry import SCHEDULERS, fabrics
from resources import settings
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from resources.schema.crds import crds
from tests.builders import applying
from tests.stories.healths import Healths
from tests.stories.process import Process

definitions = cache(crds)

DEFAULT = "default-scheduler"
SETUP = Configuration({DEFAULT: SCHEDULERS[DEFAULT]}, DEFAULT, fabrics=fabrics(settings.Settings()))
CHILDREN = tuple(dict.fromkeys(kind for blueprint in BLUEPRINTS for kind in blueprint.children(SETUP)))


SCOPE = scope_of(SETUP)

HIGH = (
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
)
"""A PriorityClass that pods may name."""

INTERVAL = 5.0
"""Seconds between two passes of `engine run` where nothing happens."""


class Eyes(DivisibleCluster):
    """What a process of ours sees, and that it looks."""

    def __init__(self, ours: Process, clock: VirtualClock, observer: InformerObserver | None = None) -> None:
        super().__init__(ours, clock, observer=observer)
        self._ours = ours

    async def observe(self, scope: Scope) -> Observation:
        """An observation, of which the process is notified."""
        seen = await super().observe(scope)
        self._ours.on_look()
        return seen


class Actors(Struct, frozen=True):
    """The actors of a cluster, by name, and their options."""

    names: tuple[str, ...]
    options: ActorOptions


class Stage:
    """The cluster, and what may be done in it."""

    def __init__(self, actors: Actors, state: Api | None = None) -> None:
        """`state`: the cluster begins as that one is now, at its time; by default it is empty."""
        self.actors = actors
        self.clock = VirtualClock(state.clock.now()) if state else VirtualClock()
        self.api = state.fork(self.clock) if state else Api(self.clock, seed=1, gangs=actors.options.gangs)
        self.kubectl = InProcessClient(self.api, "kubectl")
        self.setup = SETUP
        """How our processes are configured."""
        self.reads = EVERYTHING
        """What our processes read."""
        self.reads_namespaces = False
        """Whether they read namespaces, as commands do."""
        self.process = Process(InProcessClient(self.api))
        """The last process of ours that was started."""
        self.healths = Healths()
        """The statuses that the processes which a story starts have written."""
        self._started = 0
        self.busy = False
        """Whether an engine or an actor that a story has started is at work."""

    async def apply(self, manifest: dict[str, Any]) -> None:
        """`kubectl apply`: creates or changes the root."""
        kind = next(kind for kind in SCOPE.roots if kind.name == manifest["kind"])
        await self.kubectl.patch(kind, manifest["metadata"]["namespace"], manifest["metadata"]["name"], manifest, how="apply", force=True)

    async def scale(self, kind: Kind, name: str, replicas: int) -> None:
        """`kubectl scale`."""
        await self.kubectl.patch(kind, "default", name, {"spec": {"replicas": replicas}}, subresource="scale")

    async def delete(self, kind: Kind, name: str, propagation: str = "Background") -> None:
        """`kubectl delete`, without waiting."""
        await self.kubectl.delete(kind, "default", name, propagation=propagation)

    def removing(self, kind: Kind, *names: str, why: str = "asked for", after_manifests: bool = False) -> Mapping[ResourceId, Removal]:
        """What an intent says that removes these objects as they are now."""
        uids = {name: self.there(kind)[name]["metadata"]["uid"] for name in names}
        namespace = "default" if kind.namespaced else ""
        return {kind.id(namespace, name): Removal(uid, why, after_manifests) for name, uid in uids.items()}

    def fail(self, pod: str, how: str | None) -> None:
        """Let the kubelet play a failure on a pod from now on (see `Script`); None ends it."""
        request = replace(self._request(kinds.POD), name=pod)
        self.api.patch(request, {"metadata": {"annotations": {FAIL: how}}}, "merge")

    def start(self) -> Process:
        """A process of ours: a new one, that knows nothing of those before it."""
        self.process = Process(InProcessClient(self.api))
        self.process.on_status = self.healths.note
        self._started += 1
        return self.process

    async def sync(self, process: Process | None = None, **options: Any) -> SyncReport[Configuration]:
        """`engine sync` in a process of its own, to its end."""
        return await self.until_ended(lambda: self.syncing(process, **options))

    async def syncing(
        self, process: Process | None = None, *, limits: Limits | None = None, lease: Lease | None = None, **options: Any
    ) -> SyncReport[Configuration]:
        """The same, for when somebody else turns the clock."""
        ours = process or self.start()
        intent = applying(options.pop("manifests", ()), options.pop("removals", {}), options.pop("record", None))
        intent = replace(intent, replicas=options.pop("replicas", {}))
        return await sync(self._engine(ours, limits or Limits()), lease or self.lease_for(ours), intent, **options)

    def _engine(self, ours: Process, limits: Limits = Limits()) -> Engine[Configuration]:  # noqa: B008
        scope = scope_of(self.setup, self.reads)
        return Engine(
            Eyes(ours, self.clock),
            self.clock,
            scope,
            BLUEPRINTS,
            self.setup,
            limits,
            events_of=event_builder(self.setup),
            reads_namespaces=self.reads_namespaces,
        )

    def lease_for(self, ours: Process) -> Lease:
        """The lease, under the name of the process that was started last."""
        return Lease(ours, self.clock, "default", "engine", f"process-{self._started}")

    async def look(
        self,
        manifests: Sequence[Body] = (),
        removals: Mapping[ResourceId, Removal] = MappingProxyType({}),
        *,
        record: Record | None = None,
        ours: Process | None = None,
    ) -> Pass[Configuration]:
        """What `engine diff` (as if the manifests were applied and the roots removed) sees now, in this process or one of its own."""
        return await preview(self._engine(ours or Process(InProcessClient(self.api))), applying(manifests, removals, record))

    @asynccontextmanager
    async def running(
        self,
        process: Process | None = None,
        *,
        reload: Reload[Configuration] | None = None,
        metrics: EngineMetrics | None = None,
        log: io.StringIO | None = None,
    ) -> AsyncIterator[Process]:
        """`engine run` in the background, for as long as the block lasts. No pass of it may fail in a way that nobody has foreseen.

        `reload` follows its configuration; `metrics` counts what it does; `log` gets its log lines.
        """
        ours, stop, ended, log = process or self.start(), anyio.CancelScope(), anyio.Event(), log or io.StringIO()

        async def lead() -> None:
            engine, observer = self._engine(ours), None
            if metrics is not None:
                eyes = Eyes(ours, self.clock, observer=metrics.caches)
                metrics.caches.read, observer = eyes.caches, metrics.observer
                engine = replace(engine, provider=eyes, on_events=metrics.passes.published)
            options: dict[str, Any] = {"interval": INTERVAL, "stop": stop, "reload": reload, "observer": observer}
            await run(engine, self.lease_for(ours), logger(log, format="text"), **options)
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(lead)
            self.busy = True
            yield ours
            self.busy = False
            stop.cancel()
            await self.clock.run_until(ended.is_set)
        assert "Traceback" not in log.getvalue(), log.getvalue()

    @asynccontextmanager
    async def playing(self, *actors: str, driver: DriverOptions = DriverOptions()) -> AsyncIterator[None]:  # noqa: B008
        """More actors, for as long as the block lasts: `playing("driver")` on a stage without it, or some parts of it."""
        async with anyio.create_task_group() as group:
            group.start_soon(run_actors, InProcessClient(self.api, "actors"), self.clock, actors, ActorOptions(driver=driver))
            await self.clock.advance(0)
            self.busy = True
            yield
            self.busy = False
            group.cancel_scope.cancel()

    async def until(self, done: Callable[[], bool], *, within: float = 3600.0) -> None:
        """Let time pass until it is so. Raises `TimeoutError` when it does not come to be."""
        await self.clock.run_until(done, within=within)

    async def settle(self) -> None:
        """Let time pass until nothing has changed for a while."""
        before: object = None
        while before != (before := self._revisions()):
            await self.clock.advance(4 * INTERVAL)

    def _revisions(self) -> list[tuple[str, str]]:
        watched = (kind for kind in (*SCOPE.roots, *CHILDREN) if self.serves(kind))
        return [(name, body["metadata"]["resourceVersion"]) for kind in watched for name, body in self.there(kind).items()]

    async def until_ended(self, session: Callable[[], Awaitable[SyncReport[Configuration]]]) -> SyncReport[Configuration]:
        """Let time pass until the session has ended. Raises what it raises."""
        ended: list[SyncReport[Configuration] | Exception] = []

        async def attend() -> None:
            try:
                ended.append(await session())
            except Exception as error:
                ended.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(attend)
            await self.clock.run_until(lambda: bool(ended))
        if isinstance(end := ended[0], Exception):
            raise end
        return end

    def there(self, kind: Kind) -> Mapping[str, dict[str, Any]]:
        """The objects of a kind, by name, without giving anybody the time to change them."""
        items = self.api.list(self._request(kind), Selection()).items
        return {item.body["metadata"]["name"]: dict(item.body) for item in items}

    def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves the kind."""
        return any((served.kind.group, served.kind.plural) == (kind.group, kind.plural) for served in self.api.catalogue)

    def _request(self, kind: Kind) -> Request:
        served = self.api.catalogue.find(kind.group, kind.version, kind.plural)
        return Request(served, "default" if kind.namespaced else "", manager="kubectl")

    async def names(self, *of: Kind) -> set[str]:
        """Kind and name of everything of ours (or of these kinds) that is there."""
        return {f"{kind.name} {body['metadata']['name']}" for kind in of or (*SCOPE.roots, *CHILDREN) for body in await self.objects(kind)}

    async def objects(self, kind: Kind) -> list[dict[str, Any]]:
        """The objects of a kind; of those that others have too, ours alone."""
        if not self.serves(kind):
            return []
        ours = kind in CHILDREN and kind.group == ""
        return (await self.kubectl.list(kind, "default", labels=SCOPE.selector if ours else "")).items

    async def shape(self) -> dict[str, Any]:
        """What is there: names, labels, controllers and readiness, without what differs from run to run."""
        return {
            f"{kind.name} {body['metadata']['name']}": (
                body["metadata"].get("labels"),
                [(owner["kind"], owner["name"]) for owner in body["metadata"].get("ownerReferences", ())],
                [one["status"] for one in (body.get("status") or {}).get("conditions", ()) if one["type"] == "Ready"],
            )
            for kind in (*SCOPE.roots, *CHILDREN)
            for body in await self.objects(kind)
        }


@asynccontextmanager
async def stage(
    *,
    nodes: int = 20,
    without: Iterable[str] = (),
    capacity: Mapping[str, str] | None = None,
    driver: DriverOptions = DriverOptions(),  # noqa: B008
    addons: Iterable[str] = (),
    grove: bool = True,
    nodes_per_rack: int = ActorOptions().nodes_per_rack,
    gangs: bool = False,
) -> AsyncIterator[Stage]:
    """A cluster with its nodes up, our kinds defined (Grove's only with `grove`), the DRA driver and the add-ons installed; without some of
    its actors (without `driver`, that is down), on smaller nodes, or with kube-scheduler's `gangs`, if a story needs that."""
    options = ActorOptions(nodes=nodes, driver=driver, nodes_per_rack=nodes_per_rack, gangs=gangs)
    options = replace(options, capacity=capacity) if capacity else options
    actors = Actors(tuple(name for name in ACTORS if name not in set(without)), options)
    addons = tuple(addons)
    key = (actors.names, repr(options), addons, grove)
    if key not in _SET_UP:
        _SET_UP[key] = await _set_up(actors, addons, grove)
    async with _running(Stage(actors, _SET_UP[key])) as cluster:
        yield cluster


@asynccontextmanager
async def forked(cluster: Stage) -> AsyncIterator[Stage]:
    """A second cluster that begins as this one is now, or was at its end. Its actors start anew, as when a control plane restarts."""
    async with _running(kept(cluster)) as running:
        yield running


def kept(cluster: Stage) -> Stage:
    """A cluster that stays as this one is now: nobody is at work in it."""
    fork = Stage(cluster.actors, cluster.api)
    fork.setup, fork.reads, fork.reads_namespaces = cluster.setup, cluster.reads, cluster.reads_namespaces
    fork._started = cluster._started
    return fork


_SET_UP: dict[Hashable, Api] = {}
"""The clusters that stories have begun with: setting one up takes longer than many a story. Every story has a fork of its own."""


async def _set_up(actors: Actors, addons: tuple[str, ...], grove: bool) -> Api:
    """A cluster whose nodes are up."""
    empty = Stage(actors)
    for definition in definitions():
        if grove or not definition["spec"]["group"].endswith(kinds.GROVE_GROUP):
            await empty.kubectl.create(kinds.CRD, "", definition)
    for kind, body in (*installation(nodes=node_names(actors.options)), *simulated_classes(), *addon_objects(addons), HIGH):
        await empty.kubectl.create(kind, body["metadata"].get("namespace", ""), body)
    async with _running(empty) as cluster:
        await cluster.clock.advance(1)
        return cluster.api.fork(cluster.clock)


@asynccontextmanager
async def _running(cluster: Stage) -> AsyncIterator[Stage]:
    """Run the actors while the block runs."""
    async with anyio.create_task_group() as group:
        group.start_soon(run_actors, InProcessClient(cluster.api, "actors"), cluster.clock, cluster.actors.names, cluster.actors.options)
        await cluster.clock.advance(0)
        yield cluster
        group.cancel_scope.cancel()
    if cluster.serves(kinds.LEADER_WORKER_SET):
        for body in cluster.there(kinds.LEADER_WORKER_SET).values():
            cluster.healths.note({"status": {}, **body})
    cluster.healths.check()
