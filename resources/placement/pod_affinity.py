"""PodAffinity: which nodes are left to a pod, and which it prefers, because of the pods that are already placed.

Honoured are affinity (required and preferred), required anti-affinity, and spread constraints that forbid. Of anti-affinity only what
the pod itself says is; a term with a selector of namespaces selects those of all namespaces if the selector is empty, else nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from engine.resource import Body
from resources.base.added_to_pods import REQUIRED
from resources.base.fields import mapping, mappings
from resources.placement.node_fit import PodRequirements, is_selected, matches_expressions, texts

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_NEAR: Final = "node(s) didn't match pod affinity rules"
TOO_NEAR: Final = "node(s) didn't match pod anti-affinity rules"
NOT_SPREAD: Final = "node(s) didn't match pod topology spread constraints"
ENDED: Final = ("Succeeded", "Failed")


class Nodes(Protocol):
    """Where pods are placed."""

    def node_of(self, uid: str) -> str:
        """The node of the pod with that uid; empty if it has none."""
        ...

    def labels_of(self, node: str) -> Mapping[str, str]:
        """The labels of a node."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all nodes."""
        ...


class SpreadLimit(Struct, frozen=True):
    """What one spread constraint says about nodes."""

    key: str
    counts: Mapping[str, int]
    """Value of the label -> the pods that are there. Values of nodes that do not count are absent."""
    most: int
    """The number of pods that may be at one value before the pod itself is."""

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels may have the pod."""
        return self.key in labels and self.counts.get(labels[self.key], 0) <= self.most


class NodeFilter(Struct, frozen=True):
    """What the affinity of one pod says about nodes, by the pods that are placed now."""

    keys: tuple[str, ...]
    """The topology keys of the required terms."""
    values: tuple[frozenset[str], ...]
    """For each of them the values where the other pods are; not used if `anywhere`."""
    anywhere: bool
    """Whether the pod is the first of its kind: it may run on any node that has the keys."""
    avoided: tuple[tuple[str, frozenset[str]], ...]
    """For each term of its anti-affinity the topology key, and the values where the other pods are."""
    spread: tuple[SpreadLimit, ...]
    scores: tuple[tuple[str, Mapping[str, int]], ...]
    """For each preferred term its topology key, and the score of each value."""

    def refusal(self, labels: Mapping[str, str]) -> str:
        """Why a node with these labels must not have the pod, in kube-scheduler's words; empty if it may."""
        if not all(limit.allows(labels) for limit in self.spread):
            return NOT_SPREAD
        if any(labels.get(key) in values for key, values in self.avoided):
            return TOO_NEAR
        if self.anywhere:
            is_near = all(key in labels for key in self.keys)
        else:
            is_near = all(labels.get(key) in values for key, values in zip(self.keys, self.values, strict=True))
        return "" if is_near else NOT_NEAR

    def score(self, labels: Mapping[str, str]) -> int:
        """How much the preferred terms speak for a node with these labels."""
        return sum(score.get(labels.get(key, ""), 0) for key, score in self.scores)


class Spread(Struct, frozen=True):
    """A constraint that forbids a pod to be where too many others are."""

    key: str
    max_skew: int
    min_domains: int
    others: frozenset[str]
    """The uids of the pods that it counts."""
    counts_itself: bool


class PodAffinity(Struct, frozen=True, eq=False):
    """The affinity of one pod to others, with the pods that its terms select, wherever they are."""

    keys: tuple[str, ...]
    """The topology keys of the required terms."""
    others: frozenset[str]
    """The uids of the pods that match all required terms."""
    matches_itself: bool
    """Whether the pod matches all of its required terms."""
    avoided: tuple[tuple[str, frozenset[str]], ...]
    """For each term of its anti-affinity its topology key, and the uids of the pods that match it."""
    spread: tuple[Spread, ...]
    preferred: tuple[tuple[str, int, frozenset[str]], ...]
    """For each preferred term its topology key, its weight, and the uids of the pods that match it."""

    def among(self, nodes: Nodes, requirements: PodRequirements) -> NodeFilter:
        """What it says about nodes now, for a pod that requires this of a node."""
        placed = {node for uid in self.others if (node := nodes.node_of(uid))}
        values = tuple(frozenset(_values(nodes, placed, key)) for key in self.keys)
        avoided = tuple((key, frozenset(_values(nodes, map(nodes.node_of, uids), key))) for key, uids in self.avoided)
        scores = tuple((key, self._score(nodes, key, weight, uids)) for key, weight, uids in self.preferred)
        spread = tuple(_limit(each, nodes, requirements) for each in self.spread)
        return NodeFilter(self.keys, values, self.matches_itself and not any(values), avoided, spread, scores)

    def _score(self, nodes: Nodes, key: str, weight: int, uids: Iterable[str]) -> Mapping[str, int]:
        placed = (node for uid in uids if (node := nodes.node_of(uid)))
        return {value: count * weight for value, count in Counter(_values(nodes, placed, key)).items()}

    @property
    def topology_keys(self) -> frozenset[str]:
        """The topology keys of the terms by which pods are near one another."""
        return frozenset((*self.keys, *(key for key, _, _ in self.preferred)))


