"""The bare client: writes the objects of a workload without looking or thinking. What it needs is the limit of server and machine.

    python -m benchmarks.cluster.bare --workload b1 --kubeconfig FILE

Reads commands from its input, one a line (`up`, `scale FROM TO`, `update`, `delete`), and answers each with a line when all is written.
It writes as many statuses as a controller that reports each clique and each gang twice.
"""

import argparse
import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

from benchmarks.cluster.census import READY, facts
from benchmarks.cluster.objects import PlannedObject, objects
from benchmarks.cluster.workloads import NAMESPACE, NEW_IMAGE, WORKLOADS, Workload, changed
from engine.ids import Kind
from providers.kubernetes.wire import collection, member
from resources.base import kinds

IN_FLIGHT: Final = 24
"""How many requests it sends at the same time, as many as the engine."""
MERGE: Final = "application/merge-patch+json"
STATUSES: Final[Mapping[Kind, Sequence[Mapping[str, Any]]]] = {
    kinds.PODCLIQUE: ({"replicas": 2, "readyReplicas": 0}, {"replicas": 2, "readyReplicas": 1}),
    kinds.PODGANG: ({"phase": "Pending"}, {"phase": "Starting"}),
}
"""Kind -> the statuses that are written of each of its objects."""


class Server:
    """The API server, for one client."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def create(self, planned: PlannedObject) -> None:
        """Create an object."""
        await self._write("POST", collection(planned.kind, NAMESPACE), planned.body)

    async def report(self, planned: PlannedObject, status: Mapping[str, Any]) -> None:
        """Write a status."""
        await self._write("PATCH", member(planned.kind, NAMESPACE, planned.name, "status"), {"status": status}, MERGE)

    async def delete(self, planned: PlannedObject) -> None:
        """Delete an object; one that is gone is left."""
        await self._write("DELETE", member(planned.kind, NAMESPACE, planned.name), None)

    async def _write(self, method: str, path: str, body: Any, content_type: str = "application/json") -> None:
        content = None if body is None else orjson.dumps(body)
        async with self._slots, self._session.request(method, path, data=content, headers={"Content-Type": content_type}) as answer:
            text = await answer.read()
            if answer.status >= 400 and not (method == "DELETE" and answer.status == 404):
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The events of all pods, beginning with those that exist."""
        async with self._session.get("/api/v1/pods?watch=1", timeout=aiohttp.ClientTimeout()) as answer:
            async for line in answer.content:
                yield orjson.loads(line)


