"""Umpire: watches every pod and clique that we delete, against what we had seen, and notes what breaks the rules of an update."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.errors import ClusterError
from resources.base import kinds
from tests.stories.pods import Pod, clique_of, images, is_leaving, is_ready, label, unit_of
from tests.stories.process import Call, Process
from tests.stories.stage import Stage

REPLICA = "podcliqueset-replica-index"
Objects = Mapping[str, dict[str, Any]]


class Umpire:
    """One who watches a process of ours."""

    def __init__(self, cluster: Stage, ours: Process, on_take: Callable[[], None] = lambda: None) -> None:
        self._cluster, self._ours, self._on_take = cluster, ours, on_take
        self._pods: Objects = {}
        self._cliques: Objects = {}
        self._groups: Objects = {}
        self._fresh = True
        """Whether nothing has been taken since the last look."""
        self.takes: list[str] = []
        """The healthy units that were taken, in order."""
        self.fouls: list[str] = []
        ours.refuses, ours.on_look = self._watch, self._look

    def _look(self) -> None:
        there = self._cluster.there
        self._pods, self._cliques, self._groups, self._fresh = there(kinds.POD), there(kinds.PODCLIQUE), there(kinds.SCALING_GROUP), True

    def _watch(self, call: Call) -> ClusterError | None:
        verb, kind, name = call
        if (verb, kind) == ("delete", kinds.POD):
            there = self._pods.get(name)
            if there is not None and there["metadata"]["uid"] == self._ours.uid:  # Of any other incarnation, nothing is taken.
                self._judge(there)
        elif (verb, kind) == ("delete", kinds.PODCLIQUE) and any(map(is_ready, self._of(name, self._cluster.there(kinds.POD)))):
            self.fouls.append(f"{name} is deleted from under its pods")
        return None

    def _judge(self, pod: Pod) -> None:
        """A pod goes. What does not serve may go; of what does, one unit, if no other is away: so minima are kept that can be."""
        unit, away = unit_of(pod), self.away(label(pod, REPLICA))
        healthy = unit not in away if label(pod, "podcliquescalinggroup") else is_ready(pod)
        if not healthy or (not self._fresh and unit == self.takes[-1]):
            return
        if away:
            self.fouls.append(f"{unit} is taken while {sorted(away)} are away")
        if not self._fresh:
            self.fouls.append(f"{unit} is taken together with {self.takes[-1]}")
        self._fresh = False
        self.takes.append(unit)
        self._on_take()

    def away(self, replica: str) -> set[str]:
        """The units that did not serve when we looked: replicas of groups without their minimum, and cliques that lack pods.

        Where an old pod has failed by itself in another replica of the set, that one has its turn later.
        """
        found = set()
        for name, body in self._cliques.items():
            if self._lacks(name, body, lenient=label(body, REPLICA) != replica):
                found.add(unit_of(body) if _in_group(body) else name)
        for name, body in self._groups.items():
            for index in range(body["spec"]["replicas"]):
                if any(f"{name}-{index}-{member}" not in self._cliques for member in body["spec"]["cliqueNames"]):
                    found.add(f"{name}/{index}")
        return found

    def _lacks(self, name: str, body: Mapping[str, Any], *, lenient: bool) -> bool:
        fine = sum(is_ready(pod) or (lenient and self._is_old(pod)) for pod in self._of(name, self._pods))
        return fine < int(body["spec"]["minAvailable" if _in_group(body) else "replicas"])

    def _is_old(self, pod: Pod) -> bool:
        """Whether a pod that is there, and stays, is not what the set asks for today."""
        (root,) = self._cluster.there(kinds.PODCLIQUESET).values()
        asked = {clique["spec"]["podSpec"]["containers"][0]["image"] for clique in root["spec"]["template"]["cliques"]}
        return not is_leaving(pod) and pod["status"]["phase"] != "Failed" and images([pod]).isdisjoint(asked)

    def _of(self, clique: str, pods: Objects) -> Iterable[Pod]:
        return (pod for pod in pods.values() if clique_of(pod) == clique)


def _in_group(body: Mapping[str, Any]) -> bool:
    return bool(label(body, "podcliquescalinggroup"))
