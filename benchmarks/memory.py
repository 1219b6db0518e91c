"""The memory that `engine run` needs for what it watches: `python -m benchmarks.memory --pods 5000`.

The cluster is generated: every write is answered, and reported by a watch, as an API server would, and pods become ready in four steps.
Nothing of it stays in this process but what the engine keeps. Each figure is that of a process of its own.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import orjson

from benchmarks.plan import CONFIGURATION, MOMENT, podcliqueset
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.memory_budget import BYTES_PER_LIGHT, BYTES_PER_OTHER, PROGRAM_BYTES
from engine.observed import Compressed, Compressor, Live
from engine.operation import Create, Operation, Patch, WriteStatus, owner_reference
from engine.ownership import MANAGER
from engine.paths import merge_patch
from engine.resource import Body
from engine.runtime.execution import WriterMemory, choose, execute
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.passes import Engine, Pass, observe_and_plan
from engine.runtime.portions import LARGE, MOST, Portions
from engine.runtime.provider import Observation, Scope, TakenNames
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import _live
from providers.kubernetes.wire import raw_objects
from providers.listing import ListedLives, keeper
from providers.live_store import LiveStore
from providers.snapshot import observation, targets
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder

PAGE = 500
"""Objects in a page of a list, as the client asks for them."""


def main() -> None:
    """Measure in a process of its own for each case: memory that was freed stays with a process."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pods", type=int, default=5000, help="how many pods")
    options.add_argument("--of-replica", type=int, default=2, metavar="PODS", help="how many of them a replica has")
    options.add_argument("--sets", type=int, default=100, help="how many sets they belong to")
    options.add_argument("--churn", type=int, default=20_000, help="how many events of the watch follow once everything is ready")
    options.add_argument("--categories", action="store_true", help="also what the memory is held for; takes three times as long")
    options.add_argument("--check", action="store_true", help="fail if more memory is resident than the engine counts for its objects")
    options.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options.add_argument("--folder", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.case:
        anyio.run(CASES[given.case], given)
        return
    with tempfile.TemporaryDirectory() as folder:
        for case in ["bring-up", "restart", *(["categories"] if given.categories else [])]:
            subprocess.run([sys.executable, "-m", "benchmarks.memory", *sys.argv[1:], "--case", case, "--folder", folder], check=True)


async def bring_up(given: argparse.Namespace) -> None:
    """Create everything, make all pods ready, and change them: the most memory used meanwhile, and that which is used afterwards."""
    before = resident()
    run = _Run(given)
    await run.settle()
    report("bring-up", run, before)
    if given.check:
        check(run)
    for number in range(given.churn):
        run.cluster.disturb(number)
        if number % 100 == 99:
            await run.settle()
    report("after churn", run, before)
    run.cluster.save(Path(given.folder))


async def restart(given: argparse.Namespace) -> None:
    """List everything that the bring-up has left, and make a pass."""
    before = resident()
    run = _Run(given, listed=Path(given.folder))
    await run.settle()
    report("restart", run, before)


async def categories(given: argparse.Namespace) -> None:
    """What the memory of the restarted process is held for. Traced sizes are those of the objects, without what the allocator adds."""
    tracemalloc.start()
    run = _Run(given, listed=Path(given.folder))
    await run.settle()
    gc.unfreeze()
    await anyio.lowlevel.checkpoint()  # The event loop holds the result of the last pass until its next turn.
    for store in run.cluster.stores.values():
        store.compact()
    lives = [live for store in run.cluster.stores.values() for live in store.lives.values()]
    figures = {"sources": sum(len(live.source.data if isinstance(live.source, Compressed) else live.source) for live in lives) / 2**20}
    del lives

    def release(what: str) -> None:
        gc.collect()
        figures[what] = -tracemalloc.get_traced_memory()[0] / 2**20

    release("start")
    run.memory.memo.__init__()  # type: ignore[misc]
    release("remembered answers")
    run.memory, run.last = WriterMemory(), None
    release("world")
    for store in run.cluster.stores.values():
        store.clear()
    release("objects, with their sources")
    names = list(figures)[2:]
    totals = list(figures.values())[1:]
    held = {name: round(after - before, 1) for name, before, after in zip(names, totals, totals[1:], strict=False)}
    print(json.dumps({"case": "categories", "MiB": held | {"of these sources": round(figures["sources"], 1)}}), flush=True)


CASES = {"bring-up": bring_up, "restart": restart, "categories": categories}


class _Run:
    """An engine, and the generated cluster that it works on."""

    def __init__(self, given: argparse.Namespace, listed: Path | None = None) -> None:
        tune_gc()
        scope = scope_of(CONFIGURATION)
        self.clock = _Clock()
        self.cluster = GeneratedCluster(scope)
        if listed is None:
            replicas = given.pods // given.sets // given.of_replica
            for number in range(given.sets):
                self.cluster.add(podcliqueset(f"set-{number:04}", replicas, given.of_replica))
        else:
            self.cluster.load(listed)
        self.engine = Engine(self.cluster, self.clock, scope, BLUEPRINTS, CONFIGURATION, events_of=event_builder(CONFIGURATION))
        self.memory = WriterMemory(portions=Portions(LARGE, MOST))
        self.last: Pass[Configuration] | None = None

    async def settle(self) -> None:
        """Make passes until nothing is left to write and no event is waiting."""
        while True:
            current = self.last = await observe_and_plan(self.engine, self.memory)
            chosen = choose(current, self.memory, self.clock.monotonic())
            if chosen:
                await execute(self.engine, self.memory, current, chosen)
            elif not (self.cluster.deliver() or self.memory.portions.waiting or any(plan.operations for plan in current.planned.plans)):
                return
            self.clock.advance(2.0)
            self.cluster.deliver()


def report(case: str, run: _Run, before: float) -> None:
    """Print the figures of a case, in MiB above what the process needed before."""
    objects = sum(len(store.lives) for store in run.cluster.stores.values())
    held, peak = resident() - before, resident("VmHWM") - before
    figures = {"objects": objects, "MiB before": before, "MiB held": held, "MiB peak": peak, "KiB per object": held * 1024 / objects}
    print(json.dumps({"case": case} | {name: round(value, 1) for name, value in figures.items()}), flush=True)


def check(run: _Run) -> None:
    """End the process with an error if it has needed more memory than `engine.memory_budget` counts for it and its objects.

    The engine creates no more objects than have room by this count below the memory limit of its container.
    """
    pods = len(run.cluster.stores[kinds.POD].lives)
    others = sum(len(store.lives) for store in run.cluster.stores.values()) - pods
    counted = (PROGRAM_BYTES + pods * BYTES_PER_LIGHT + others * BYTES_PER_OTHER) / 2**20
    print(json.dumps({"case": "check", "MiB peak": round(resident("VmHWM"), 1), "MiB counted": round(counted, 1)}), flush=True)
    if resident("VmHWM") > counted:
        sys.exit("more memory was resident than the engine counts")


def resident(which: str = "VmRSS") -> float:
    """The resident memory of this process in MiB: now, or with `VmHWM` the most so far."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[which].split()[0]) / 1024


class _Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def advance(self, seconds: float) -> None:
        self._seconds += seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


class GeneratedCluster:
    """A `Provider` whose objects exist in the stores of its watches only."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.stores = {target.kind: LiveStore(target, lambda _: None) for target in targets(scope)}
        self._by_name = {(kind.group, kind.name): store for kind, store in self.stores.items()}
        self._revision = 0
        self._waiting: deque[tuple[ResourceId, int]] = deque()
        """Objects that a watch has still to report, and how far a pod has come."""

    def add(self, body: Body) -> None:
        """Store an object that a user has created."""
        self._store(body["kind"] and self._of(body)).apply("ADDED", self._stored(body, "kubectl"))

    def _of(self, body: Body) -> tuple[str, str]:
        return body["apiVersion"].rpartition("/")[0], body["kind"]

    def _store(self, key: tuple[str, str]) -> LiveStore:
        return self._by_name[key]

    def _stored(self, body: Body, manager: str) -> dict[str, Any]:
        """A new object as the server stores it."""
        self._revision += 1
        fields = {"f:metadata": fields_of(body["metadata"]), "f:spec": fields_of(body.get("spec", {}))}
        managed = {
            "manager": manager,
            "operation": "Update",
            "apiVersion": body["apiVersion"],
            "time": MOMENT,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        number = f"{self._revision:012}"
        metadata = {
            "uid": f"6f9b1c52-8d1e-4c57-9b3a-{number}",
            "generation": 1,
            "creationTimestamp": MOMENT,
            **body["metadata"],
            "resourceVersion": str(self._revision),
            "managedFields": [managed],
        }
        return {**body, "metadata": metadata}

    async def observe(self, scope: Scope) -> Observation:
        """The contents of the stores."""
        return observation(scope, ((kind, store.lives.values()) for kind, store in self.stores.items()))

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """The answer to the call of an operation, which is stored and later reported by the watch."""
        store = self._by_name[operation.id.group, operation.id.kind]
        answer: dict[str, Any] = orjson.loads(orjson.dumps(self._written(operation, store, uids)))
        store.assume(operation, answer)
        self._waiting.append((operation.id, 0 if isinstance(operation, Create) else len(STEPS)))
        return answer

    def _written(self, operation: Operation, store: LiveStore, uids: Mapping[ResourceId, str]) -> Body:
        if isinstance(operation, Create):
            metadata = {**operation.manifest["metadata"], "ownerReferences": [owner_reference(owner, uids) for owner in operation.owners]}
            body = {**operation.manifest, "metadata": metadata}
            return as_pod_is_stored(self._stored(body, MANAGER)) if operation.id.kind == "Pod" else self._stored(body, MANAGER)
        if not isinstance(operation, Patch | WriteStatus):
            raise NotImplementedError(operation.verb)
        self._revision += 1
        patched = merge_patch(store.lives[operation.id].body, operation.patch)
        return _changed(patched, self._revision, MANAGER, operation.patch)

    def deliver(self) -> int:
        """Report what the watches have to report. Returns how many events they are."""
        events = len(self._waiting)
        for _ in range(events):
            id, step = self._waiting.popleft()
            store = self._by_name[id.group, id.kind]
            live = store.lives[id]
            if id.kind != "Pod" or step == len(STEPS):
                store.apply("MODIFIED", orjson.loads(orjson.dumps(live.body)))
                continue
            self._revision += 1
            body = _changed(merge_patch(live.body, STEPS[step]), self._revision, "kubelet", {"status": STEPS[step].get("status", {})})
            store.apply("MODIFIED", orjson.loads(orjson.dumps(body)))
            self._waiting.append((id, step + 1))
        return events

    def disturb(self, number: int) -> None:
        """A pod reports that a container has been restarted."""
        store = self.stores[kinds.POD]
        if number % 100 == 0:
            self._pods = list(store.lives)
        live = store.lives[self._pods[number * 7919 % len(self._pods)]]
        self._revision += 1
        status = dict(live.body["status"])
        status["containerStatuses"] = [{**each, "restartCount": number} for each in status["containerStatuses"]]
        body = _changed({**live.body, "status": status}, self._revision, "kubelet", {"status": status})
        store.apply("MODIFIED", orjson.loads(orjson.dumps(body)))

    def save(self, folder: Path) -> None:
        """Write all objects as the pages of lists."""
        for kind, store in self.stores.items():
            bodies = [live.body for live in store.lives.values()]
            for number in range(0, len(bodies), PAGE):
                page = {"metadata": {"resourceVersion": str(self._revision)}, "items": bodies[number : number + PAGE]}
                (folder / f"{kind.plural}.{kind.group}.{number // PAGE:05}").write_bytes(orjson.dumps(page))

    def load(self, folder: Path) -> None:
        """List the objects that were saved."""
        for kind, store in self.stores.items():
            lives: list[Live] = []
            keep = keeper(Compressor())
            revision = ""
            for page in sorted(folder.glob(f"{kind.plural}.{kind.group}.*")):
                listed = raw_objects(page.read_bytes(), kind)
                lives += [_live(kind, metadata, keep(metadata.labels or {}, content)) for metadata, content in listed.items]
                revision = listed.revision
            self._revision = max(self._revision, int(revision or 0))
            store.begin_list()
            store.end_list(ListedLives(lives, revision, kind))

    async def get(self, id: ResourceId) -> Live | None:
        """An object."""
        return self._by_name[id.group, id.kind].lives.get(id)

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """No foreign objects exist."""
        return TakenNames()

    async def record(self, event: Event) -> None:
        """Events are not kept."""

    async def serves(self, kind: Kind) -> bool:
        """Every kind is served."""
        return True


def _condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": MOMENT, "observedGeneration": 1}


RUNNING = {
    "phase": "Running",
    "hostIP": "10.0.0.7",
    "podIP": "10.1.0.7",
    "podIPs": [{"ip": "10.1.0.7"}],
    "startTime": MOMENT,
    "qosClass": "BestEffort",
    "conditions": [_condition(kind) for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")],
    "containerStatuses": [
        {
            "name": "main",
            "image": "registry.example/worker:1",
            "imageID": "registry.example/worker@sha256:0c5e6b1d2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4",
            "containerID": "containerd://f00dfeed2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": MOMENT}},
            "lastState": {},
        }
    ],
}
STEPS: Sequence[dict[str, Any]] = (
    {"spec": {"nodeName": "node-17"}},
    {"status": {"phase": "Pending", "conditions": [_condition("PodScheduled")], "qosClass": "BestEffort"}},
    {"status": {**RUNNING, "conditions": [_condition("PodScheduled"), _condition("Ready", "False")]}},
    {"status": RUNNING},
)
"""What happens to a pod after its creation, one event each."""


def as_pod_is_stored(body: dict[str, Any]) -> dict[str, Any]:
    """A pod with the defaults that the server and its admission plug-ins fill in."""
    token = {"name": "kube-api-access-abcde", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    container = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "volumeMounts": [token],
    }
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": tolerations,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "volumes": [{"name": "kube-api-access-abcde", "projected": {"sources": sources, "defaultMode": 420}}],
    }
    spec = {**defaults, **body["spec"]}
    spec["containers"] = [{**container, **each} for each in spec["containers"]]
    return {**body, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _changed(body: dict[str, Any], revision: int, manager: str, fields: Body) -> dict[str, Any]:
    """The object after a write of a manager to its status."""
    metadata = body["metadata"]
    others = [entry for entry in metadata["managedFields"] if (entry["manager"], entry.get("subresource")) != (manager, "status")]
    managed = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": body["apiVersion"],
        "time": MOMENT,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": fields_of(fields.get("status", {}))},
        "subresource": "status",
    }
    return {**body, "metadata": {**metadata, "resourceVersion": str(revision), "managedFields": [*others, managed]}}


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a value as `managedFields` lists them: lists of named entries by name."""
    if isinstance(value, Mapping):
        return {f"f:{key}": fields_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return dict(_entries(value))
    return {}


def _entries(values: list[Any]) -> Iterator[tuple[str, Any]]:
    for value in values:
        key = next((key for key in ("name", "type", "uid", "ip") if isinstance(value, Mapping) and key in value), None)
        if key is not None:
            yield f'k:{{"{key}":"{value[key]}"}}', {".": {}, **fields_of(value)}


if __name__ == "__main__":
    main()
