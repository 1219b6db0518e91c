"""What the client costs: creates, gets, lists and watches against a server that does nothing. `python -m benchmarks.client`.

The server runs in a process of its own and answers from memory, so the figures are the client's alone; a real one is the bottleneck.
"""

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson

from engine.observed import Compressor
from engine.runtime.clock import SystemClock
from engine.runtime.garbage_collection import tune_gc
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.connection_pool import RequestLimits
from providers.kubernetes.kubeconfig import Source
from providers.listing import keeper
from resources.base.kinds import POD

IN_FLIGHT = 24
ASKED = re.compile(rb"(\w+) ([^ ?]*)\??([^ ]*) HTTP/1.1\r\n.*?\r\n\r\n", re.S)
LENGTH = re.compile(rb"content-length: *(\d+)", re.I)
CONTINUE = re.compile(rb"continue=(\d+)")


def main() -> None:
    """Take the figures, or be the server that they are taken on."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=3000, help="creates, and gets")
    options.add_argument("--pods", type=int, default=10_000, help="pods to a list")
    options.add_argument("--events", type=int, default=20_000, help="events of a watch")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        asyncio.run(serve(given.pods, given.events))
    else:
        tune_gc()
        anyio.run(measure, given.requests, given.pods, given.events)


async def measure(requests: int, pods: int, events: int) -> None:
    """Every figure, one after the other."""
    with server(pods, events) as url, tempfile.TemporaryDirectory() as folder:
        async with client_for(url, Path(folder)) as client:
            small = pod(1)

            async def create(number: int) -> None:
                await client.create(POD, "default", small)

            async def get(number: int) -> None:
                await client.get(POD, "default", "pod-1")

            await many(create, 200)  # the first ones open the connections
            await rate("creates, 24 in flight", requests, many(create, requests))
            await rate("gets, one after the other", requests, in_turn(get, requests))
            await rate(f"list of {pods} pods, as bytes", 1, client.lives(POD, "", "", keeper(Compressor())))
            await rate(f"list of {pods} pods, parsed", 1, client.list(POD))
            await rate("events of a watch", events, watch(client, events))
    report("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


async def many(ask: Callable[[int], Awaitable[None]], count: int) -> None:
    """That many requests, a fixed number of them in flight."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await ask(number)

    async with anyio.create_task_group() as workers:
        for _ in range(IN_FLIGHT):
            workers.start_soon(worker)


async def in_turn(ask: Callable[[int], Awaitable[None]], count: int) -> None:
    """That many requests, one after the other."""
    for number in range(count):
        await ask(number)


async def watch(client: KubernetesClient, events: int) -> None:
    """That many events of one watch."""
    seen = 0
    async with aclosing(client.watch(POD, since="1")) as stream:
        async for _ in stream:
            seen += 1
    if seen != events:
        raise RuntimeError(f"{seen} of {events} events")


async def rate(what: str, count: int, work: Awaitable[Any]) -> None:
    """Do the work, and say how long each of its parts took: by the clock, and on our core."""
    began, spent = time.perf_counter(), time.process_time()
    await work
    took, used = time.perf_counter() - began, time.process_time() - spent
    if count > 1:
        report(what, count / took, "per second")
        report(f"CPU of {what}", used / count * 1e6, "µs each")
    else:
        report(what, took, "s")


def report(what: str, value: float, unit: str) -> None:
    """One figure as one line."""
    print(json.dumps({"figure": what, "value": round(value, 4), "unit": unit}, ensure_ascii=False), flush=True)


@asynccontextmanager
async def client_for(url: str, folder: Path) -> AsyncIterator[KubernetesClient]:
    """A client as the engine makes one."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    (folder / "kubeconfig").write_bytes(orjson.dumps(config))
    async with connected(Source(str(folder / "kubeconfig")), SystemClock(), limits=RequestLimits(in_flight=IN_FLIGHT)) as client:
        yield client


@contextmanager
def server(pods: int, events: int) -> Iterator[str]:
    """The server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.client", "--serve", "--pods", str(pods), "--events", str(events)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


class Replies(asyncio.Protocol):
    """HTTP, as far as the benchmark needs it: whatever is asked, the answer lies ready."""

    def __init__(self, pods: list[bytes], stream: bytes) -> None:
        self.pods = pods
        self.stream = stream
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while asked := ASKED.match(self.received):
            length = LENGTH.search(asked[0])
            end = asked.end() + (int(length[1]) if length else 0)
            if len(self.received) < end:
                return
            self.received = self.received[end:]
            self.transport.writelines(self.reply(asked[1], asked[2], asked[3]))

    def reply(self, method: bytes, path: bytes, query: bytes) -> tuple[bytes, bytes]:
        if method == b"POST":
            return framed(b"201 Created", self.pods[0])
        if b"watch=1" in query:
            return framed(b"200 OK", self.stream)
        if not path.endswith(b"/pods"):
            return framed(b"200 OK", self.pods[0])
        start = int(found[1]) if (found := CONTINUE.search(query)) else 0
        rest = b',"continue":"%d"' % (start + 500) if start + 500 < len(self.pods) else b""
        items = b",".join(self.pods[start : start + 500])
        return framed(b"200 OK", b'{"kind":"PodList","metadata":{"resourceVersion":"9"%s},"items":[%s]}' % (rest, items))


def framed(status: bytes, body: bytes) -> tuple[bytes, bytes]:
    """An answer with its head."""
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)), body


async def serve(pods: int, events: int) -> None:
    """Answer until somebody ends us."""
    listed = [orjson.dumps(pod(number)) for number in range(pods)]
    stream = b"".join(b'{"type":"MODIFIED","object":%s}\n' % one for one in (listed * (events // pods + 1))[:events])
    running = await asyncio.get_running_loop().create_server(lambda: Replies(listed, stream), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}", flush=True)
    await running.serve_forever()


def pod(number: int) -> dict[str, Any]:
    """A pod as an API server shows it: three kilobytes."""
    name = f"pod-{number}"
    fields: dict[str, Any] = {
        f"f:{key}": {"f:value": {}, "f:name": {}} for key in ("image", "env", "resources", "ports", "volumeMounts", "args", "probe")
    }
    env = [{"name": f"VARIABLE_{index}", "value": f"value-{index}"} for index in range(16)]
    container = {"name": "main", "image": "registry.example/model:1", "env": env, "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    condition = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": None}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"example.com/label-{index}": f"value-{index}" for index in range(8)},
            "ownerReferences": [{"apiVersion": "v1", "kind": "PodClique", "name": "owner", "uid": "1", "controller": True}],
            "managedFields": [{"manager": "engine", "operation": "Update", "fieldsV1": {"f:spec": fields}} for _ in range(2)],
        },
        "spec": {"containers": [container, {**container, "name": "side"}], "nodeName": "node-1", "hostname": name, "subdomain": "set"},
        "status": {"phase": "Running", "conditions": [{"type": type, **condition} for type in ("Ready", "PodScheduled", "Initialized")]},
    }


if __name__ == "__main__":
    main()
