"""Growth: what more pods cost: the first list, the first plan, memory, a restart, one changed pod; and an hour of churn.

    python -m benchmarks.growth --document

Prints one JSON line for each size and each rest, and with `--document` writes the curves to docs/figures and the table to
docs/performance.md. Every size is measured in a process of its own, against a server in another one (`benchmarks.recorded_server`).
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from benchmarks.charts import Chart, Line
from benchmarks.client import client_for
from benchmarks.fleet import MIXED, PLAIN
from benchmarks.recorded_server import ServerProcess, serving
from benchmarks.sections import between_markers
from engine.operation import Result
from engine.runtime.clock import SystemClock
from engine.runtime.execution import WriterMemory
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.logs import logger
from engine.runtime.loop import run
from engine.runtime.observers import Observers
from engine.runtime.passes import Engine, Pass, observe_and_plan
from engine.runtime.provider import Client
from enginectl.wiring.scope import scope_of
from providers.watching import WatchingCluster
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS

SIZES: Final = (1_000, 10_000, 50_000, 150_000)
"""Pods. Kubernetes supports no cluster with more, nor with more nodes than they are on: 5,000."""
CHANGES: Final = 50
"""How often one pod is changed; the fastest counts."""
MINUTES, STEP = 60, 5
"""Minutes of churn, and between two rests of it."""
CHURN: Final = 600
"""How many pods change in a minute of churn; a tenth as many are replaced."""
RESTING, RESTS = 0.5, 10
"""A process that has used so few CPU seconds in a minute has planned everything; the minutes in which it must have."""
DOCS: Final = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True, slots=True)
class Size:
    """What so many pods cost. Seconds are CPU seconds."""

    pods: int
    mixed: bool
    """With Dynamo graphs, ComputeDomains and native gangs."""
    objects: int
    list_seconds: float
    """The first list of everything."""
    plan_seconds: float
    """The first plan."""
    change_ms: float
    """Observing and planning after one pod has changed."""
    unchanged_ms: float
    """The same when nothing has changed."""
    minute_seconds: float
    """`engine run` in a minute in which nothing changes."""
    listed_mib: float
    """Memory that is resident after the first plan."""
    watched_mib: float
    """The same if every object has arrived on a watch, as during bring-up."""
    peak_mib: float
    """The most memory that was resident at a time, of both."""

    @property
    def restart_seconds(self) -> float:
        """What a restart costs."""
        return self.list_seconds + self.plan_seconds


@dataclass(frozen=True, slots=True)
class Rest:
    """The memory after so many minutes of churn."""

    minutes: int
    mib: float


class Workload:
    """What `engine run` does between two passes and in one, without writing."""

    def __init__(self, engine: Engine[Configuration], provider: WatchingCluster, server: ServerProcess) -> None:
        self._engine, self._provider, self._server = engine, provider, server
        self._memory = WriterMemory()

    async def plan(self) -> tuple[Pass[Configuration], float]:
        """One pass without its writes, and its CPU seconds."""
        before = time.process_time()
        return await observe_and_plan(self._engine, self._memory), time.process_time() - before

    async def settle(self, objects: int) -> Pass[Configuration]:
        """Plan until there are so many children and nothing is planned for them. Raises `RuntimeError` if something is."""
        while True:
            current, _ = await self.plan()
            if sum(len(list(root.lives())) for root in current.world.roots) >= objects:
                break
            await self._provider.changed()
        if any(plan.operations for plan in current.planned.plans):
            raise RuntimeError("what was generated is not settled")
        self._provider.compact()  # As `engine run` does once it is idle.
        return current

    async def change(self, pods: int = 1) -> None:
        """Change some pods, and return when it has been noticed."""
        self._server.change(pods)
        await self._provider.changed()

    async def churn(self, pods: int) -> None:
        """Change so many pods and replace a tenth as many, and plan."""
        for _ in range(10):
            await self.change(pods // 10)
            self._server.replace(pods // 100)
            await anyio.sleep(0.05)
            await self.plan()


@asynccontextmanager
async def workload(server: ServerProcess, folder: Path, *, mixed: bool = False) -> AsyncIterator[Workload]:
    """The workload of that server, watched."""
    async with client_for(server.url, folder) as client:
        engine, provider = engine_with(client, mixed=mixed)
        async with provider.watching(engine.scope):
            yield Workload(engine, provider, server)


def engine_with(client: Client, *, mixed: bool) -> tuple[Engine[Configuration], WatchingCluster]:
    """The engine of `engine run`, and its provider."""
    clock, configuration = SystemClock(), MIXED if mixed else PLAIN
    provider = WatchingCluster(client, clock)
    return Engine(provider, clock, scope_of(configuration), BLUEPRINTS, configuration), provider


async def listed(pods: int, mixed: int, folder: Path) -> dict[str, float]:
    """The figures of a process that lists everything first."""
    with serving(pods, mixed=bool(mixed)) as server:
        before = time.process_time()
        async with workload(server, folder, mixed=bool(mixed)) as work:
            current, _ = await work.plan()
            both = time.process_time() - before
            share = current.observing / current.took
            objects = sum(len(list(root.lives())) for root in current.world.roots)
            await work.settle(objects)
            listed_mib = resident()
            unchanged = min([(await work.plan())[1] for _ in range(CHANGES)])
            changes = []
            for _ in range(CHANGES):
                await work.change()
                changes.append((await work.plan())[1])
            return {
                "objects": objects,
                "list_seconds": round(both * share, 3),
                "plan_seconds": round(both * (1 - share), 3),
                "change_ms": round(min(changes) * 1000, 2),
                "unchanged_ms": round(unchanged * 1000, 2),
                "listed_mib": listed_mib,
                "listed_peak_mib": resident("VmHWM"),
            }


async def idle(pods: int, mixed: int, folder: Path) -> dict[str, float]:
    """The CPU seconds of `engine run` in a minute in which nothing changes, once it has planned everything and compressed what it holds.

    That takes several passes: the first plan of a large fleet is made in portions.
    """
    with serving(pods, mixed=bool(mixed)) as server:
        async with client_for(server.url, folder) as client, anyio.create_task_group() as tasks:
            passed = FirstPass()
            tasks.start_soon(partial(run, engine_with(client, mixed=bool(mixed))[0], None, logger(sys.stderr), observer=passed))
            await passed.noticed.wait()
            for _ in range(RESTS):
                seconds = await used_in(60)
                if seconds < RESTING:
                    break
            tasks.cancel_scope.cancel()
    return {"minute_seconds": round(seconds, 3)}


async def used_in(seconds: float) -> float:
    """The CPU seconds of this process in the next `seconds`."""
    before = time.process_time()
    await anyio.sleep(seconds)
    return time.process_time() - before


class FirstPass(Observers[Configuration]):
    """Notices the first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.noticed = anyio.Event()

    def passed(self, current: Pass[Configuration], results: Sequence[Result]) -> None:
        """There has been a pass."""
        self.noticed.set()


