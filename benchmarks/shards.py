"""What shards save: memory of one process that holds all, or a half, of many pods. `python -m benchmarks.shards`."""

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

import anyio

from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.shards import Shard
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from providers.divided_watch import DividedStore
from providers.informer import Informer
from providers.snapshot import Target
from resources.base.kinds import POD


def main() -> None:
    """Measure in a process of its own for each case: memory that was freed stays with a process."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pods", type=int, default=50_000)
    options.add_argument("--held", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.held:
        sys.stdout.write(f"{anyio.run(kept, given.pods, given.held)}\n")
        return
    sizes = [measured(given.pods, held) for held in (4, 2)]
    sys.stdout.write(json.dumps({"pods": given.pods, "MiB with 4 of 4 shards": sizes[0], "MiB with 2 of 4 shards": sizes[1]}) + "\n")


def measured(pods: int, held: int) -> int:
    """The memory in MiB that a process needs to keep what `held` of four shards have of so many pods."""
    command = [sys.executable, "-m", "benchmarks.shards", "--pods", str(pods), "--held", str(held)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


async def kept(pods: int, held: int) -> int:
    """The growth of this process in MiB while a watch brings in so many pods, in 200 namespaces."""
    store = DividedStore(Target(POD, "", ""), 4)
    informer: Informer[DividedStore] = Informer(store, InProcessClient(Api(SystemClock())), SystemClock())
    for shard in range(held):
        store.join(Shard(shard, 4), informer, lambda _: None)
    before = used()
    for number in range(pods):
        store.apply("ADDED", pod(POD, number))
    return used() - before


def pod(kind: Kind, number: int) -> dict[str, Any]:
    """A pod of 3 KB."""
    metadata = {"name": f"pod-{number}", "namespace": f"team-{number % 200}", "uid": f"u{number}", "resourceVersion": str(number + 1)}
    environment = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(30)]
    spec = {"containers": [{"name": "main", "image": "example/worker:1", "env": environment}]}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def used() -> int:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
