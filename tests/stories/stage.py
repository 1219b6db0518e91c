"""A stage for stories: a cluster in memory with all its actors, a clock that is turned by hand, and users with a kubectl."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import anyio

from engine.guard import Limits
from engine.ids import Kind
from engine.runtime.lease import Lease
from engine.runtime.passes import Engine
from engine.runtime.provider import Scope
from engine.runtime.session import Report, sync
from providers.cluster import Cluster
from providers.registry import SCHEDULERS
from providers.sandbox.actors import ACTORS, run_actors
from providers.sandbox.actors.settings import Settings
from providers.sandbox.clock import VirtualClock
from providers.sandbox.inprocess import InProcessClient
from providers.sandbox.verbs import Api
from resources import kinds
from resources.narrate import narrate
from resources.registry import BLUEPRINTS
from resources.schema.crds import crds
from resources.setup import Setup
from tests.stories.process import Process

definitions = cache(crds)

CHILDREN = tuple(dict.fromkeys(kind for blueprint in BLUEPRINTS for kind in blueprint.children))
SCOPE = Scope(tuple(blueprint.kind for blueprint in BLUEPRINTS), CHILDREN, BLUEPRINTS[0].selector)
SETUP = Setup(dict(SCHEDULERS), next(iter(SCHEDULERS)))


class Stage:
    """The cluster, and what may be done in it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = Api(self.clock, seed=1)
        self.kubectl = InProcessClient(self.api, "kubectl")
        self.process = Process(InProcessClient(self.api))
        """The last process of ours that was started."""
        self._started = 0

    async def apply(self, manifest: dict[str, Any]) -> None:
        """`kubectl apply`: make it, or make it so."""
        await self.kubectl.patch(
            kinds.PODCLIQUESET, manifest["metadata"]["namespace"], manifest["metadata"]["name"], manifest, how="apply", force=True
        )

    async def scale(self, kind: Kind, name: str, replicas: int) -> None:
        """`kubectl scale`."""
        await self.kubectl.patch(kind, "default", name, {"spec": {"replicas": replicas}}, subresource="scale")

    async def delete(self, kind: Kind, name: str) -> None:
        """`kubectl delete`, without waiting."""
        await self.kubectl.delete(kind, "default", name, propagation="Background")

    def start(self) -> Process:
        """A process of ours: a new one, that knows nothing of those before it."""
        self.process = Process(InProcessClient(self.api))
        self._started += 1
        return self.process

    async def sync(self, process: Process | None = None, **options: Any) -> Report:
        """`engine sync` in a process of its own, to its end."""
        return await self.until_ended(lambda: self.syncing(process, **options))

    async def syncing(self, process: Process | None = None, *, limits: Limits | None = None, **options: Any) -> Report:
        """The same, for when somebody else turns the clock."""
        ours = process or self.start()
        engine = Engine(Cluster(ours, self.clock), self.clock, SCOPE, BLUEPRINTS, SETUP, limits or Limits(), narrate=narrate)
        lease = Lease(ours, self.clock, "default", "engine", f"process-{self._started}")
        return await sync(engine, lease, **options)

    async def until_ended(self, session: Callable[[], Awaitable[Report]]) -> Report:
        """Let time pass until the session has ended. Raises what it raises."""
        ended: list[Report | Exception] = []

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

    async def names(self, *of: Kind) -> set[str]:
        """Kind and name of everything of ours (or of these kinds) that is there."""
        return {f"{kind.name} {body['metadata']['name']}" for kind in of or (*SCOPE.roots, *CHILDREN) for body in await self.objects(kind)}

    async def objects(self, kind: Kind) -> list[dict[str, Any]]:
        """The objects of a kind; of those that others have too, ours alone."""
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
async def stage(*, nodes: int = 20, without: Iterable[str] = ()) -> AsyncIterator[Stage]:
    """A cluster with its nodes up and our kinds defined; without some of its actors if a story needs that."""
    scene = Stage()
    for definition in definitions():
        await scene.kubectl.create(kinds.CRD, "", definition)
    actors = [name for name in ACTORS if name not in set(without)]
    async with anyio.create_task_group() as group:
        group.start_soon(run_actors, InProcessClient(scene.api, "actors"), scene.clock, actors, Settings(nodes=nodes))
        await scene.clock.advance(1)
        yield scene
        group.cancel_scope.cancel()
