"""How long reviews take while the same process plans without a pause. `python -m benchmarks.admission --pods 10000 --rate 50`.

The server runs in a process of its own: reviews in the serving thread, plans of a cluster of that size in the main one. The client
sends reviews of a set at a fixed rate over TLS connections that it keeps.
"""

import argparse
import itertools
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import Any, cast

import anyio
import orjson
import trustme
from anyio import to_thread
from msgspec.structs import replace

from benchmarks.plan import CONFIGURATION, NOW, created, observed, podcliqueset, report
from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import World
from engine.runtime.clock import SystemClock
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.logs import logger
from engine.runtime.provider import Client
from engine.tick import plan_all
from enginectl.serving.admission import REVIEW_LIMITS, AdmissionRules, Judge, admission_routes
from enginectl.serving.endpoints import SWITCH_INTERVAL
from enginectl.serving.template_access import TemplateReader
from providers.certificates.live_context import server_context
from providers.http.address import Address
from providers.http.server import serve
from providers.http.thread import in_thread
from providers.reference_caches import ReferenceCaches
from resources.admission.managed_rules import Protection
from resources.install.webhooks import VALIDATE_SET
from resources.registry import BLUEPRINTS

HOST = "127.0.0.1"
REPLICAS = 19
PODS_OF_SET = 2 * REPLICAS
CONNECTIONS = 4


def main() -> None:
    """Take the figures, or be the server that they are taken on."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pods", type=int, default=10_000)
    options.add_argument("--rate", type=float, default=50, help="reviews a second; 0: none, to see what the planner does alone")
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--interval", type=float, default=SWITCH_INTERVAL, help="sys.setswitchinterval, in seconds")
    options.add_argument("--size", type=int, default=0, help="bytes that are added to the object of each review")
    options.add_argument("--idle", action="store_true", help="let the planner do nothing")
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        sys.setswitchinterval(given.interval)
        tune_gc()
        anyio.run(be_server, given.serve, 0 if given.idle else given.pods)
    else:
        measure(given)


def measure(given: argparse.Namespace) -> None:
    """Send reviews and report their times, and how many plans the process made meanwhile."""
    options = ["--pods", given.pods, "--interval", given.interval, *(["--idle"] if given.idle else [])]
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), *map(str, options)) as (process, port, context):
        body = review(given.size)
        times = reviews(port, context, body, given.rate, given.seconds)
        process.stdin.write(b"\n")
        process.stdin.flush()
        plans = json.loads(process.stdout.readline())
    for name, share in (("p50", 0.50), ("p99", 0.99), ("longest", 1.0)) if times else ():
        report(f"review of {len(body)} bytes, {name}", sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000, "ms")
    report("plans", plans["plans"] / plans["seconds"], "/s")


def reviews(port: int, context: SSLContext, body: bytes, rate: float, seconds: float) -> list[float]:
    """The seconds that each review took, from when it was due."""
    times: list[float] = []
    if not rate:
        time.sleep(seconds)
        return times
    begin, count = time.perf_counter() + 0.2, int(rate * seconds)

    def send(first: int) -> None:
        with closing(HTTPSConnection(HOST, port, context=context)) as connection:
            connection.connect()
            for number in range(first, count, CONNECTIONS):
                due = begin + number / rate
                time.sleep(max(0.0, due - time.perf_counter()))
                connection.request("POST", VALIDATE_SET.path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                times.append(time.perf_counter() - due)

    threads = [threading.Thread(target=send, args=(first,)) for first in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def review(size: int) -> bytes:
    """A review of a new set; its object has that many bytes more."""
    body = podcliqueset("reviewed", 3)
    body["metadata"]["annotations"] = {f"example.com/{number}": "x" * 100 for number in range(min(size, 200_000) // 120)}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["env"] += [
        {"name": f"VARIABLE_{number}", "value": "x" * 100} for number in range(max(0, size - 200_000) // 140)
    ]
    request = {
        "uid": "1",
        "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
        "operation": "CREATE",
        "namespace": "default",
        "name": "reviewed",
        "userInfo": {"username": "somebody"},
        "object": body,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[Any, int, SSLContext]]:
    """The server in another process: the process, its port, and a context that trusts it."""
    authority, context = trustme.CA(), create_default_context()
    authority.configure_trust(context)
    certificate = authority.issue_cert(HOST)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "pair.pem")
    command = [sys.executable, "-m", "benchmarks.admission", "--serve", str(folder / "pair.pem"), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield process, json.loads(process.stdout.readline())["port"], context
        finally:
            process.kill()


async def be_server(pair: Path, pods: int) -> None:
    """Serve, and plan in a thread as `engine run` does, until a line arrives."""
    context, log, clock = server_context(), logger(sys.stderr), SystemClock()
    context.load_cert_chain(pair)
    worlds = itertools.cycle(clusters(max(1, pods // PODS_OF_SET))) if pods else None
    port = free_port()

    async def work(started: Any, stop: anyio.Event) -> None:
        caches = ReferenceCaches(cast(Client, None), clock, log, ())
        judge = Judge(AdmissionRules(CONFIGURATION, Protection()), caches, TemplateReader(cast(Client, None)))
        routes = admission_routes(judge)
        await serve((Address("webhooks", HOST, port, routes, context, REVIEW_LIMITS),), log, clock, stop=stop, started=started)

    ended = threading.Event()

    def plan() -> int:
        plans, memo = 0, Memo()
        while not ended.is_set():
            if worlds is None:
                ended.wait(0.1)
                continue
            plan_all(BLUEPRINTS, next(worlds), NOW, CONFIGURATION, memo, Limits())
            plans += 1
        return plans

    def wait_for_line() -> None:
        sys.stdin.readline()
        ended.set()

    async with in_thread(work):
        sys.stdout.write(json.dumps({"port": port}) + "\n")
        sys.stdout.flush()
        begin = time.perf_counter()
        threading.Thread(target=wait_for_line, daemon=True).start()
        plans = await to_thread.run_sync(plan)
        figures = {"plans": plans, "seconds": time.perf_counter() - begin}
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def clusters(sets: int) -> tuple[World, World]:
    """A settled cluster, twice: between the two every object has changed, so that nothing that was computed for one serves the other."""
    roots = [observed(podcliqueset(f"set-{number:04}", REPLICAS)) for number in range(sets)]
    plans = plan_all(BLUEPRINTS, world.assemble(BLUEPRINTS, roots, (), {}), NOW, CONFIGURATION, Memo(), Limits())
    objects = list(created(plans, roots))
    again = [replace(object) for object in objects]
    return world.assemble(BLUEPRINTS, roots, objects, {}), world.assemble(BLUEPRINTS, roots, again, {})


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
