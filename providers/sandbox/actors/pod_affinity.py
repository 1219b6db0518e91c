"""PodAffinity: which nodes are left to a pod, and which it prefers, because of the pods that are already placed.

Required and preferred terms with a label selector and a topology key are honoured; anti-affinity is not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from providers.sandbox.actors.body import Body, is_finished, key_of, labels_of, uid_of
from providers.sandbox.actors.pod_requirements import matches_expressions
from providers.sandbox.actors.store import Store

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_NEAR: Final = "node(s) didn't match pod affinity rules"


class Nodes(Protocol):
    """Where pods are placed."""

    def node_of(self, uid: str) -> str:
        """The node of the pod with that uid; empty if it has none."""
        ...

    def labels_of(self, node: str) -> Mapping[str, str]:
        """The labels of a node."""
        ...


class NodeFilter(Struct, frozen=True):
    """What the affinity of one pod says about nodes, by the pods that are placed now."""

    keys: tuple[str, ...]
    """The topology keys of the required terms."""
    values: tuple[frozenset[str], ...]
    """For each of them the values where the other pods are; not used if `anywhere`."""
    anywhere: bool
    """Whether the pod is the first of its kind: it may run on any node that has the keys."""
    scores: tuple[tuple[str, Mapping[str, int]], ...]
    """For each preferred term its topology key, and the score of each value."""

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels satisfies the required terms."""
        if self.anywhere:
            return all(key in labels for key in self.keys)
        return all(labels.get(key) in values for key, values in zip(self.keys, self.values, strict=True))

    def score(self, labels: Mapping[str, str]) -> int:
        """How much the preferred terms speak for a node with these labels."""
        return sum(score.get(labels.get(key, ""), 0) for key, score in self.scores)


class PodAffinity(Struct, frozen=True, eq=False):
    """The affinity of one pod to others, with the pods that its terms select, wherever they are."""

    keys: tuple[str, ...]
    """The topology keys of the required terms."""
    others: frozenset[str]
    """The uids of the pods that match all required terms."""
    matches_itself: bool
    """Whether the pod matches all of its required terms."""
    preferred: tuple[tuple[str, int, frozenset[str]], ...]
    """For each preferred term its topology key, its weight, and the uids of the pods that match it."""

    def among(self, nodes: Nodes) -> NodeFilter:
        """What it says about nodes now."""
        placed = {node for uid in self.others if (node := nodes.node_of(uid))}
        values = tuple(frozenset(_values(nodes, placed, key)) for key in self.keys)
        scores = tuple((key, self._score(nodes, key, weight, uids)) for key, weight, uids in self.preferred)
        return NodeFilter(self.keys, values, self.matches_itself and not any(values), scores)

    def _score(self, nodes: Nodes, key: str, weight: int, uids: Iterable[str]) -> Mapping[str, int]:
        placed = (node for uid in uids if (node := nodes.node_of(uid)))
        return {value: count * weight for value, count in Counter(_values(nodes, placed, key)).items()}

    @property
    def topology_keys(self) -> frozenset[str]:
        """The topology keys of all terms."""
        return frozenset((*self.keys, *(key for key, _, _ in self.preferred)))


def affinity_of(pod: Body, pods: Store) -> PodAffinity | None:
    """The affinity of a pod to others, of which `pods` are all; None if it has none."""
    terms = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    required, preferred = terms.get(REQUIRED) or (), terms.get(PREFERRED) or ()
    if not required and not preferred:
        return None
    others = [other for other in pods.objects.values() if not is_finished(other) and uid_of(other) != uid_of(pod)]
    return PodAffinity(
        tuple(_key(term) for term in required),
        frozenset(uid_of(other) for other in others if required and all(_matches(term, pod, other) for term in required)),
        all(_matches(term, pod, pod) for term in required),
        tuple(
            (_key(term), item.get("weight") or 0, frozenset(uid_of(other) for other in others if _matches(term, pod, other)))
            for item in preferred
            if (term := item.get("podAffinityTerm"))
        ),
    )


def _key(term: Mapping[str, Any]) -> str:
    return str(term.get("topologyKey") or "")


def _matches(term: Mapping[str, Any], pod: Body, other: Body) -> bool:
    """Whether a term of a pod selects another pod. A term without a selector selects nothing; without namespaces, that of the pod."""
    selector = term.get("labelSelector")
    if selector is None or key_of(other)[0] not in (term.get("namespaces") or (key_of(pod)[0],)):
        return False
    labels = labels_of(other)
    return (selector.get("matchLabels") or {}).items() <= labels.items() and matches_expressions(selector, labels)


def _values(nodes: Nodes, names: Iterable[str], key: str) -> Iterable[str]:
    return (value for name in names if (value := nodes.labels_of(name).get(key)))
