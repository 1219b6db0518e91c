"""Workloads: the five sets of PodCliqueSets that are measured, as an API server with admission stores them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

NAMESPACE: Final = "default"
OLD_IMAGE: Final = "registry.test/app:1"
NEW_IMAGE: Final = "registry.test/app:2"
"""The image that a rolling update changes to."""

PODS_OF_A_NODE: Final = 100
"""How many pods a node gets on average at most; it takes 110."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Some PodCliqueSets that are alike."""

    name: str
    title: str
    sets: int
    replicas: int
    pods: int
    """Of the clique of each replica."""
    min_available: int
    has_groups: bool = False
    """Whether each replica also has the scaling groups `GROUPS`, started in order."""

    @property
    def pod_count(self) -> int:
        """How many pods it has once it is up."""
        return self.expected()["pods"]

    @property
    def nodes(self) -> int:
        """How many nodes it needs, at least 30."""
        return max(30, -(-max(self.pod_count, 1000) // PODS_OF_A_NODE))

    def expected(self, replicas: int | None = None) -> Counter[str]:
        """Resource -> how many of it there are when everything is up. `replicas`: of each set, if another number than at first."""
        count = self.sets * (self.replicas if replicas is None else replicas)
        expected = Counter(podcliques=count, podcliquescalinggroups=0, podgangs=count, pods=count * self.pods)
        for group in GROUPS if self.has_groups else ():
            expected["podcliquescalinggroups"] += count
            expected["podcliques"] += count * group.replicas * 2
            expected["podgangs"] += count * (group.replicas - group.min_available)
            expected["pods"] += count * group.replicas * (1 + group.workers)
        return expected

    def manifests(self) -> list[dict[str, Any]]:
        """The sets, with all defaults."""
        return [self._manifest(f"{self.name}-{number:03d}") for number in range(self.sets)]

    def _manifest(self, name: str) -> dict[str, Any]:
        template: dict[str, Any] = {
            "cliques": [clique("front" if self.has_groups else "worker", self.pods, self.min_available)],
            "cliqueStartupType": "CliqueStartupTypeInOrder" if self.has_groups else "CliqueStartupTypeAnyOrder",
            "terminationDelay": "4h0m0s",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
        }
        if self.has_groups:
            template["cliques"] += [each for group in GROUPS for each in group.cliques()]
            template["podCliqueScalingGroups"] = [group.config() for group in GROUPS]
        return {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"bench": self.name}},
            "spec": {"replicas": self.replicas, "template": template},
        }


@dataclass(frozen=True, slots=True)
class Group:
    """A scaling group of one leader and some workers."""

    name: str
    letter: str
    """That the names of its cliques begin with."""
    replicas: int
    min_available: int
    workers: int

    def cliques(self) -> list[dict[str, Any]]:
        """The templates of its cliques."""
        return [clique(f"{self.letter}l", 1, 1), clique(f"{self.letter}w", self.workers, self.workers)]

    def config(self) -> dict[str, Any]:
        """Its entry in the template of the set."""
        names = [each["name"] for each in self.cliques()]
        return {"name": self.name, "cliqueNames": names, "replicas": self.replicas, "minAvailable": self.min_available}


def clique(name: str, pods: int, min_available: int) -> dict[str, Any]:
    """The template of a clique, whose pods need almost nothing."""
    pod_spec = {
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": "bench.test/fake-node", "operator": "Exists"}],
        "containers": [{"name": "main", "image": OLD_IMAGE, "resources": {"requests": {"memory": "1Mi"}}}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
    }
    return {"name": name, "spec": {"roleName": name, "replicas": pods, "minAvailable": min_available, "podSpec": pod_spec}}


def changed(workload: Workload, changes: Mapping[str, int]) -> Workload:
    """The workload with other sizes, e.g. `{"replicas": 50}`. Raises `TypeError` for a field that it does not have."""
    return replace(workload, **changes)  # type: ignore[arg-type]


GROUPS: Final = (Group("pre", "p", 3, 1, 2), Group("dec", "d", 4, 2, 3))
WORKLOADS: Final[Mapping[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload("b1", "one set of 500 replicas × 2 pods", 1, 500, 2, 2),
        Workload("b2", "one set that is scaled", 1, 250, 2, 2),
        Workload("b3", "50 sets with scaling groups, 2,700 pods", 50, 2, 2, 2, has_groups=True),
        Workload("b4", "rolling update of 1,000 pods in 10 sets", 10, 10, 10, 8),
        Workload("b5", "100 sets, 5,000 pods", 100, 25, 2, 2),
    )
}
