"""Objects: what a workload consists of, as plain manifests for a client that does not think."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.workloads import Workload
from benchmarks.plan import CONFIGURATION, MOMENT, NOW, observed
from engine import world
from engine.guard import Limits
from engine.ids import Kind
from engine.memo import Memo
from engine.operation import Create
from engine.tick import plan_all
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.base import kinds, labels
from resources.ports.configuration import Configuration, GangMode
from resources.registry import BLUEPRINTS

WITH_GANGS = Configuration({KUBE: kube_scheduler(GangMode.AUTO)}, KUBE)
KIND_OF = {(kind.group, kind.name): kind for kind in kinds.KINDS}


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """One object to create."""

    set: str
    replica: int
    """The index of its replica; -1: it belongs to the set as a whole."""
    kind: Kind
    body: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.body["metadata"]["name"])

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod, which is created after the others of its replica."""
        return self.kind is kinds.POD


def objects(workload: Workload, replicas: int, *, gangs: bool = False) -> list[PlannedObject]:
    """Everything that the engine creates for the workload with so many replicas of each set; without owners, finalizers and gates.

    `gangs`: with the PodGroups of kube-scheduler.
    """
    configuration = WITH_GANGS if gangs else CONFIGURATION
    roots = [observed(_stored(manifest, replicas)) for manifest in workload.manifests()]
    planned = plan_all(BLUEPRINTS, world.assemble(BLUEPRINTS, roots, (), {}), NOW, configuration, Memo(), Limits())
    return [each for plan in planned.plans for each in _created(plan.root.name, plan.operations)]


def _stored(manifest: dict[str, Any], replicas: int) -> dict[str, Any]:
    """The set as if it were stored. In any order: with an order the pods of later cliques are not in the first plan."""
    metadata = {
        **manifest["metadata"],
        "uid": f"uid-{manifest['metadata']['name']}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": MOMENT,
        "finalizers": ["grove.io/podcliqueset.grove.io"],
    }
    template = {**manifest["spec"]["template"], "cliqueStartupType": "CliqueStartupTypeAnyOrder"}
    return {**manifest, "metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def _created(set: str, operations: Any) -> Iterator[PlannedObject]:
    for operation in operations:
        if isinstance(operation, Create):
            kind = KIND_OF[operation.id.group, operation.id.kind]
            yield PlannedObject(set, _replica(set, operation.manifest["metadata"]), kind, _plain(operation.manifest))


def _replica(set: str, metadata: dict[str, Any]) -> int:
    """The replica of an object: by its label, and of a gang, which has none, by its name."""
    index = metadata["labels"].get(labels.REPLICA_INDEX)
    if index is None:
        index = metadata["name"].removeprefix(f"{set}-").split("-")[0]
    return int(index) if index.isdecimal() else -1


def _plain(body: Any) -> dict[str, Any]:
    metadata = {key: value for key, value in body["metadata"].items() if key != "finalizers"}
    plain = {**body, "metadata": metadata}
    if body["kind"] == "Pod":
        plain["spec"] = {key: value for key, value in body["spec"].items() if key != "schedulingGates"}
    return plain