async def watched(pods: int, mixed: int, objects: int, folder: Path) -> dict[str, float]:
    """The memory of a process to which every object arrives on a watch."""
    with serving(pods, mixed=bool(mixed), is_streamed=True) as server:
        async with workload(server, folder, mixed=bool(mixed)) as work:
            await work.settle(objects)
            return {"watched_mib": resident(), "watched_peak_mib": resident("VmHWM")}


async def churned(pods: int, folder: Path) -> list[Rest]:
    """The memory after every `STEP` minutes of churn. Minutes are counted by what changes in them; nobody waits for their end."""
    with serving(pods) as server:
        async with workload(server, folder) as work:
            await work.plan()
            rests = [Rest(0, resident())]
            for minute in range(1, MINUTES + 1):
                await work.churn(CHURN)
                if minute % STEP == 0:
                    rests.append(Rest(minute, resident()))
            return rests


def resident(field: str = "VmRSS") -> float:
    """The resident memory of this process in MiB."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return round(int(status[field].split()[0]) / 1024, 1)


def in_process(what: str, *numbers: int) -> str:
    """The output of this program doing one thing in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", "--only", what, *(str(int(number)) for number in numbers)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def size(pods: int, *, mixed: bool) -> Size:
    """The figures of one size."""
    first = json.loads(in_process("listed", pods, mixed))
    second = json.loads(in_process("watched", pods, mixed, first["objects"]))
    third = json.loads(in_process("idle", pods, mixed))
    peak = max(first.pop("listed_peak_mib"), second["watched_peak_mib"])
    return Size(pods, mixed, **first, **third, watched_mib=second["watched_mib"], peak_mib=peak)


