"""The time that a plan takes: cold, unchanged, and after one change. `python -m benchmarks.plan --sets 1000`."""

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.operation import Create, Operation, body_of, owner_reference
from engine.ownership import MANAGER
from engine.paths import merge_patch, stamp
from engine.resource import Body
from engine.runtime.garbage_collection import tune_gc
from engine.tick import Plans, plan_all
from providers.schedulers.kube import KubeScheduler
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS

CONFIGURATION = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = "2026-01-01T00:00:00Z"


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="how many PodCliqueSets")
    parser.add_argument("--replicas", type=int, default=19, help="replicas of each: a replica is five objects")
    options = parser.parse_args()
    tune_gc()
    sets = [podcliqueset(f"set-{number:04}", options.replicas) for number in range(options.sets)]
    roots = [observed(body) for body in sets]

    first = timed("cold plan, no objects", lambda: _plans(world.assemble(BLUEPRINTS, roots, (), {}), Memo()))
    objects = list(created(first, roots))
    report("objects", len(objects), "objects")
    del first
    gc.collect()
    existing = timed("assembling a world", lambda: world.assemble(BLUEPRINTS, roots, objects, {}))
    existing = _with_statuses(existing)
    objects.clear()  # The objects without status: an engine would not keep them either.
    gc.collect()
    memo = Memo()
    timed("cold plan, all objects", lambda: _plans(existing, memo))
    timed("unchanged plan, same world", lambda: _plans(existing, memo))
    changed = _with_one_pod_changed(existing)
    timed("one pod changed", lambda: _plans(changed, memo))
    edited = _with_one_set_edited(existing)
    timed("one set edited", lambda: _plans(edited, memo))
    report("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


def _plans(world: World, memo: Memo) -> Plans:
    return plan_all(BLUEPRINTS, world, NOW, CONFIGURATION, memo, Limits())


def timed(name: str, function: Callable[[], Any]) -> Any:
    """The result of the function; its CPU seconds are printed."""
    before = time.process_time()
    result = function()
    report(name, time.process_time() - before, "s")
    return result


def report(name: str, value: float, unit: str) -> None:
    """Print one figure as one line."""
    sys.stdout.write(json.dumps({"figure": name, "value": round(value, 4), "unit": unit}) + "\n")


def podcliqueset(name: str, replicas: int, pods: int = 2) -> dict[str, Any]:
    """A set whose replicas have one clique of so many pods, as a server with admission would store it."""
    container = {"name": "main", "image": "registry.example/worker:1", "env": [{"name": "MODE", "value": "serve"}]}
    pod_spec = {"containers": [container], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": pods, "minAvailable": pods, "podSpec": pod_spec}}
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "cliques": [clique],
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "podCliqueScalingGroups": [],
        "terminationDelay": "4h0m0s",
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    finalizers = {"finalizers": ["grove.io/podcliqueset.grove.io"], "creationTimestamp": MOMENT}
    spec = {"replicas": replicas, "template": template}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {**metadata, **finalizers}, "spec": spec}


def created(plans: Plans, roots: list[Live]) -> Iterator[Live]:
    """The objects that the API server would have once the plans are applied and the pods run."""
    for plan, root in zip(plans.plans, roots, strict=True):
        uids: dict[ResourceId, str] = {root.id: root.uid}
        for operation in plan.operations:
            if isinstance(operation, Create):
                uids[operation.id] = f"uid-{operation.id.kind}-{operation.id.name}"
                yield _stored(operation, uids)


def _stored(operation: Create, uids: dict[ResourceId, str]) -> Live:
    references = [owner_reference(owner, uids) for owner in operation.owners]
    metadata = {
        **operation.manifest["metadata"],
        "ownerReferences": references,
        "uid": uids[operation.id],
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": MOMENT,
        "managedFields": [{"manager": MANAGER, "operation": "Update", "fieldsV1": _fields(operation.manifest)}],
    }
    body: dict[str, Any] = {**operation.manifest, "metadata": metadata}
    return observed(_running(body) if operation.id.kind == "Pod" else body)


def _fields(body: Body) -> dict[str, Any]:
    return {f"f:{key}": _fields(value) if isinstance(value, dict) else {} for key, value in body.items()}


def _running(body: dict[str, Any]) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": MOMENT} for kind in ("PodScheduled", "Ready")]
    return {**body, "status": {"phase": "Running", "conditions": conditions}}


def observed(body: Body) -> Live:
    """A body as it is received: bytes, with typed metadata."""
    return live(body, source=orjson.dumps(body))


def _with_statuses(existing: World) -> World:
    """The world once every due status has been written."""
    lives = {live.id: live for live in _lives(existing)}
    operations = [operation for plan in _plans(existing, Memo()).plans for operation in plan.operations]
    return _with(existing, [observed(_written(lives[operation.id].body, operation)) for operation in operations])


def _written(body: Body, operation: Operation) -> Body:
    revision = {"metadata": {"resourceVersion": "2"}}
    return merge_patch(merge_patch(body, stamp(body_of(operation), MOMENT)), revision)


def settled(sets: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """These sets and everything that they consist of, as the API server has them once nothing is left to do."""
    roots = [observed(body) for body in sets]
    objects = list(created(_plans(world.assemble(BLUEPRINTS, roots, (), {}), Memo()), roots))
    for each in _lives(_with_statuses(world.assemble(BLUEPRINTS, roots, objects, {}))):
        yield dict(each.body)


def _with_one_pod_changed(existing: World) -> World:
    pod = next(pod for part in existing.roots[0].slices.values() for pod in part.of("Pod"))
    status = {"phase": "Running", "podIP": "10.0.0.1"}
    return _with(existing, [observed(merge_patch(pod.body, {"metadata": {"resourceVersion": "3"}, "status": status}))])


def _with_one_set_edited(existing: World) -> World:
    root = existing.roots[0].root
    replicas = root.body["spec"]["replicas"] + 1
    edited = merge_patch(root.body, {"metadata": {"resourceVersion": "3", "generation": 2}, "spec": {"replicas": replicas}})
    return _with(existing, [observed(edited)])


def _lives(existing: World) -> Iterable[Live]:
    return (live for root in existing.roots for live in root.lives())


def _with(existing: World, changed: Iterable[Live]) -> World:
    """The world with some objects changed; what has not changed is shared."""
    lives = {live.id: live for live in (*_lives(existing), *changed)}
    root_ids = {root.root.id for root in existing.roots}
    children = [live for id, live in lives.items() if id not in root_ids]
    return world.assemble(BLUEPRINTS, [lives[id] for id in sorted(root_ids)], children, {}, existing)


if __name__ == "__main__":
    main()
