"""PodRoom: which pods of a forecast get a node, by the room that a real cluster has, and why the others wait."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.report.printable import counted
from resources.base import kinds, labels
from resources.base.fields import mapping
from resources.cluster_model.gang_members import GangMinimum, gang_member
from resources.model.pod_groups import Find
from resources.placement.cluster_room import ClusterRoom
from resources.placement.packing import left_over
from resources.placement.pod_affinity import ENDED
from resources.placement.pod_demand import DEFAULT_SCHEDULER, SLOT, DemandBook, PodDemand
from resources.placement.refusal_text import refusal_text
from resources.placement.room import Room, RoomRefusal
from resources.placement.usage_totals import used_by

PREEMPTION: Final = "pods of lower priority could be preempted for them"
EARLIER_STAY: Final = "; its earlier pods stay until new ones are ready: a strategy that deletes them first needs no more room"
OTHER_ORDER: Final = "one way to fill the nodes has no room for them; another may have"


class RoomClaim(Struct, frozen=True, eq=False):
    """A pod of the forecast that asks for a node."""

    id: ResourceId
    root: ResourceId
    workload: ResourceId
    """Its PodClique, Deployment or LeaderWorkerSet."""
    demand: PodDemand
    membership: GangMinimum | None


class PodRoom:
    """The nodes of a cluster in one forecast, with the pods that have a node, and those that wait for one."""

    def __init__(self, cluster: ClusterRoom) -> None:
        self._room = Room(cluster)
        self._book = DemandBook(cluster.priorities, cluster.defaults)
        self._placed: dict[str, RoomClaim] = {}
        """Uid -> pods that got a node in the forecast; which one is open."""
        self._waiting: dict[str, RoomClaim] = {}
        """Uid -> pods that may start when there is room, in the order in which they asked."""
        self._refused: dict[str, RoomClaim] = {}
        """Uid -> pods that the scheduler has refused already because there was no room: they wait until some is freed."""
        self._lasting: dict[ResourceId, dict[ResourceId, Wait]] = {}
        """Root -> workload -> why it had no room during a long pause."""
        self._gangs: dict[str, ResourceId] = {}
        """Uid -> the gang of a pod that has a node, if it has one."""
        self._leaving: dict[ResourceId, list[str]] = {}
        """Component -> the uids of its pods that go one after another and are still there."""
        self._find: Find = lambda _: None
        self._is_changed = False
        self._asked: Counter[PodDemand] = Counter()
        """The waiting pods by what they ask for, wherever the others of them are."""
        self._alone: dict[PodDemand, PodDemand] = {}
        """Demand -> the same without the terms by which pods are together: finding these takes longer the more pods there are."""

    @property
    def slot_kinds(self) -> frozenset[str]:
        """The kinds of domains of which it is known which nodes have a place."""
        return frozenset(self._room.cluster.slots)

    def begin(self, find: Find, pods: Iterable[tuple[Live, Mapping[str, int]]]) -> None:
        """Take note of the pods as they are, each with the places in domains that it takes. `find` finds the groups that pods name."""
        self._find = find
        for component, leaving in self._room.cluster.leaving.items():
            self._leaving[component] = [each.uid for each in leaving]
            for pod in leaving:
                self._room.hold(pod.uid, pod.body, pod.node, pod.requests)
        for each, slots in pods:
            member = gang_member(each, find)
            live = member.pod
            spec = mapping(live.body.get("spec"))
            if (node := spec.get("nodeName")) and mapping(live.body.get("status")).get("phase") not in ENDED:
                places = {f"{SLOT}{fabric}": 1000 * count for fabric, count in slots.items()}
                self._room.hold(live.uid, live.body, str(node), {**used_by(spec), **places})
                if member.membership is not None:
                    self._gangs[live.uid] = member.membership.gang
        self._room.occupy_slots()

    def note_refused(self, pods: Iterable[tuple[Live, ResourceId, Mapping[str, int], ResourceId | None]]) -> None:
        """Take note of pods that the scheduler says it cannot place. If there seems to be room, something else is in their way.

        If there is room only once others have left their nodes in the forecast, they are tried again.
        """
        claims = {each.uid: claim for each, root, slots, of in pods if (claim := self._claim(each, root, slots, of)) is not None}
        demands = Counter(claim.demand for claim in claims.values())
        if self._room.refusal(demands) is not None:
            self._refused = claims
        elif demands and self._room.refusal_beside(self._room.cluster.vacated, demands) is not None:
            self._refused = claims
            self._try_again()

    def is_explained(self, uid: str) -> bool:
        """Whether the scheduler refuses this pod because there is no room."""
        return uid in self._refused or uid in self._waiting

    def ask(self, live: Live, root: ResourceId, slots: Mapping[str, int], workload: ResourceId | None = None) -> bool:
        """A pod may have a node if there is room. Returns false if nothing can be said about it: then it starts.

        `workload`: what it is a pod of, if that is no PodClique.
        """
        if live.uid in self._placed or live.uid in self._waiting:
            return True
        claim = self._claim(live, root, slots, workload)
        if claim is None:
            return False
        alone = self._alone_of(claim.demand)
        if not self._asked[alone] and any(refused.demand.beside for refused in self._refused.values()):
            self._try_again()  # It may be what they have to be beside.
        self._waiting[live.uid] = claim
        self._asked[alone] += 1
        self._is_changed = True
        return True

    def _alone_of(self, demand: PodDemand) -> PodDemand:
        if demand not in self._alone:
            self._alone[demand] = replace(demand, together=(), beside=()) if demand.together or demand.beside else demand
        return self._alone[demand]

    def _claim(self, pod: Live, root: ResourceId, slots: Mapping[str, int], workload: ResourceId | None = None) -> RoomClaim | None:
        member = gang_member(pod, self._find)
        live = member.pod
        demand = self._book.demand_of(live.body, slots)
        clique = kinds.PODCLIQUE.id(live.id.namespace, live.labels.get(labels.PODCLIQUE, live.id.name))
        if demand is None:
            return None
        self._room.expect(demand)
        return RoomClaim(live.id, root, workload or clique, demand, member.membership)

    def remove(self, uids: Iterable[str]) -> None:
        """These objects are gone. Pods that the scheduler has refused are tried again when one of them had a node."""
        is_freed = False
        for uid in uids:
            if (waiting := self._waiting.pop(uid, None)) is not None:
                self._asked[self._alone_of(waiting.demand)] -= 1
            self._refused.pop(uid, None)
            self._gangs.pop(uid, None)
            is_freed |= self._room.release(uid) or self._placed.pop(uid, None) is not None
        if is_freed:
            self._try_again()

    def _try_again(self) -> None:
        """Nodes have been freed: those that wait, and those that the scheduler has refused, may get them."""
        self._is_changed = True
        if self._refused:
            self._asked.update(self._alone_of(claim.demand) for claim in self._refused.values())
            self._waiting, self._refused = {**self._refused, **self._waiting}, {}

    def let_go(self, component: ResourceId, staying: int = 0) -> None:
        """So many of the earlier pods of a component are left: new ones have taken the place of the others."""
        uids = self._leaving.pop(component, [])
        self._leaving[component] = uids[:staying]
        self.remove(uids[staying:])

    def is_short(self) -> bool:
        """Whether the pods that wait now cannot all have nodes. In time that does not depend on their number, and unknown counts as no."""
        return self._room.refusal({demand: count for demand, count in self._asked.items() if self._room.is_certain(demand)}) is not None

    def admitted(self) -> list[ResourceId]:
        """The waiting pods that may have a node now, as nothing shows that there is none; they have it from now on."""
        if not self._is_changed:
            return []
        self._is_changed = False
        waiting = Counter(claim.demand for claim in self._waiting.values())
        limits = self._limits(waiting)
        admitted = []
        for uid in self._fitting(limits):
            claim = self._placed[uid] = self._waiting.pop(uid)
            self._asked[self._alone_of(claim.demand)] -= 1
            admitted.append(claim.id)
            if claim.membership is not None:
                self._gangs[uid] = claim.membership.gang
        return admitted

    def _fitting(self, limits: Counter[PodDemand]) -> Iterator[str]:
        """The uids of those that wait and have a node within these limits: of a gang none if its minimum would not be on nodes then."""
        on_nodes = Counter(self._gangs.values())
        for membership, uids in self._by_gang().items():
            fitting: list[str] = []
            rest = Counter({demand: limits[demand] for demand in (self._waiting[uid].demand for uid in uids)})
            for uid in uids:
                demand = self._waiting[uid].demand
                if rest[demand] > 0:
                    rest[demand] -= 1
                    fitting.append(uid)
            if membership is None or on_nodes[membership.gang] + len(fitting) >= membership.minimum:
                for demand, left in rest.items():
                    limits[demand] = left
                yield from fitting

    def _by_gang(self) -> Mapping[GangMinimum | None, list[str]]:
        """The uids of those that wait by their gang, in the order in which they asked; under None those that are placed by themselves."""
        uids: dict[GangMinimum | None, list[str]] = {}
        for uid, claim in self._waiting.items():
            uids.setdefault(claim.membership, []).append(uid)
        return uids

    def _limits(self, waiting: Counter[PodDemand]) -> Counter[PodDemand]:
        """The number of pods of each demand that may have room."""
        placed = Counter(claim.demand for claim in self._placed.values())
        certain = Counter({demand: count for demand, count in placed.items() if self._room.is_certain(demand)})
        limits = Counter({demand: count for demand, count in waiting.items() if not self._room.is_certain(demand)})
        for demand in limits:
            if demand.scheduler == DEFAULT_SCHEDULER:
                limits[demand] = _most(limits[demand], partial(self._may_preempt_for, demand, placed[demand]))
        sure = {demand: count for demand, count in waiting.items() if demand not in limits}
        if sure and self._room.refusal(certain + Counter(sure)) is None:
            return limits + Counter(sure)
        for demand, count in sure.items():
            limits[demand] = _most(count, partial(self._may_have_room, certain, demand))
            certain[demand] += limits[demand]
        return limits

    def _may_preempt_for(self, demand: PodDemand, placed: int, more: int) -> bool:
        return self._room.refusal_with_preemption(demand, placed + more) is None

    def _may_have_room(self, others: Counter[PodDemand], demand: PodDemand, more: int) -> bool:
        return self._room.refusal(others + Counter({demand: more})) is None

    def shortages(self, lacking: Collection[ResourceId] = ()) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """Root -> for each PodClique or component with pods that get no node why that is so.

        `lacking`: those for whose pods there would be no room without their earlier ones either.
        """
        waits: dict[ResourceId, list[Wait]] = {}
        for root, wait in self._without_room(self._waiting.values(), lacking):
            waits.setdefault(root, []).append(wait)
        return {root: tuple(listed) for root, listed in waits.items()}

    def late(self) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """The same of what gets nodes, but had none during a long pause."""
        waiting = {claim.workload for claim in (*self._waiting.values(), *self._refused.values())}
        late = {root: tuple(wait for wait in waits.values() if wait.id not in waiting) for root, waits in self._lasting.items()}
        return {root: waits for root, waits in late.items() if waits}

    def note_pause(self) -> None:
        """Nothing happens now for longer than a sync waits: what waits for room lacks it, even if it gets some later."""
        for root, wait in self._without_room([*self._waiting.values(), *self._refused.values()]):
            self._lasting.setdefault(root, {}).setdefault(wait.id, wait)

    def _without_room(self, claims: Collection[RoomClaim], lacking: Collection[ResourceId] = ()) -> Iterator[tuple[ResourceId, Wait]]:
        """The root of these pods, and why they get no node, once for each PodClique or component and reason."""
        certain = Counter(claim.demand for claim in self._placed.values() if self._room.is_certain(claim.demand))
        waiting = Counter(claim.demand for claim in claims)
        refusals = {demand: self._refusal_of(demand, certain, waiting) for demand in waiting}
        gangs, on_nodes = dict[GangMinimum | None, Counter[PodDemand]](), Counter(self._gangs.values())
        for claim in claims:
            gangs.setdefault(claim.membership, Counter())[claim.demand] += 1
        texts = {demand: refusal_text(refusal, self._room) if refusal is not None else "" for demand, refusal in refusals.items()}
        reasons = {
            (gang, demand): _others(gang, demand, members, refusals[demand]) + (texts[demand] or _lacking(gang, members, on_nodes))
            for gang, members in gangs.items()
            for demand in members
        }
        alike = Counter((claim.root, claim.workload, reasons[claim.membership, claim.demand]) for claim in claims)
        for (root, workload, reason), count in alike.items():
            hint = EARLIER_STAY if self._leaving.get(workload) and workload not in lacking else ""
            yield root, Wait(workload, f"{_pods(count)} cannot be scheduled: {reason}{hint}", blocked=True)

    def _refusal_of(self, demand: PodDemand, certain: Counter[PodDemand], waiting: Counter[PodDemand]) -> RoomRefusal | None:
        """Why pods of this demand wait: what they all need, if that shows it, else together with others."""
        if not self._room.is_certain(demand):
            return self._room.refusal_with_preemption(demand, waiting[demand] + certain[demand])
        alone = self._room.refusal({demand: certain[demand] + waiting[demand]})
        return alone or self._room.refusal({**certain, demand: certain[demand] + waiting[demand]}) or self._room.refusal(certain + waiting)

    def doubts(self) -> tuple[str, ...]:
        """What may not fit although nothing proves it, as texts: which pods, and why it is not known."""
        placed = Counter(claim.demand for claim in self._placed.values())
        certain = Counter({demand: count for demand, count in placed.items() if self._room.is_certain(demand)})
        workloads: dict[PodDemand, dict[ResourceId, None]] = {}
        for claim in self._placed.values():
            workloads.setdefault(claim.demand, {})[claim.workload] = None
        texts: dict[str, None] = {}
        for demand in placed:
            if demand in certain:
                continue
            refusal = self._room.refusal({demand: placed[demand]}) or self._room.refusal(certain + Counter({demand: placed[demand]}))
            if refusal is not None:
                decider = PREEMPTION if demand.scheduler == DEFAULT_SCHEDULER else f"scheduler {demand.scheduler} decides"
                texts[f"{_subject(workloads[demand])}: {refusal_text(refusal, self._room)} ({decider})"] = None
        for demand, count in left_over(self._room, certain).items():
            texts[f"{_subject(workloads[demand])}: {OTHER_ORDER} ({_pods(count)})"] = None
        return tuple(texts)


def _others(gang: GangMinimum | None, demand: PodDemand, members: Collection[PodDemand], refusal: RoomRefusal | None) -> str:
    """The beginning of why pods of this demand wait, if others among these members of their gang are refused, and not they."""
    if gang is None or refusal is None or demand in refusal.demands:
        return ""
    return "others of its gang cannot: " if any(each in members for each in refusal.demands) else ""


def _lacking(gang: GangMinimum | None, members: Mapping[PodDemand, int], on_nodes: Mapping[ResourceId, int]) -> str:
    """Why pods wait although nothing shows that there is no room: fewer of their gang than its minimum are there and may have a node."""
    if gang is None or (count := sum(members.values()) + on_nodes.get(gang.gang, 0)) >= gang.minimum:
        return "there is no room for them"
    return f"its gang has {count} of its minimum of {counted(gang.minimum, 'pod')}"


def _subject(workloads: Iterable[ResourceId]) -> str:
    """The pods of these."""
    first, *others = workloads
    return f"pods of {first.kind} {first.name}" + (f" and {len(others)} more" if others else "")


def _most(count: int, is_possible: Callable[[int], bool]) -> int:
    """The largest number up to `count` for which it is possible, if it is possible for every smaller one."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle - 1)
    return low


def _pods(count: int) -> str:
    return f"{count} pod{'s' if count != 1 else ''}"
