"""A toy cluster: objects in a dictionary, calls that take effect at once, pods that run when `live` is called. Fast enough for laws."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine import world
from engine.answer import NOT_MADE, FailedCall
from engine.blueprint import Blueprint
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Unlisted, World, live
from engine.operation import Operation, body_of, owner_reference
from engine.paths import merge_patch, stamp
from engine.plan import Plan
from engine.tick import plan_all
from engine.verb import Verb
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.schedulers.kube import KubeScheduler
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS

CONFIGURATION = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(auto=True),))
START = datetime(2026, 1, 1, tzinfo=UTC)
REFERENCES = frozenset({kinds.RESOURCE_CLAIM_TEMPLATE.name, kinds.TOPOLOGY_BINDING.name, COMPUTE_DOMAIN.name, kinds.RESOURCE_CLAIM.name})
NOT_CHILDREN = frozenset({kinds.PODCLIQUESET.name, kinds.RESOURCE_CLAIM_TEMPLATE.name, kinds.TOPOLOGY_BINDING.name})
Body = dict[str, Any]


class Toy:
    """A cluster for one test."""

    configuration = CONFIGURATION
    blueprints: Sequence[Blueprint[Configuration]] = BLUEPRINTS
    stuck: frozenset[str] = frozenset()
    """The names of pods that stay when they are deleted."""

    def __init__(self) -> None:
        self.objects: dict[ResourceId, Body] = {}
        self.now = START
        self.revision = 0
        self.created: list[ResourceId] = []
        self.previous: World | None = None
        self.unserved: frozenset[str] = frozenset()
        self.unlisted: Mapping[str, Unlisted] = {}
        """The kinds that cannot be listed completely, with the reasons."""
        self.failed_calls: Mapping[ResourceId, tuple[FailedCall, ...]] = {}
        """The calls of each set that failed when they were last made."""
        self.trials = NOT_MADE
        """What the server has said of pods of new templates."""

    def put(self, body: Mapping[str, Any]) -> Body:
        """Store an object as the API server would; returns what is stored."""
        self.revision += 1
        meta = {
            **body["metadata"],
            "uid": f"uid-{self.revision}",
            "resourceVersion": str(self.revision),
            "generation": 1,
            "creationTimestamp": self.stamp(),
        }
        stored = {**body, "metadata": meta}
        self.objects[live(stored).id] = stored
        return stored

    def stamp(self) -> str:
        """The time in the API's format."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def world(self) -> World:
        """All objects, as observed."""
        lives = [live(body) for body in self.objects.values()]
        roots = [live for live in lives if live.id.kind == kinds.PODCLIQUESET.name]
        reference_kinds = REFERENCES.union(kind.name for kind in self.blueprints[0].references(self.configuration))
        references = [live for live in lives if live.id.kind in reference_kinds]
        children = [live for live in lives if live.id.kind not in NOT_CHILDREN and live.labels.get(labels.MANAGED_BY) == labels.MANAGER]
        self.previous = world.assemble(
            self.blueprints,
            roots,
            children,
            self.unlisted,
            self.previous,
            references=references,
            unserved=self.unserved,
            failed_calls=self.failed_calls,
            trials_of=lambda root: self.trials,
        )
        return self.previous

    def plans(self, memo: Memo | None = None) -> tuple[Plan, ...]:
        """The plans of a pass made now."""
        return self.plans_of(self.world(), memo)

    def plans_of(self, observed: World, memo: Memo | None = None) -> tuple[Plan, ...]:
        """The plans of a pass that has observed this world."""
        plans = plan_all(self.blueprints, observed, self.now, self.configuration, memo or Memo(), Limits()).plans
        for plan in plans:
            if plan.error:
                raise plan.error
        return plans

    def apply(self, operations: Iterable[Operation]) -> None:
        """Make these calls, one after the other."""
        for operation in operations:
            self.call(operation)

    def call(self, operation: Operation) -> None:
        """Make one call, with its preconditions."""
        body = self.objects.get(operation.id)
        if operation.verb is Verb.CREATE:
            if body is not None and not any(owner.owner.controller for owner in operation.owners):
                return  # Another root that shares the object has created it first.
            assert body is None, f"{operation.id} is created twice"
            self.created.append(operation.id)
            self._create(operation)
            return
        assert body is not None, f"{operation.key}: no such object"
        assert operation.expect.uid == body["metadata"]["uid"]
        if operation.verb in (Verb.PATCH, Verb.STATUS):
            assert operation.expect.revision == body["metadata"]["resourceVersion"], f"{operation.key} is stale"
            self._patch(operation, body)
        elif operation.verb is Verb.RELEASE:
            kept = [finalizer for finalizer in body["metadata"]["finalizers"] if finalizer not in body_of(operation)["finalizers"]]
            self.write(operation.id, {"metadata": {"finalizers": kept}})
        elif operation.verb is Verb.DELETE:
            self.delete(operation.id)
        elif operation.verb is Verb.REPLACE:
            self.delete(operation.id)
            self._create(operation)

    def _create(self, operation: Operation) -> None:
        uids = {id: body["metadata"]["uid"] for id, body in self.objects.items()}
        references = [owner_reference(owner, uids) for owner in operation.owners]
        metadata = {**body_of(operation)["metadata"], **({"ownerReferences": references} if references else {})}
        self.put({**body_of(operation), "metadata": metadata})

    def _patch(self, operation: Operation, body: Body) -> None:
        patched = merge_patch(body, stamp(body_of(operation), self.stamp()))
        if operation.verb is Verb.PATCH and patched.get("spec") != body.get("spec"):
            patched = merge_patch(patched, {"metadata": {"generation": body["metadata"]["generation"] + 1}})
        self._store(operation.id, patched)

    def write(self, id: ResourceId, over: Mapping[str, Any]) -> None:
        """Change an object as a user would; one that is being deleted is removed with its last finalizer."""
        self._store(id, merge_patch(self.objects[id], over))

    def _store(self, id: ResourceId, body: Body) -> None:
        self.revision += 1
        self.objects[id] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.revision)}}
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers") and id.kind != "Pod":
            del self.objects[id]

    def delete(self, id: ResourceId) -> None:
        """Delete an object as a user would: pods terminate with the next `live`, finalizers hold."""
        self.write(id, {"metadata": {"deletionTimestamp": self.stamp()}})

    def pods(self) -> list[ResourceId]:
        """The pods, by name."""
        return sorted(id for id in self.objects if id.kind == "Pod")

    def live(self) -> None:
        """Tokens are filled in; pods that are being deleted are removed; pods without gates are scheduled and become ready."""
        for id in sorted(id for id in self.objects if id.kind == "Secret"):
            if not self.objects[id].get("data"):
                self.write(id, {"data": {"token": "dG9rZW4="}})
        for id in self.pods():
            body = self.objects[id]
            if body["metadata"].get("deletionTimestamp"):
                if id.name not in self.stuck:
                    del self.objects[id]
            elif not body["spec"].get("schedulingGates") and body.get("status", {}).get("phase") not in ("Running", "Failed", "Succeeded"):
                self.write(id, {"spec": {"nodeName": "node"}, "status": running(self.stamp())})

    def settle(self, rounds: int = 40) -> int:
        """Make passes until nothing is planned or pending; returns how many. Raises `AssertionError` after `rounds`.

        They share a memo, as the passes of a process do.
        """
        memo = Memo()
        for count in range(rounds):
            plans = self.plans(memo)
            if not any(plan.operations for plan in plans) and not any(plan.pending for plan in plans):
                return count
            for plan in plans:
                self.apply(plan.operations)
            self.live()
            self.now += timedelta(seconds=1)
        raise AssertionError("it does not settle")


def running(moment: str) -> Body:
    """The status of a pod that is ready."""
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind in ("PodScheduled", "Ready")]
    return {"phase": "Running", "conditions": conditions}
