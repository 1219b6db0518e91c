"""Graphs in the toy cluster: arbitrary ones, and a cluster whose LeaderWorkerSets and Deployments become ready by themselves."""

from collections.abc import Iterable

from hypothesis import strategies
from msgspec.structs import replace

from engine import world
from engine.memo import Memo
from engine.observed import World, live
from engine.operation import Operation
from engine.plan import Plan
from engine.proposal import compose
from engine.verb import Verb
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION, NOT_CHILDREN, REFERENCES, Body, Toy
from tests.operations import as_patch
from tests.stories.graphs import graph, service

SCRIPTS = ("python3 -m dynamo.vllm", "python3 -m dynamo.sglang", "python3 -m dynamo.trtllm", "sleep 1")
ROOTS = frozenset({kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name})
MANAGERS = frozenset({labels.MANAGER, labels.GRAPH_MANAGER})
GROVE, COMPONENTS = frozenset[str](), frozenset({kinds.PODCLIQUESET.key})
"""What a cluster with everything, and one without Grove, does not serve."""

services = strategies.builds(
    lambda replicas, nodes, script: service(replicas, nodes=nodes, script=script),
    strategies.integers(0, 2),
    strategies.integers(1, 3),
    strategies.sampled_from(SCRIPTS),
)
graphs = strategies.dictionaries(strategies.sampled_from(("decode", "Prefill", "other")), services, min_size=1).map(
    lambda each: graph() | {"spec": {"services": each}}
)
"""Manifests of graphs called `chat`, with one to three services."""


class GraphToy(Toy):
    """A toy cluster with graphs and without fabrics."""

    configuration = replace(CONFIGURATION, fabrics=())

    def world(self) -> World:
        """All objects, as observed."""
        lives = [live(body) for body in self.objects.values()]
        references = [live for live in lives if live.id.kind in REFERENCES]
        children = [live for live in lives if live.id.kind not in NOT_CHILDREN and live.labels.get(labels.MANAGED_BY) in MANAGERS]
        roots = [live for live in lives if live.id.kind in ROOTS]
        self.previous = world.assemble(
            BLUEPRINTS,
            roots,
            [live for live in children if live.id.kind not in ROOTS],
            {},
            self.previous,
            references=references,
            unserved=self.unserved,
        )
        return self.previous

    def plans_of(self, observed: World, memo: Memo | None = None) -> tuple[Plan, ...]:
        """The plans of a pass that has observed this world. A root that does not exist yet is created alone."""
        memo = memo or Memo()
        composed = compose(observed, BLUEPRINTS, self.configuration, memo)
        return tuple(_creation_first(plan) for plan in super().plans_of(composed, memo))

    def call(self, operation: Operation) -> None:
        """Make one call; scaling changes `spec.replicas`."""
        operation = as_patch(operation)
        if operation.verb is Verb.PATCH and operation.expect.revision != self.objects[operation.id]["metadata"]["resourceVersion"]:
            return  # Another root has written the object in this pass: the call is refused.
        super().call(operation)

    def live(self) -> None:
        """The same, and workloads of others become ready; what is being deleted or has lost its owner goes."""
        super().live()
        for id, body in list(self.objects.items()):
            if id.kind in (kinds.LEADER_WORKER_SET.name, kinds.DEPLOYMENT.name):
                count = body["spec"].get("replicas", 1)
                counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), count)
                conditions = [{"type": "Available", "status": "True"}]
                status = {**counts, "conditions": conditions, "observedGeneration": body["metadata"]["generation"]}
                if body.get("status") != status:
                    self.write(id, {"status": status})
        self._collect_garbage()

    def _collect_garbage(self) -> None:
        uids = {body["metadata"]["uid"] for body in self.objects.values()}
        for id, body in list(self.objects.items()):
            owners = [owner["uid"] for owner in body["metadata"].get("ownerReferences", ())]
            if owners and uids.isdisjoint(owners) and id in self.objects and not body["metadata"].get("deletionTimestamp"):
                self.delete(id)

    def graph(self, manifest: Body) -> None:
        """Create the graph or change it, as a user would."""
        id = kinds.DYNAMO_GRAPH.id("default", "chat")
        if id not in self.objects:
            self.put(manifest)
            return
        self.write(id, {"spec": {"services": dict.fromkeys(self.objects[id]["spec"]["services"])}})
        annotations = {"engine.grove.io/allow-replace": "true", **manifest["metadata"].get("annotations", {})}
        generation = self.objects[id]["metadata"]["generation"] + 1
        self.write(id, {"spec": manifest["spec"], "metadata": {"annotations": annotations, "generation": generation}})


def _creation_first(plan: Plan) -> Plan:
    creation = tuple(operation for operation in plan.operations if operation.verb is Verb.CREATE and operation.id == plan.root)
    return replace(plan, operations=creation) if creation else plan


def names(toy: Toy, *of: str) -> set[str]:
    """The names of all objects of these kinds."""
    return {id.name for id in toy.objects if id.kind in of}


def reasons(plans: Iterable[Plan]) -> list[str]:
    """Every reason in the plans."""
    of_operations = [operation.why for plan in plans for operation in plan.operations]
    return [*of_operations, *(wait.why for plan in plans for wait in (*plan.deferred, *plan.pending))]
