"""Replicas of `engine run --shards N` on a stage, each with a network and a clock of its own that can fail; their writes are judged."""

import io
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from engine.errors import Unreachable
from engine.ids import Kind
from engine.runtime.lease import LEASE, Lease
from engine.runtime.logs import logger
from engine.runtime.loop import run
from engine.runtime.passes import Engine
from engine.runtime.shard_leases import lease_name
from engine.shards import shard_of
from enginectl.wiring.scope import scope_of
from grove_sandbox.api.request import Request, Selection
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.divided_watch import DivisibleCluster
from resources.base import kinds
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from tests.builders import clique, podcliqueset
from tests.stories.process import ASIDE, WRITES, Call, Killed, Process
from tests.stories.stage import INTERVAL, Stage

NAME = "engine"
"""The Lease of the first shard."""


class OwnClock:
    """The clock of a process that can be suspended: then no sleep of it ends, while the time goes on."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.runs = anyio.Event()
        self.runs.set()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self.runs.wait()


class Replica(Process):
    """One replica. Its writes are judged when the server executes them."""

    def __init__(self, cluster: Stage, number: int, shards: int) -> None:
        super().__init__(InProcessClient(cluster.api))
        self._cluster = cluster
        self.shards = shards
        self.identity = f"replica-{number}"
        self.clock = OwnClock(cluster.clock)
        self.stop = anyio.CancelScope()
        self.ended = anyio.Event()
        self.log = io.StringIO()
        self.is_cut_off = False
        self.cannot_renew = False
        """Whether its requests for Leases alone are not answered."""
        self.slowness = 0.0
        """Seconds between sending a write and its execution."""
        self.fouls: list[str] = []
        """Writes in a namespace whose shard somebody else held."""

    @property
    def is_alive(self) -> bool:
        return not (self.dead or self.stop.cancel_called or self.ended.is_set())

    async def _attempt(self, call: Call, namespace: str, rest: tuple[Any, ...], options: dict[str, Any]) -> Any:
        verb, kind, name = call
        is_write = verb in WRITES and kind.name not in ASIDE
        if not self.clock.runs.is_set():
            await self.clock.runs.wait()
            raise Unreachable("the connection was closed meanwhile")
        if is_write and self.slowness:
            await self._cluster.clock.sleep(self.slowness)
        if self.is_cut_off or (self.cannot_renew and kind == LEASE):
            raise Unreachable("no route to host")
        if self.dead:
            raise Killed
        if is_write and (holder := holder_in(self._cluster, namespace, self.shards)) != self.identity:
            self.fouls.append(f"{verb} {kind.name} {namespace}/{name} while {holder or 'nobody'} holds its shard")
        return await super()._attempt(call, namespace, rest, options)

    async def run(self) -> None:
        """`engine run --shards N`, until it is stopped or killed."""
        cluster = self._cluster
        engine = Engine(
            DivisibleCluster(self, self.clock),
            self.clock,
            scope_of(cluster.setup),
            BLUEPRINTS,
            cluster.setup,
            events_of=event_builder(cluster.setup),
        )
        lease = Lease(self, self.clock, "default", NAME, self.identity, purpose="run in all namespaces")
        log = logger(self.log, format="text")
        try:
            await run(engine, lease, log, interval=INTERVAL, stop=self.stop, shards=self.shards)
        except (Killed, BaseExceptionGroup):
            if not self.dead:
                raise
        finally:
            self.ended.set()

    def kill(self) -> None:
        """`kill -9`: nothing of it runs on, and no lease is given back."""
        self.dead = True
        self.stop.cancel()

    def suspend(self) -> None:
        """`kill -STOP`."""
        if self.clock.runs.is_set():
            self.clock.runs = anyio.Event()

    def resume(self) -> None:
        """`kill -CONT`."""
        self.clock.runs.set()

    def heal(self) -> None:
        """End all troubles but death."""
        self.is_cut_off, self.cannot_renew, self.slowness = False, False, 0.0
        self.resume()


class Fleet:
    """Several replicas on one stage."""

    def __init__(self, cluster: Stage, tasks: TaskGroup) -> None:
        self.cluster, self._tasks = cluster, tasks
        self.replicas: list[Replica] = []

    @property
    def alive(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.is_alive]

    def start(self, shards: int) -> Replica:
        """Start one more."""
        replica = Replica(self.cluster, len(self.replicas), shards)
        self.replicas.append(replica)
        self._tasks.start_soon(replica.run)
        return replica

    def shares(self, shards: int) -> Mapping[str, int]:
        """Replica -> how many shards its leases name it for; of all holders, also dead ones."""
        return Counter(filter(None, holders(self.cluster, shards)))

    @property
    def fouls(self) -> list[str]:
        return [foul for replica in self.replicas for foul in replica.fouls]

    @property
    def created(self) -> Mapping[str, int]:
        return sum((replica.created for replica in self.replicas), Counter[str]())

    @property
    def logs(self) -> str:
        return "\n".join(f"--- {replica.identity}\n{replica.log.getvalue()}" for replica in self.replicas)


@asynccontextmanager
async def fleet(cluster: Stage) -> AsyncIterator[Fleet]:
    """A fleet, whose replicas end with the block. No pass of any may have failed in a way that nobody has foreseen."""
    async with anyio.create_task_group() as tasks:
        replicas = Fleet(cluster, tasks)
        yield replicas
        for replica in replicas.replicas:
            replica.heal()
            replica.stop.cancel()
        await cluster.until(lambda: all(replica.ended.is_set() for replica in replicas.replicas))
    for replica in replicas.replicas:
        assert replica.dead or "Traceback" not in replica.log.getvalue(), replicas.logs


def holders(cluster: Stage, shards: int) -> list[str]:
    """The holder that the Lease of each shard names; empty for nobody."""
    leases = cluster.there(LEASE)
    names = [lease_name(NAME, shard) for shard in range(shards)]
    return [str(leases.get(name, {}).get("spec", {}).get("holderIdentity", "")) for name in names]


def holder_in(cluster: Stage, namespace: str, shards: int) -> str:
    """The holder of the shard of a namespace."""
    return holders(cluster, shards)[shard_of(namespace, shards)]


def everywhere(cluster: Stage, kind: Kind) -> list[dict[str, Any]]:
    """The objects of a kind in all namespaces."""
    request: Request = replace(cluster._request(kind), namespace="")
    return [dict(item.body) for item in cluster.api.list(request, Selection()).items]


async def populate(cluster: Stage, namespaces: int, *, pods: int = 1) -> list[str]:
    """Namespaces with one small set each, which has the name of its namespace. Returns the names."""
    names = [f"team-{number}" for number in range(namespaces)]
    for name in names:
        await cluster.kubectl.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await cluster.apply(podcliqueset(name, clique("worker", pods), namespace=name))
    return names


def pods_ready(cluster: Stage) -> Mapping[str, int]:
    """Namespace -> how many pods are ready."""
    ready = (
        pod["metadata"]["namespace"]
        for pod in everywhere(cluster, kinds.POD)
        for condition in pod.get("status", {}).get("conditions", ())
        if (condition["type"], condition["status"]) == ("Ready", "True")
    )
    return Counter(ready)


async def scale_in(cluster: Stage, namespace: str, replicas: int) -> None:
    """`kubectl scale` of the set of that namespace."""
    await cluster.kubectl.patch(kinds.PODCLIQUESET, namespace, namespace, {"spec": {"replicas": replicas}}, subresource="scale")


def replicas_in(cluster: Stage, namespace: str) -> int:
    """How many replicas the set of that namespace should have."""
    (body,) = (body for body in everywhere(cluster, kinds.PODCLIQUESET) if body["metadata"]["namespace"] == namespace)
    return int(body["spec"]["replicas"])