class PodWatch:
    """Which pods exist, and which of them are ready."""

    def __init__(self) -> None:
        self.ready: dict[str, bool] = {}
        self._changed: dict[str, asyncio.Event] = {}

    async def follow(self, server: Server) -> None:
        """Follow the events of pods, for ever."""
        async for event in server.events():
            body = event["object"]
            name = body["metadata"]["name"]
            if event["type"] == "DELETED":
                self.ready.pop(name, None)
            else:
                self.ready[name] = READY in facts("pods", body)
            if name in self._changed:
                self._changed.pop(name).set()

    async def until_exists(self, name: str) -> None:
        """Return when there is a pod of that name."""
        await self._until(name, lambda: name in self.ready)

    async def until_gone(self, name: str) -> None:
        """Return when there is no pod of that name."""
        await self._until(name, lambda: name not in self.ready)

    async def until_ready(self, name: str) -> None:
        """Return when the pod of that name is ready."""
        await self._until(name, lambda: self.ready.get(name, False))

    async def _until(self, name: str, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.setdefault(name, asyncio.Event()).wait()


class BareClient:
    """Carries out the commands for one workload."""

    def __init__(self, server: Server, workload: Workload, most: int, *, gangs: bool) -> None:
        """`most`: the largest number of replicas that a set ever has. `gangs`: with PodGroups."""
        self._server = server
        self._first = workload.replicas
        self._objects = objects(workload, most, gangs=gangs)

    async def up(self) -> None:
        """Create everything that exists at first."""
        shared = [each for each in self._objects if each.replica < 0]
        await together(self._server.create(each) for each in shared if each.kind is not kinds.ROLE_BINDING)
        await together(self._server.create(each) for each in shared if each.kind is kinds.ROLE_BINDING)
        await self.scale(0, self._first)

    async def scale(self, old: int, new: int) -> None:
        """Create what is missing, or delete what is too much, after the number of replicas of each set has changed."""
        low, high = sorted((old, new))
        concerned = [each for each in self._objects if low <= each.replica < high]
        if new > old:
            await together(self._bring_up(list(group)) for _, group in groupby(concerned, key=_unit))
        else:
            await together(self._server.delete(each) for each in concerned)

    async def update(self) -> None:
        """Replace all pods by such with the new image: in each set one after the other, when the last one is ready."""
        pods = PodWatch()
        following = asyncio.create_task(pods.follow(self._server))
        lanes = groupby((each for each in self._objects if each.is_pod), key=lambda each: each.set)
        await together(self._replace_in_turn(list(group), pods) for _, group in lanes)
        following.cancel()

    async def delete(self) -> None:
        """Delete everything, the pods first."""
        await together(self._server.delete(each) for each in sorted(self._objects, key=lambda each: not each.is_pod))

    async def _bring_up(self, unit: list[PlannedObject]) -> None:
        """The objects of one replica, its pods when the others are there, and the statuses."""
        await together(self._server.create(each) for each in unit if not each.is_pod)
        await together(self._server.create(each) for each in unit if each.is_pod)
        for number in range(2):
            await together(self._server.report(each, STATUSES[each.kind][number]) for each in unit if each.kind in STATUSES)

    async def _replace_in_turn(self, planned: list[PlannedObject], pods: PodWatch) -> None:
        for each in planned:
            await pods.until_exists(each.name)
            await self._server.delete(each)
            await pods.until_gone(each.name)
            # Another name, as the engine gives it: kwok does not start a pod of a name that it has just seen go.
            each.body["metadata"] = {**each.body["metadata"], "name": f"{each.name}-new"}
            each.body["spec"] = {**each.body["spec"], "containers": [{**each.body["spec"]["containers"][0], "image": NEW_IMAGE}]}
            await self._server.create(each)
            await pods.until_ready(each.name)


def _unit(planned: PlannedObject) -> tuple[str, int]:
    """The replica that the object belongs to."""
    return planned.set, planned.replica


async def together(work: Iterable[Awaitable[None]]) -> None:
    """Do all of it at the same time."""
    await asyncio.gather(*work)


@asynccontextmanager
async def session(config: dict[str, Any]) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections to the server of that kubeconfig, with its token."""
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=cluster["certificate-authority"]), limit=IN_FLIGHT + 1)
    headers = {"Authorization": f"Bearer {user['token']}"}
    async with aiohttp.ClientSession(cluster["server"], headers=headers, connector=connector, read_bufsize=2**22) as opened:
        yield opened


async def serve(kubeconfig: dict[str, Any], workload: Workload, most: int, *, gangs: bool) -> None:
    """Carry out commands until the input ends."""
    async with session(kubeconfig) as opened:
        client = BareClient(Server(opened), workload, most, gangs=gangs)
        commands: dict[str, Callable[..., Awaitable[None]]] = {
            "up": client.up,
            "scale": client.scale,
            "update": client.update,
            "delete": client.delete,
        }
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            name, *words = line.split()
            await commands[name](*map(int, words))
            print("done", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), required=True)
    parser.add_argument("--sizes", type=json.loads, default={}, help="other sizes of the workload, as JSON")
    parser.add_argument("--most", type=int, required=True, help="the largest number of replicas that a set ever has")
    parser.add_argument("--gangs", action="store_true", help="with PodGroups of kube-scheduler")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    given = parser.parse_args()
    workload = changed(WORKLOADS[given.workload], given.sizes)
    asyncio.run(serve(json.loads(given.kubeconfig.read_text()), workload, given.most, gangs=given.gangs))


if __name__ == "__main__":
    main()
