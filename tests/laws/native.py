"""A toy cluster whose kube-scheduler places pods by their PodGroups: all of a gang's minimum, or none of it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from engine.ids import ResourceId
from engine.observed import Unlisted
from engine.paths import get
from engine.plan import Plan
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.base.labels import GROUP_PROTECTION
from resources.ports.configuration import Configuration, GangMode
from tests.laws.toy import Body, Toy, running

ROOT: Final = kinds.PODCLIQUESET.id("default", "web")
NATIVE: Final = Configuration({"default-scheduler": kube_scheduler(GangMode.AUTO)}, "default-scheduler")
HIERARCHIES: Final = frozenset({kinds.WORKLOAD.key, kinds.COMPOSITE_POD_GROUP.key})
"""What a cluster with the beta alone does not serve."""
NOT_LISTED: Final = {kinds.POD_GROUP.key: Unlisted("forbidden")}


class Native(Toy):
    """A cluster with `room` for pods, each of which takes the same."""

    configuration = NATIVE
    room = 1_000
    answers = True
    """Whether the scheduler has the feature gate."""

    def __init__(self, *, trees: bool = False) -> None:
        super().__init__()
        if not trees:
            self.unserved = HIERARCHIES

    def plan(self) -> Plan:
        """The plan of the set."""
        (plan,) = [plan for plan in self.plans() if plan.root == ROOT]
        return plan

    def make_pass(self) -> Plan:
        """Apply the plan of the set and let the cluster act on it."""
        plan = self.plan()
        self.apply(plan.operations)
        self.live()
        return plan

    def of(self, kind: str) -> dict[str, Body]:
        """The objects of a kind by name."""
        return {id.name: body for id, body in sorted(self.objects.items()) if id.kind == kind}

    def minimums(self) -> dict[str, int]:
        """PodGroup -> its `minCount`."""
        return {name: body["spec"]["schedulingPolicy"]["gang"]["minCount"] for name, body in self.of("PodGroup").items()}

    def members(self) -> Counter[str]:
        """PodGroup -> how many pods carry it; the empty name is that of pods without a group."""
        return Counter(group_of(body) for body in self.of("Pod").values())

    def bound(self) -> Counter[str]:
        """PodClique -> how many of its pods are on a node."""
        return Counter(body["metadata"]["labels"]["grove.io/podclique"] for body in self.of("Pod").values() if node_of(body))

    def lose(self, *names: str) -> None:
        """Remove these pods at once, as if their node were gone."""
        for name in names:
            del self.objects[kinds.POD.id("default", name)]

    def pods_of(self, clique: str) -> list[str]:
        """The names of the pods of a clique, by index."""
        pods = [body["metadata"] for body in self.of("Pod").values() if body["metadata"]["labels"]["grove.io/podclique"] == clique]
        return [meta["name"] for meta in sorted(pods, key=lambda meta: int(meta["labels"]["grove.io/podclique-pod-index"]))]

    def put(self, body: Any) -> Body:
        """A PodGroup gets the finalizer of the server."""
        stored = super().put(body)
        if body["kind"] == "PodGroup":
            id = kinds.POD_GROUP.id("default", body["metadata"]["name"])
            self.write(id, {"metadata": {"finalizers": [GROUP_PROTECTION]}})
        return stored

    def live(self) -> None:
        """As in every toy, but pods are bound by group, and PodGroups that are being deleted go with their last pod."""
        waiting = {id: self.objects[id] for id in self.pods() if not node_of(self.objects[id])}
        admitted = set(self._admitted(waiting))
        kept = {id: body for id, body in waiting.items() if id not in admitted and not body["metadata"].get("deletionTimestamp")}
        for id in kept:
            del self.objects[id]
        super().live()
        self.objects |= kept
        for name, group in self.of("PodGroup").items():
            if group["metadata"].get("deletionTimestamp") and not self.members()[name]:
                self.write(kinds.POD_GROUP.id("default", name), {"metadata": {"finalizers": []}})

    def _admitted(self, waiting: dict[ResourceId, Body]) -> Iterator[ResourceId]:
        """The pods that get a node now: groups whole or not at all, then pods without a group; gated pods do not count."""
        free = self.room - sum(bool(node_of(body)) for body in self.of("Pod").values())
        ready = {id: body for id, body in waiting.items() if not body["spec"].get("schedulingGates")}
        groups = self.of("PodGroup") if self.answers else {}
        for name, group in groups.items():
            members = [id for id, body in ready.items() if group_of(body) == name]
            running_now = sum(group_of(body) == name and bool(node_of(body)) for body in self.of("Pod").values())
            fit = members[:free]
            if fit and running_now + len(fit) >= group["spec"]["schedulingPolicy"]["gang"]["minCount"]:
                free -= len(fit)
                self._answer(name, "True", "Scheduled")
                yield from fit
            elif members and _said(group) != "True":
                self._answer(name, "False", "Unschedulable")
        alone = [id for id, body in ready.items() if not self.answers or not group_of(body)]
        yield from alone[:free]

    def _answer(self, name: str, status: str, reason: str) -> None:
        condition = {"type": "PodGroupInitiallyScheduled", "status": status, "reason": reason, "message": "minCount cannot be satisfied"}
        id = kinds.POD_GROUP.id("default", name)
        if _said(self.objects[id]) not in ("True", status):
            self.write(id, {"status": {"conditions": [condition]}})


def _said(group: Body) -> str:
    """The status of the scheduler's condition; empty without one."""
    return str((get(group, ("status", "conditions")) or [{}])[0].get("status", ""))


def group_of(pod: Body) -> str:
    """The PodGroup of a pod; empty if it has none."""
    return str(get(pod, ("spec", "schedulingGroup", "podGroupName")) or "")


def node_of(pod: Body) -> str:
    """The node of a pod; empty if it has none."""
    return str(get(pod, ("spec", "nodeName")) or "")


__all__ = ["HIERARCHIES", "NATIVE", "NOT_LISTED", "ROOT", "Native", "group_of", "node_of", "running"]
