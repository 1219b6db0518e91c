"""How long a plan takes: cold, unchanged, and after one change. `python -m benchmarks.plan --sets 1000`."""

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.operation import Operation
from engine.ownership import MANAGER
from engine.paths import merge_patch
from engine.planner import owner_reference
from engine.resource import Body
from engine.tick import Plans, plan_all
from engine.verb import Verb
from providers.schedulers.kube import KubeScheduler
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS

SETUP = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = "2026-01-01T00:00:00Z"


def main() -> None:
    """Take the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", type=int, default=1000, help="how many PodCliqueSets")
    options.add_argument("--replicas", type=int, default=19, help="replicas of each: a replica is five objects")
    given = options.parse_args()
    gc.set_threshold(100_000, 50, 100)
    sets = [podcliqueset(f"set-{number:04}", given.replicas) for number in range(given.sets)]
    roots = [seen(body) for body in sets]

    made = timed("cold plan, nothing there", lambda: _survey(world.assemble(BLUEPRINTS, roots, (), {}), Memo()))
    objects = list(_lives(made, roots))
    report("objects", len(objects), "objects")
    del made
    gc.collect()
    there = timed("sorting a sighting by roots", lambda: world.assemble(BLUEPRINTS, roots, objects, {}))
    there = _with_states(there)
    objects.clear()  # What has no state yet: an engine would not keep it either.
    gc.collect()
    memo = Memo()
    timed("cold plan, everything there", lambda: _survey(there, memo))
    timed("unchanged plan, same world", lambda: _survey(there, memo))
    changed = _with_one_pod_changed(there)
    timed("one pod changed", lambda: _survey(changed, memo))
    edited = _with_one_set_edited(there)
    timed("one set edited", lambda: _survey(edited, memo))
    report("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB")


def _survey(seen: World, memo: Memo) -> Plans:
    return plan_all(BLUEPRINTS, seen, NOW, SETUP, memo, Limits())


def timed(name: str, act: Callable[[], Any]) -> Any:
    """The answer of an act, its CPU seconds printed."""
    before = time.process_time()
    answer = act()
    report(name, time.process_time() - before, "s")
    return answer


def report(name: str, value: float, unit: str) -> None:
    """One figure as one line."""
    sys.stdout.write(json.dumps({"figure": name, "value": round(value, 4), "unit": unit}) + "\n")


def podcliqueset(name: str, replicas: int) -> dict[str, Any]:
    """A set whose replicas have one clique of two pods, as a server with admission would store it."""
    container = {"name": "main", "image": "registry.example/worker:1", "env": [{"name": "MODE", "value": "serve"}]}
    pod_spec = {"containers": [container], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 2, "minAvailable": 2, "podSpec": pod_spec}}
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


def _lives(made: Plans, roots: list[Live]) -> Iterator[Live]:
    """What the API server would hold once the plan is done and the pods run."""
    for plan, root in zip(made.plans, roots, strict=True):
        uids: dict[ResourceId, str] = {root.id: root.uid}
        for operation in plan.operations:
            if operation.verb is Verb.CREATE:
                uids[operation.id] = f"uid-{operation.id.kind}-{operation.id.name}"
                yield _stored(operation, uids)


def _stored(operation: Operation, uids: dict[ResourceId, str]) -> Live:
    references = [owner_reference(one, uids) for one in operation.owners]
    metadata = {
        **operation.body["metadata"],
        "ownerReferences": references,
        "uid": uids[operation.id],
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": MOMENT,
        "managedFields": [{"manager": MANAGER, "operation": "Update", "fieldsV1": _fields(operation.body)}],
    }
    body: dict[str, Any] = {**operation.body, "metadata": metadata}
    return seen(_running(body) if operation.id.kind == "Pod" else body)


def _fields(body: Body) -> dict[str, Any]:
    return {f"f:{key}": _fields(value) if isinstance(value, dict) else {} for key, value in body.items()}


def _running(body: dict[str, Any]) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": MOMENT} for kind in ("PodScheduled", "Ready")]
    return {**body, "status": {"phase": "Running", "conditions": conditions}}


def seen(body: Body) -> Live:
    """A body as it arrives: bytes, with typed metadata."""
    return live(body, source=orjson.dumps(body))


def _with_states(there: World) -> World:
    """The world once every state that is due has been written."""
    for plan in _survey(there, Memo()).plans:
        lives = {one.id: one for observed in there.roots if observed.root.id == plan.root for one in observed.lives()}
        written = [seen(merge_patch(lives[operation.id].body, operation.body)) for operation in plan.operations]
        there = world.renew(there, BLUEPRINTS[0], plan.root, written)
    return there


def _with_one_pod_changed(there: World) -> World:
    observed = there.roots[0]
    pod = next(one for part in observed.slices.values() for one in part.of("Pod"))
    body = merge_patch(pod.body, {"metadata": {"resourceVersion": "2"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}})
    return world.renew(there, BLUEPRINTS[0], observed.root.id, [seen(body)])


def _with_one_set_edited(there: World) -> World:
    root = there.roots[0].root
    replicas = root.body["spec"]["replicas"] + 1
    edited = merge_patch(root.body, {"metadata": {"resourceVersion": "3", "generation": 2}, "spec": {"replicas": replicas}})
    return world.renew(there, BLUEPRINTS[0], root.id, [seen(edited)])


if __name__ == "__main__":
    main()
