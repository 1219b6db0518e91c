"""An API server that lists and watches a generated fleet (`benchmarks.fleet`). It stores nothing.

    python -m benchmarks.recorded_server --pods 20000 --mixed

Prints its address. Objects are in its lists; with `--streamed` they arrive on the watches instead. A line `change N` on its input changes N
pods, one after the other, and `replace N` deletes N pods and adds them again; each is answered with a line.
"""

import argparse
import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle, islice
from typing import Any, Final

import orjson

from benchmarks.fleet import SERVED, fleet
from engine.ids import Kind
from providers.kubernetes.wire import collection
from resources.base import kinds

PAGE: Final = 500
BOOKMARK: Final = 60.0
"""Seconds between two bookmarks of a watch."""
REQUEST: Final = re.compile(rb"(\w+) ([^ ?]*)\??([^ ]*) HTTP/1.1\r\n.*?\r\n\r\n", re.S)
CONTINUE: Final = re.compile(rb"continue=(\d+)")
NOT_FOUND: Final = orjson.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
KINDS: Final = {collection(kind, ""): kind for kind in SERVED.values()}


class Recording:
    """The objects, and the watches that are open."""

    def __init__(self, pods: int, *, mixed: bool, is_streamed: bool) -> None:
        self.objects: dict[Kind, dict[str, bytes]] = {kind: {} for kind in SERVED.values()}
        for kind, name, content in fleet(pods, mixed=mixed):
            self.objects[kind][name] = content
        self._revisions = count(10 + sum(map(len, self.objects.values())))
        self.is_streamed = is_streamed
        self.revision = next(self._revisions)
        self.watches: dict[Kind, list[asyncio.Transport]] = {}
        self._pods = cycle(sorted(self.objects[kinds.POD]))

    def page(self, kind: Kind, start: int) -> bytes:
        """A page of a list, as bytes."""
        items = () if self.is_streamed else self.objects[kind].values()
        metadata = {"resourceVersion": "9" if self.is_streamed else str(self.revision)}
        if start + PAGE < len(items):
            metadata["continue"] = str(start + PAGE)
        head = {"kind": f"{kind.name}List", "apiVersion": kind.api_version, "metadata": metadata}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(islice(items, start, start + PAGE)) + b"]}"

    def watch(self, kind: Kind, transport: asyncio.Transport) -> None:
        """Begin a watch."""
        self.watches.setdefault(kind, []).append(transport)
        transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for content in self.objects[kind].values() if self.is_streamed else ():
            transport.write(chunk("ADDED", content))

    def change(self, pods: int) -> None:
        """Change the status of so many pods."""
        for name, body in self._revised(pods):
            body["status"]["podIP"] = f"10.0.0.{int(body['metadata']['resourceVersion']) % 250}"
            self._put(name, "MODIFIED", body)

    def replace(self, pods: int) -> None:
        """Delete so many pods, and add each again with another uid."""
        for name, body in self._revised(pods):
            self._send("DELETED", orjson.dumps(body))
            revision = str(next(self._revisions))
            uid = f"{body['metadata']['uid'].partition('+')[0]}+{revision}"
            self._put(name, "ADDED", {**body, "metadata": {**body["metadata"], "uid": uid, "resourceVersion": revision}})

    def _revised(self, pods: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """The names and bodies of the next pods, each with a new revision."""
        for name in islice(self._pods, pods):
            body = orjson.loads(self.objects[kinds.POD][name])
            body["metadata"]["resourceVersion"] = str(next(self._revisions))
            yield name, body

    async def confirm(self) -> None:
        """Send a bookmark on every watch, every minute, as servers do."""
        while True:
            await asyncio.sleep(BOOKMARK)
            revision = str(next(self._revisions))
            for kind, transports in self.watches.items():
                metadata = {"resourceVersion": revision}
                content = orjson.dumps({"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata})
                for transport in transports:
                    transport.write(chunk("BOOKMARK", content))

    def _put(self, name: str, event: str, body: dict[str, Any]) -> None:
        self.objects[kinds.POD][name] = orjson.dumps(body)
        self._send(event, self.objects[kinds.POD][name])

    def _send(self, event: str, content: bytes) -> None:
        for transport in self.watches.get(kinds.POD, ()):
            transport.write(chunk(event, content))


def chunk(event: str, content: bytes) -> bytes:
    """An event of a watch as a chunk of an answer."""
    line = b'{"type":"%s","object":%s}\n' % (event.encode(), content)
    return b"%x\r\n%s\r\n" % (len(line), line)


class Connection(asyncio.Protocol):
    """HTTP, as far as lists and watches need it. Requests have no body."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._received += data
        while found := REQUEST.match(self._received):
            self._received = self._received[found.end() :]
            self._answer(found[2].decode(), found[3])

    def _answer(self, path: str, query: bytes) -> None:
        kind = KINDS.get(path)
        if kind is None:
            self._send(b"404 Not Found", NOT_FOUND)
        elif b"watch=1" in query:
            self._recording.watch(kind, self._transport)
        else:
            start = CONTINUE.search(query)
            self._send(b"200 OK", self._recording.page(kind, int(start[1]) if start else 0))

    def _send(self, status: bytes, body: bytes) -> None:
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        self._transport.write(head + body)


async def serve(recording: Recording) -> None:
    """Answer requests, and carry out the commands until the input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(recording), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    confirming = asyncio.create_task(recording.confirm())
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        name, number = line.split()
        {"change": recording.change, "replace": recording.replace}[name](int(number))
        print("done", flush=True)
    confirming.cancel()


class ServerProcess:
    """The server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._line()

    def change(self, pods: int) -> None:
        """Change so many pods."""
        self._tell(f"change {pods}")

    def replace(self, pods: int) -> None:
        """Delete so many pods, and add them again."""
        self._tell(f"replace {pods}")

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def serving(pods: int, *, mixed: bool = False, is_streamed: bool = False) -> Iterator[ServerProcess]:
    """The server while the block runs."""
    options = [*(["--mixed"] if mixed else []), *(["--streamed"] if is_streamed else [])]
    command = [sys.executable, "-m", "benchmarks.recorded_server", "--pods", str(pods), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ServerProcess(process)
        finally:
            process.kill()


def main() -> None:
    """Run the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pods", type=int, default=1000)
    options.add_argument("--mixed", action="store_true", help="with Dynamo graphs, ComputeDomains and native gangs")
    options.add_argument("--streamed", action="store_true", help="lists are empty, and every object arrives on a watch")
    given = options.parse_args()
    asyncio.run(serve(Recording(given.pods, mixed=given.mixed, is_streamed=given.streamed)))


if __name__ == "__main__":
    main()