def charts(sizes: Sequence[Size], rests: Sequence[Rest], churning: int) -> dict[str, Chart]:
    """File name -> curve."""

    def line(name: str, field: str) -> Line:
        return Line(name, [(each.pods, getattr(each, field)) for each in sizes if not each.mixed])

    found = {
        "growth-restart": Chart(
            "A restart", "pods", "CPU seconds", [line("first list", "list_seconds"), line("first plan", "plan_seconds")]
        ),
        "growth-change": Chart(
            "One pass", "pods", "CPU ms", [line("one changed pod", "change_ms"), line("nothing changed", "unchanged_ms")]
        ),
        "growth-memory": Chart(
            "Memory", "pods", "MiB", [line("all listed", "listed_mib"), line("all watched", "watched_mib"), line("peak", "peak_mib")]
        ),
    }
    if rests:
        points = [(float(each.minutes), each.mib) for each in rests]
        found["growth-churn"] = Chart(f"An hour of churn, {churning:,} pods", "minutes", "MiB", [Line("resident memory", points)])
    return found


def table(sizes: Sequence[Size]) -> str:
    """The figures as Markdown."""
    head = (
        "pods",
        "objects",
        "first list",
        "first plan",
        "one changed pod",
        "nothing changed",
        "unchanged minute",
        "memory, listed",
        "memory, watched",
        "peak",
    )
    rows = [
        (
            f"{each.pods:,}{' mixed' * each.mixed}",
            f"{each.objects:,}",
            f"{each.list_seconds:.2f} s",
            f"{each.plan_seconds:.2f} s",
            f"{each.change_ms:.1f} ms",
            f"{each.unchanged_ms:.1f} ms",
            f"{each.minute_seconds:.2f} s",
            f"{each.listed_mib:.0f} MiB",
            f"{each.watched_mib:.0f} MiB",
            f"{each.peak_mib:.0f} MiB",
        )
        for each in sizes
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def publish(sizes: Sequence[Size], rests: Sequence[Rest], churning: int) -> None:
    """Write the curves and the table."""
    (DOCS / "figures").mkdir(exist_ok=True)
    for name, chart in charts(sizes, rests, churning).items():
        (DOCS / "figures" / f"{name}.svg").write_text(chart.svg())
    document = DOCS / "performance.md"
    document.write_text(between_markers(document.read_text(), {"growth": table(sizes)}))


def main() -> None:
    """Run the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="PODS")
    options.add_argument(
        "--mixed", type=int, nargs="*", default=list(SIZES[-1:]), metavar="PODS", help="these with graphs and domains, too"
    )
    options.add_argument("--churning", type=int, default=5_000, metavar="PODS", help="pods during the hour of churn; 0: no churn")
    options.add_argument("--document", action="store_true", help="write the curves and the table to docs/")
    options.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.only:
        return measure(given.only[0], *map(int, given.only[1:]))
    sizes, rests = [], list[Rest]()
    for pods, mixed in (*((pods, False) for pods in given.sizes), *((pods, True) for pods in given.mixed)):
        sizes.append(size(pods, mixed=mixed))
        print(json.dumps(asdict(sizes[-1]) | {"restart_seconds": round(sizes[-1].restart_seconds, 3)}), flush=True)
    if given.churning:
        rests = [Rest(**each) for each in json.loads(in_process("churned", given.churning))]
        for rest in rests:
            print(json.dumps(asdict(rest)), flush=True)
    if given.document:
        publish(sizes, rests, given.churning)


def measure(what: str, *numbers: int) -> None:
    """Do one thing in this process and print the figures."""
    tune_gc()
    with tempfile.TemporaryDirectory() as folder:
        if what == "churned":
            print(json.dumps([asdict(each) for each in anyio.run(churned, numbers[0], Path(folder))]))
        else:
            figures: dict[str, Callable[..., Awaitable[dict[str, float]]]] = {"listed": listed, "watched": watched, "idle": idle}
            print(json.dumps(anyio.run(partial(figures[what], *numbers, Path(folder)))))


if __name__ == "__main__":
    main()