def _limit(spread: Spread, nodes: Nodes, requirements: PodRequirements) -> SpreadLimit:
    """The limit of a constraint now: so many pods more than at the value that has the fewest."""
    eligible = [
        labels for name in nodes.names() if is_selected(requirements, name, labels := nodes.labels_of(name)) and spread.key in labels
    ]
    counts = Counter(dict.fromkeys((labels[spread.key] for labels in eligible), 0))
    for value in _values(nodes, map(nodes.node_of, spread.others), spread.key):
        if value in counts:
            counts[value] += 1
    fewest = 0 if len(counts) < spread.min_domains else min(counts.values(), default=0)
    return SpreadLimit(spread.key, counts, fewest + spread.max_skew - spread.counts_itself)


def affinity_of(pod: Body, pods: Iterable[Body]) -> PodAffinity | None:
    """The affinity of a pod to others, of which `pods` are all; None if it has none."""
    spec = mapping(pod.get("spec"))
    required, preferred = affinity_terms(spec), mappings(mapping(mapping(spec.get("affinity")).get("podAffinity")).get(PREFERRED))
    avoided, spread = anti_affinity_terms(spec), spread_constraints(spec)
    if not (required or preferred or avoided or spread):
        return None
    others = [other for other in pods if mapping(other.get("status")).get("phase") not in ENDED and _uid(other) != _uid(pod)]
    return PodAffinity(
        tuple(topology_key(term) for term in required),
        frozenset(_uid(other) for other in others if required and all(selects(term, pod, other) for term in required)),
        all(selects(term, pod, pod) for term in required),
        tuple((topology_key(term), frozenset(_uid(other) for other in others if selects(term, pod, other))) for term in avoided),
        tuple(_spread(constraint, pod, others) for constraint in spread),
        tuple(
            (topology_key(term), item.get("weight") or 0, frozenset(_uid(other) for other in others if selects(term, pod, other)))
            for item in preferred
            if (term := item.get("podAffinityTerm"))
        ),
    )


def affinity_terms(spec: Mapping[str, Any]) -> list[Body]:
    """The required terms of the affinity of a pod with this spec to other pods."""
    return mappings(mapping(mapping(spec.get("affinity")).get("podAffinity")).get(REQUIRED))


def anti_affinity_terms(spec: Mapping[str, Any]) -> list[Body]:
    """The required terms of its anti-affinity."""
    return mappings(mapping(mapping(spec.get("affinity")).get("podAntiAffinity")).get(REQUIRED))


def spread_constraints(spec: Mapping[str, Any]) -> list[Body]:
    """Its spread constraints that forbid nodes; those that only prefer others are not included."""
    return [each for each in mappings(spec.get("topologySpreadConstraints")) if each.get("whenUnsatisfiable") == "DoNotSchedule"]


def topology_key(term: Mapping[str, Any]) -> str:
    """The label of nodes whose value says which nodes are near one another."""
    return str(term.get("topologyKey") or "")


def selects(term: Mapping[str, Any], pod: Body, other: Body) -> bool:
    """Whether a term of a pod selects another pod. A term without a selector selects nothing; without namespaces, that of the pod."""
    selector, namespaces = term.get("labelSelector"), term.get("namespaceSelector")
    if not isinstance(selector, Mapping) or not isinstance(namespaces, Mapping | None):
        return False
    named = texts(term.get("namespaces")) or (() if namespaces is not None else (pod["metadata"].get("namespace", ""),))
    is_everywhere = namespaces is not None and not namespaces
    if not is_everywhere and other["metadata"].get("namespace", "") not in named:
        return False
    labels = mapping(other["metadata"].get("labels"))
    return _has_labels(selector, labels) and _agrees(term, pod, labels)


def _has_labels(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return mapping(selector.get("matchLabels")).items() <= labels.items() and matches_expressions(selector, labels)


def _agrees(term: Mapping[str, Any], pod: Body, labels: Mapping[str, str]) -> bool:
    """Whether another pod has the pod's values of `matchLabelKeys`, and none of its values of `mismatchLabelKeys`."""
    own = mapping(pod["metadata"].get("labels"))
    alike = [key for key in texts(term.get("matchLabelKeys")) if key in own]
    unlike = [key for key in texts(term.get("mismatchLabelKeys")) if key in own]
    return all(labels.get(key) == own[key] for key in alike) and all(labels.get(key) != own[key] for key in unlike)


def _spread(constraint: Mapping[str, Any], pod: Body, others: Iterable[Body]) -> Spread:
    """A constraint with the pods of the namespace that it counts."""
    selector, namespace = mapping(constraint.get("labelSelector")), pod["metadata"].get("namespace", "")
    is_empty = constraint.get("labelSelector") is None

    def counts(other: Body) -> bool:
        labels = mapping(other["metadata"].get("labels"))
        is_near = other["metadata"].get("namespace", "") == namespace
        return is_near and not is_empty and _has_labels(selector, labels) and _agrees(constraint, pod, labels)

    return Spread(
        topology_key(constraint),
        constraint.get("maxSkew") or 1,
        constraint.get("minDomains") or 1,
        frozenset(_uid(other) for other in others if counts(other) and other["metadata"].get("deletionTimestamp") is None),
        counts(pod),
    )


def _uid(pod: Body) -> str:
    return str(pod["metadata"].get("uid", ""))


def _values(nodes: Nodes, names: Iterable[str], key: str) -> Iterable[str]:
    return (value for name in names if (value := nodes.labels_of(name).get(key)))
