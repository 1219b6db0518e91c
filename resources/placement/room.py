"""Room: whether the pods that are to be placed can have nodes. It proves that they cannot; it never proves that they can.

A refusal is true for every scheduler that keeps to what pods require. It is found by counting, in time that does not depend on the number
of pods: each kind of pods by the number of its copies that the nodes have room for, kinds together by the sums of what they request.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import gcd
from typing import Final

from msgspec import Struct

from engine.resource import Body
from resources.base.added_to_pods import HOSTNAME
from resources.base.fields import mapping
from resources.placement.cluster_room import CRITICAL, ClusterRoom, LabelledPods, LeavingPod, NodeUsage, RoomNode, usage_of
from resources.placement.node_fit import capacity_for, mismatch
from resources.placement.pod_affinity import selects
from resources.placement.pod_demand import DEFAULT_SCHEDULER, SLOT, BesideTerm, PodDemand, TogetherTerm

UNKNOWN_PRIORITY: Final = min(CRITICAL.values())
"""A pod whose priority is not known may have any below this one."""
PLENTY: Final = 10**9
"""More copies of a pod than any node has."""

Demands = Mapping[PodDemand, int]
"""What is to be placed -> of how many pods."""


class RoomRefusal(Struct, frozen=True, eq=False):
    """Why pods cannot all be placed."""

    demands: tuple[PodDemand, ...]
    """Those that cannot be placed together; often one."""
    wanted: int
    """How many pods of them are to be placed."""
    fit: int
    """The number of them that fit at most. For `resource`, and in what follows, thousandths of it."""
    nodes: tuple[RoomNode, ...]
    """The nodes that suit them, however much room these have."""
    resource: str = ""
    """The resource of which all of them together request more than is free; empty: the pods themselves are counted."""
    label: str = ""
    """The label of nodes: no two pods may be at one value of it, or (`together`) all must be at one, or be where others are (`beside`)."""
    together: bool = False
    beside: BesideTerm | None = None
    """The term that selects those others."""


class PlacedPods(Struct, eq=False):
    """A node, and what is used of it now."""

    node: RoomNode
    capacity: dict[str, int]
    others: tuple[NodeUsage, ...]
    used: Counter[str]
    """By others, and by pods that `Room.hold` was told of."""
    held: dict[str, NodeUsage]
    """Uid -> what that pod uses, of the latter."""

    def used_without(self, priority: int) -> Mapping[str, int]:
        """What is used, without what pods use whose priority is lower."""
        less = Counter(self.used)
        for each in (*self.others, *self.held.values()):
            if each.priority < priority:
                less.subtract(each.requests)
        return less

    def copies(self, demand: PodDemand, used: Mapping[str, int]) -> int:
        """How many pods of this kind it has room for beside what is used."""
        copies = 1 if any(term.key in self.node.labels for term in demand.apart if term.key == HOSTNAME) else PLENTY
        for resource, amount in demand.requests.items():
            if amount > 0:
                copies = min(copies, max(0, capacity_for(resource, self.capacity) - used.get(resource, 0)) // amount)
        return copies


class _Sum:
    """A number that each of some nodes contributes to, and that follows when a node changes."""

    def __init__(self, value_of: Callable[[PlacedPods], int], nodes: Iterable[PlacedPods]) -> None:
        self._value_of = value_of
        self._values = {placed.node.name: value_of(placed) for placed in nodes}
        self.total = sum(self._values.values())

    def update(self, placed: PlacedPods) -> None:
        """A node has changed."""
        name = placed.node.name
        if name in self._values:
            value = self._value_of(placed)
            self.total += value - self._values[name]
            self._values[name] = value


class Room:
    """The nodes with what is used of them now, by pods that stay where they are."""

    def __init__(self, cluster: ClusterRoom) -> None:
        self.cluster = cluster
        self._nodes = {node.name: _with_slots(cluster, node) for node in cluster.nodes}
        self._held: dict[str, tuple[str, Mapping[str, int], Body]] = {}
        """Uid -> the node, the requests, and the pod."""
        self._left: dict[str, tuple[str, Body]] = {}
        """Uid -> the node and the pod, of those that were held and have gone."""
        self._sums: dict[tuple[object, ...], _Sum] = {}
        self._suitable: dict[PodDemand, tuple[PlacedPods, ...]] = {}
        self._names: dict[PodDemand, frozenset[str]] = {}
        self._families: dict[frozenset[PodDemand], tuple[tuple[PodDemand, ...], ...]] = {}
        self._expected: dict[PodDemand, None] = {}
        """What may be placed as well, so that others may be beside it."""
        self._priorities = Counter(each.priority for placed in self._nodes.values() for each in placed.others)
        """The priorities of all pods that are on nodes."""

    def hold(self, uid: str, pod: Body, node: str, requests: Mapping[str, int]) -> None:
        """A pod is on a node and uses this much of it."""
        self._held[uid] = node, requests, pod
        usage = usage_of(pod, requests)
        self._priorities[usage.priority] += 1
        if node in self._nodes:
            self._nodes[node].held[uid] = usage
        self._change(node, requests, 1)

    def release(self, uid: str) -> bool:
        """A pod is gone. Returns whether it was held."""
        if uid not in self._held:
            return False
        node, requests, pod = self._held.pop(uid)
        self._priorities[usage_of(pod, requests).priority] -= 1
        if node in self._nodes:
            del self._nodes[node].held[uid]
        self._left[uid] = node, pod
        self._change(node, requests, -1)
        return True

    def _change(self, node: str, requests: Mapping[str, int], sign: int) -> None:
        placed = self._nodes.get(node)
        if placed is None:
            return
        for resource, amount in requests.items():
            placed.used[resource] += sign * amount
        for each in self._sums.values():
            each.update(placed)

    def occupy_slots(self) -> None:
        """Count the places in domains that others have: those that are taken on nodes where no held pod has one."""
        for fabric, slots in self.cluster.slots.items():
            name = f"{SLOT}{fabric}"
            for node in slots.taken:
                if node in self._nodes and not self._nodes[node].used[name]:
                    self._change(node, {name: 1000}, 1)

    def held(self) -> Iterator[tuple[str, str, Mapping[str, int]]]:
        """The node, the namespace and the requests of each pod that is held."""
        for node, requests, pod in self._held.values():
            yield node, pod["metadata"].get("namespace", ""), requests

    def nodes(self) -> Sequence[PlacedPods]:
        """All nodes."""
        return tuple(self._nodes.values())

    def suitable(self, demand: PodDemand) -> tuple[PlacedPods, ...]:
        """The nodes that pods of this kind may have, however full they are, if nodes recover from what passes by itself."""
        if demand not in self._suitable:
            self._suitable[demand] = tuple(placed for placed in self._nodes.values() if suits(demand, placed.node, recovered=True))
            self._names[demand] = frozenset(placed.node.name for placed in self._suitable[demand])
        return self._suitable[demand]

    def may_preempt(self, demand: PodDemand) -> bool:
        """Whether there are pods that could be preempted for pods of this kind."""
        priority = UNKNOWN_PRIORITY if demand.priority is None else demand.priority
        return demand.preempts and any(count and each < priority for each, count in self._priorities.items())

    def is_certain(self, demand: PodDemand) -> bool:
        """Whether a refusal of pods of this kind is one: neither another scheduler nor preemption decides."""
        return demand.scheduler == DEFAULT_SCHEDULER and not self.may_preempt(demand)

    def expect(self, demand: PodDemand) -> None:
        """Pods of this kind may be placed, whether or not they are among those whose refusal is asked for."""
        self._expected[demand] = None

    def refusal(self, demands: Demands) -> RoomRefusal | None:
        """Why these pods cannot all be placed, beside those that are held; None if that is not known."""
        wanted = {demand: count for demand, count in demands.items() if count}
        return next(self._refusals(wanted), None)

    def refusal_beside(self, pods: Collection[LeavingPod], demands: Demands) -> RoomRefusal | None:
        """The same if these pods, which are not held, were still on their nodes."""
        for pod in pods:
            self.hold(pod.uid, pod.body, pod.node, pod.requests)
        refusal = self.refusal(demands)
        for pod in pods:
            self.release(pod.uid)
            del self._left[pod.uid]
        return refusal

    def refusal_with_preemption(self, demand: PodDemand, count: int) -> RoomRefusal | None:
        """The same of pods of one kind, if all pods with a lower priority were preempted."""
        if (alone := next((each for each in self._not_beside({demand: count}) if not each.fit), None)) is not None:
            return alone
        priority = UNKNOWN_PRIORITY if demand.priority is None else demand.priority
        total = self._total(("preempting", demand), (demand,), lambda placed: placed.copies(demand, placed.used_without(priority)))
        return self._short_of_copies(demand, count, total) if count > total else None

    def _refusals(self, wanted: Demands) -> Iterator[RoomRefusal]:
        for demand, count in wanted.items():
            if count > (total := self._copies(demand)):
                yield self._short_of_copies(demand, count, total)
        yield from self._not_apart(wanted)
        for family in self._families_of(wanted):
            yield from self._short_together(family, wanted)
        yield from self._not_together(wanted)
        yield from self._not_beside(wanted)

    def _copies(self, demand: PodDemand) -> int:
        return self._total(("copies", demand), (demand,), lambda placed: placed.copies(demand, placed.used))

    def _total(self, key: tuple[object, ...], demands: Iterable[PodDemand], value_of: Callable[[PlacedPods], int]) -> int:
        """The sum over the nodes that suit one of the demands; computed once for each key."""
        if key not in self._sums:
            self._sums[key] = _Sum(value_of, self._of_any(demands))
        return self._sums[key].total

    def _short_of_copies(self, demand: PodDemand, count: int, fit: int) -> RoomRefusal:
        return RoomRefusal((demand,), count, fit, _listed(self.suitable(demand)))

    def _not_apart(self, wanted: Demands) -> Iterator[RoomRefusal]:
        """Pods that exclude one another, more than there are values of the label."""
        groups: dict[tuple[str, str], list[PodDemand]] = {}
        for demand in wanted:
            for term in demand.apart:
                groups.setdefault((term.key, term.group), []).append(demand)
        for (key, _), members in groups.items():
            nodes = self._of_any(members)
            values = {placed.node.labels.get(key) for placed in nodes}
            count = sum(wanted[demand] for demand in members)
            if None not in values and count > len(values):
                yield RoomRefusal(tuple(members), count, len(values), _listed(nodes), label=key)

    def _families_of(self, wanted: Demands) -> tuple[tuple[PodDemand, ...], ...]:
        """The demands, of several each, that have no other nodes than those of one of them, or of all."""
        demands = frozenset(wanted)
        if demands not in self._families:
            for demand in wanted:
                self.suitable(demand)
            names = [self._names[demand] for demand in wanted]
            areas = dict.fromkeys((*names, frozenset[str]().union(*names)))
            families = (tuple(demand for demand in wanted if self._names[demand] <= area) for area in areas)
            self._families[demands] = tuple(dict.fromkeys(family for family in families if len(family) > 1))
        return self._families[demands]

    def _short_together(self, family: tuple[PodDemand, ...], wanted: Demands) -> Iterator[RoomRefusal]:
        """What pods of several kinds request in all, and how many there are, beside what their nodes have for the smallest of them."""
        for resource in dict.fromkeys(resource for demand in family for resource, amount in demand.requests.items() if amount > 0):
            members = [demand for demand in family if demand.requests.get(resource, 0) > 0]
            step = gcd(*(demand.requests[resource] for demand in members))
            free = self._total(("resource", family, resource), family, partial(_multiple, resource, step))
            requested = sum(wanted[demand] * demand.requests[resource] for demand in members)
            if requested > free:
                yield RoomRefusal(tuple(members), requested, free, _listed(self._of_any(family)), resource)
        total = self._total(("smallest", family), family, partial(_copies_of, _least(family)))
        if (count := sum(wanted[demand] for demand in family)) > total:
            yield RoomRefusal(family, count, total, _listed(self._of_any(family)))

    def _not_together(self, wanted: Demands) -> Iterator[RoomRefusal]:
        """Pods that must all be at one value of a label, where none has room for them."""
        groups: dict[str, tuple[TogetherTerm, list[PodDemand]]] = {}
        for demand in wanted:
            for term in demand.together:
                groups.setdefault(term.group, (term, []))[1].append(demand)
        for term, members in groups.values():
            if (choices := self._choices(term, members, wanted)) is None:
                continue
            count = sum(wanted[demand] for demand in members)
            most = max((self._fitting(members, wanted, term.key, values) for values in choices), default=0)
            if most < count:
                yield RoomRefusal(tuple(members), count, most, _listed(self._of_any(members)), label=term.key, together=True)

    def _not_beside(self, wanted: Demands) -> Iterator[RoomRefusal]:
        """Pods that must be where others are, which are nowhere: neither on a node nor about to be placed."""
        for demand, count in wanted.items():
            for each in demand.beside:
                if not self._may_be_beside(each, demand, wanted) and self.suitable(demand):
                    yield RoomRefusal((demand,), count, 0, _listed(self.suitable(demand)), label=each.key, beside=each)

    def _may_be_beside(self, beside: BesideTerm, demand: PodDemand, wanted: Demands) -> bool:
        """Whether there are pods that the term selects, or may be; also if that is not known."""
        selector = beside.term.get("labelSelector")
        names_no_label = selector is not None and not (mapping(selector).get("matchLabels") or mapping(selector).get("matchExpressions"))
        if beside.term.get("namespaceSelector") or names_no_label:
            return True
        expected, labelled = (each.sample for each in (*wanted, *self._expected)), map(_labelled_pod, self.cluster.labelled)
        leaving = (each.body for pods in (self.cluster.vacated, *self.cluster.leaving.values()) for each in pods)
        others = chain(expected, (pod for _, _, pod in self._held.values()), (pod for _, pod in self._left.values()), leaving, labelled)
        return any(selects(beside.term, demand.sample, other) for other in others)

    def _choices(self, term: TogetherTerm, members: Sequence[PodDemand], wanted: Demands) -> Iterable[frozenset[str]] | None:
        """The sets of values of the label of which one has to suffice for all members: each value alone if they are the first.

        If pods that the term selects exist, they join these, wherever one is or was. None if it is not known where they are.
        """
        pod, own = members[0].sample, set(members)
        if any(demand not in own and selects(term.term, pod, demand.sample) for demand in wanted):
            return None
        near = {node for node, _, other in self._held.values() if selects(term.term, pod, other)}
        near |= {each.node for each in self.cluster.labelled if selects(term.term, pod, _labelled_pod(each))}
        if self._values(near, term.key):
            near |= {node for node, other in self._left.values() if selects(term.term, pod, other)}
            return [self._values(near, term.key)]
        return [frozenset({value}) for value in sorted(self._values(self._nodes, term.key))]

    def _values(self, names: Iterable[str], key: str) -> frozenset[str]:
        """The values that a label has on these nodes."""
        return frozenset(value for name in names if name in self._nodes and (value := self._nodes[name].node.labels.get(key)))

    def _of_any(self, demands: Iterable[PodDemand]) -> Collection[PlacedPods]:
        """The nodes that suit one of these."""
        return {placed.node.name: placed for demand in demands for placed in self.suitable(demand)}.values()

    def _fitting(self, members: Sequence[PodDemand], wanted: Demands, key: str, values: frozenset[str]) -> int:
        """How many pods of a group fit at most on the nodes with these values of the label."""
        total = 0
        for demand in members:
            copies = sum(placed.copies(demand, placed.used) for placed in self.suitable(demand) if placed.node.labels.get(key) in values)
            total += min(wanted[demand], copies)
        least = _least(members)
        return min(total, sum(_copies_of(least, placed) for placed in self._of_any(members) if placed.node.labels.get(key) in values))


def suits(demand: PodDemand, node: RoomNode, *, recovered: bool) -> bool:
    """Whether pods of this kind may have a node, however full it is; `recovered`: see `mismatch`."""
    if not all(label in node.labels for label in demand.needed_labels if label):
        return False
    return mismatch(demand.requirements, node.body, recovered=recovered) is None


def _with_slots(cluster: ClusterRoom, node: RoomNode) -> PlacedPods:
    others = cluster.usage.get(node.name, ())
    used: Counter[str] = Counter()
    for each in others:
        used.update(each.requests)
    places = {f"{SLOT}{fabric}": 1000 for fabric, slots in cluster.slots.items() if node.name in slots.nodes}
    return PlacedPods(node, {**node.allocatable, **places}, others, used, {})


def _free(placed: PlacedPods, resource: str) -> int:
    return max(0, capacity_for(resource, placed.capacity) - placed.used[resource])


def _multiple(resource: str, step: int, placed: PlacedPods) -> int:
    """How much of a resource is free on a node, in whole steps: pods that request multiples of it cannot use the rest."""
    return _free(placed, resource) // step * step


def _copies_of(requests: Mapping[str, int], placed: PlacedPods) -> int:
    return min((_free(placed, resource) // amount for resource, amount in requests.items() if amount > 0), default=PLENTY)


def _least(demands: Sequence[PodDemand]) -> Mapping[str, int]:
    """What each of them requests at least."""
    return {resource: min(each.requests.get(resource, 0) for each in demands) for resource in demands[0].requests}


def _listed(nodes: Iterable[PlacedPods]) -> tuple[RoomNode, ...]:
    return tuple(placed.node for placed in nodes)


def _labelled_pod(pods: LabelledPods) -> Body:
    return {"metadata": {"namespace": pods.namespace, "labels": dict(pods.labels)}}
