"""What a pass costs when one pod has changed, with more and more settled sets beside it, and a graph. `python -m benchmarks.one_change`.

The pass is that of `engine run` with a watch: observing, planning, choosing, recording. Nothing is to be written.
"""

import argparse
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import orjson

from benchmarks.plan import CONFIGURATION, podcliqueset, report, settled
from engine.errors import ClusterError
from engine.observed import Compressor, live
from engine.paths import merge_patch
from engine.runtime.clock import SystemClock
from engine.runtime.execution import WriterMemory, choose, execute
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.passes import Engine, observe_and_plan
from engine.runtime.provider import Client, Scope
from enginectl.wiring.scope import scope_of
from providers.listing import ListedLives, keeper
from providers.live_store import LiveStore
from providers.snapshot import targets
from providers.watching import Feed, WatchingCluster
from resources.base.kinds import POD
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.laws.graphs import GraphToy
from tests.stories.graphs import graph, service

SIZES = (10, 100, 1_000)
REPLICAS = 19
CHANGES = 200
"""How often one pod is changed; the fastest pass counts."""


@dataclass
class Filled:
    """A store whose contents are given, as if a watch had brought them."""

    store: LiveStore
    synced: anyio.Event = field(default_factory=anyio.Event)
    served: bool = True
    error: ClusterError | None = None


class FilledCluster(WatchingCluster):
    """A watched cluster with these objects, without a server."""

    def __init__(self, bodies: list[dict[str, Any]]) -> None:
        super().__init__(cast(Client, None), SystemClock())
        self._bodies = bodies
        self.stores: list[LiveStore] = []

    @asynccontextmanager
    async def _feeding(self, scope: Scope) -> AsyncGenerator[Sequence[Feed]]:
        feeds = [Filled(LiveStore(target, self._note_change)) for target in targets(scope)]
        keep = keeper(Compressor())
        for feed in feeds:
            feed.synced.set()
            kind = feed.store.kind
            own = [body for body in self._bodies if body["apiVersion"] == kind.api_version and body["kind"] == kind.name]
            parsed = [live(body) for body in own]
            lives = [live(body, source=keep(each.labels, orjson.dumps(body))) for body, each in zip(own, parsed, strict=True)]
            feed.store.begin_list()
            feed.store.end_list(ListedLives(lives, "1", kind))
        self.stores = [feed.store for feed in feeds]
        yield feeds


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, nargs="*", default=SIZES, help="how many PodCliqueSets, each of 99 objects")
    tune_gc()
    for sets in parser.parse_args().sets:
        for with_graph in (False, True):
            anyio.run(measure, sets, with_graph)


def graph_objects() -> list[dict[str, Any]]:
    """A settled graph, its set, and what they consist of."""
    toy = GraphToy()
    toy.put(graph() | {"spec": {"services": {"decode": service(2)}}})
    toy.settle()
    return list(toy.objects.values())


async def measure(sets: int, with_graph: bool) -> None:
    """The figures for so many sets."""
    bodies = list(settled([podcliqueset(f"set-{number:04}", REPLICAS) for number in range(sets)]))
    beside = f"{sets} sets and a graph" if with_graph else f"{sets} sets"
    bodies += graph_objects() if with_graph else []
    provider, memory, scope = FilledCluster(bodies), WriterMemory(), scope_of(CONFIGURATION)
    engine = Engine(provider, SystemClock(), scope, BLUEPRINTS, CONFIGURATION)
    async with provider.watching(scope):
        pods = next(store for store in provider.stores if store.target.kind == POD)
        first = await a_pass(engine, memory)
        pod = dict(next(live.body for live in pods.lives.values() if live.id.name.startswith("set-")))
        costs = []
        for number in range(CHANGES):
            change = {"metadata": {"resourceVersion": str(1000 + number)}, "status": {"podIP": f"10.0.0.{number}"}}
            pods.apply("MODIFIED", dict(merge_patch(pod, change)))
            costs.append(await a_pass(engine, memory))
        unchanged = min([await a_pass(engine, memory) for _ in range(CHANGES)])
    report(f"{beside}, first pass", first * 1000, "ms")
    report(f"{beside}, one pod changed", min(costs) * 1000, "ms")
    report(f"{beside}, nothing changed", unchanged * 1000, "ms")


async def a_pass(engine: Engine[Configuration], memory: WriterMemory) -> float:
    """The CPU seconds of one pass. Raises `RuntimeError` if it has something to do."""
    began = time.process_time()
    current = await observe_and_plan(engine, memory)
    chosen = choose(current, memory, engine.clock.monotonic())
    await execute(engine, memory, current, chosen)
    if chosen:
        raise RuntimeError(f"there is something to do: {chosen[0].operations[:1]}")
    return time.process_time() - began


if __name__ == "__main__":
    main()
