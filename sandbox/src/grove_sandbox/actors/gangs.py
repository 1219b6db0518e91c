"""Gangs: the objects that describe gangs, their queues and topologies, and the pods of each, all of it from the API."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from grove_sandbox.actors.body import Body, Key, is_deleting, is_finished
from grove_sandbox.actors.gang import GangPods, PodStates, SchedulingUnit, gang_pods, unit_of
from grove_sandbox.actors.group_tree import GroupTrees
from grove_sandbox.actors.pod_groups import kai_pods, volcano_pods
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import Kind, kinds, requests_of, thousandths

GPU: Final = "nvidia.com/gpu"
GpusOf = Callable[[str], int]
"""The GPUs, in thousandths, of the placed pods whose group is in that queue."""


class Gangs:
    """The gangs of all schedulers: Grove's PodGangs, Volcano's PodGroups and KAI's. Kinds that are not served have no objects."""

    def __init__(
        self,
        pods: InformerStore,
        states: PodStates,
        on_gang: Callable[[SchedulingUnit], None],
        on_admission: Callable[[], None],
        *,
        has_trees: bool,
    ) -> None:
        """`on_gang` is called after a gang has changed, `on_admission` after a queue or a topology has.

        `has_trees`: whether kube-scheduler's groups are served.
        """
        self._pods, self._states, self._has_trees = pods, states, has_trees
        self._members: dict[SchedulingUnit, dict[Key, None]] = {}
        self._gangs = {
            kind: InformerStore(kind, _notifies(kind, on_gang)) for kind in (kinds.PODGANG, kinds.VOLCANO_POD_GROUP, kinds.KAI_POD_GROUP)
        }

        def notify(key: Key, old: Body | None, new: Body | None) -> None:
            if old is None or new is None or old.get("spec") != new.get("spec"):
                on_admission()

        self._volcano_queues, self._kai_queues = InformerStore(kinds.VOLCANO_QUEUE, notify), InformerStore(kinds.KAI_QUEUE, notify)
        self._topologies = InformerStore(kinds.KAI_TOPOLOGY, notify)
        self.trees = GroupTrees(states, self.members, on_gang)
        """Those of kube-scheduler."""
        pods.subscribe(self._on_pod)

    @property
    def stores(self) -> tuple[InformerStore, ...]:
        """What has to be watched, besides pods."""
        trees = self.trees.stores.values() if self._has_trees else ()
        return (*self._gangs.values(), self._volcano_queues, self._kai_queues, self._topologies, *trees)

    def store(self, kind: Kind) -> InformerStore:
        """The gangs of a kind."""
        return self._gangs[kind]

    def get(self, unit: SchedulingUnit) -> Body | None:
        """The object that describes the gang."""
        return self._gangs[unit.kind].get(unit.namespace, unit.name)

    def members(self, unit: SchedulingUnit) -> list[Body]:
        """The pods that refer to the gang, the oldest first."""
        return [pod for key in self._members.get(unit, ()) if (pod := self._pods.get(*key)) is not None]

    def pods_of(self, unit: SchedulingUnit, gang: Body) -> GangPods:
        """The pods of the gang, by what has to be done with them."""
        if unit.kind == kinds.PODGANG:
            return gang_pods(gang, self._pods.objects, self._states)
        if unit.kind == kinds.VOLCANO_POD_GROUP:
            return volcano_pods(gang, self.members(unit), self._states)
        topologies = {name: body for (_, name), body in self._topologies.objects.items()}
        return kai_pods(gang, self.members(unit), self._states, topologies)

    def refusal(self, unit: SchedulingUnit, gang: Body, pods: Iterable[Body]) -> str:
        """Why the queue of the gang does not admit these pods as well; empty: it does. A PodGang has no queue."""
        requested = gpus_of(pods)
        if unit.kind == kinds.VOLCANO_POD_GROUP:
            allocated = self._allocated(unit.kind, volcano_queue_of)
            return volcano_refusal(volcano_queue_of(gang), _by_name(self._volcano_queues), allocated, requested)
        if unit.kind == kinds.KAI_POD_GROUP:
            allocated = self._allocated(unit.kind, kai_queue_of)
            return kai_refusal(kai_queue_of(gang), _by_name(self._kai_queues), allocated, requested)
        return ""

    def _allocated(self, kind: Kind, queue_of: Callable[[Body], str]) -> GpusOf:
        def allocated(queue: str) -> int:
            units = [unit for unit in self._members if unit.kind == kind]
            groups = [(unit, self.get(unit)) for unit in units]
            in_queue = [unit for unit, group in groups if group is not None and queue_of(group) == queue]
            return gpus_of(pod for unit in in_queue for pod in self._in_use(self.members(unit)))

        return allocated

    def _in_use(self, pods: Sequence[Body]) -> list[Body]:
        return [pod for pod in pods if self._states.is_placed(pod) and not is_finished(pod)]

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = (unit_of(body) if body is not None else None for body in (old, new))
        if before is not None and before != after:
            self._members.get(before, {}).pop(key, None)
            if not self._members.get(before):
                self._members.pop(before, None)
        if after is not None and not after.is_single:
            self._members.setdefault(after, {})[key] = None


def _notifies(kind: Kind, on_gang: Callable[[SchedulingUnit], None]) -> Callable[[Key, Body | None, Body | None], None]:
    return lambda key, old, new: on_gang(SchedulingUnit(kind, *key))


def _by_name(store: InformerStore) -> dict[str, Body]:
    return {name: body for (_, name), body in store.objects.items() if not is_deleting(body)}


def gpus_of(pods: Iterable[Body]) -> int:
    """The GPUs that the pods request, in thousandths. Malformed quantities count as none."""
    return sum(_gpus(pod) for pod in pods)


def _gpus(pod: Body) -> int:
    try:
        return requests_of(pod["spec"]).get(GPU, 0)
    except ValueError:
        return 0


def kai_queue_of(group: Body) -> str:
    """The queue of one of KAI's PodGroups; empty: none is named."""
    return str((group.get("spec") or {}).get("queue") or "")


def volcano_queue_of(group: Body) -> str:
    """The queue of one of Volcano's PodGroups."""
    return str((group.get("spec") or {}).get("queue") or "default")


def kai_refusal(name: str, queues: Mapping[str, Body], allocated: GpusOf, requested: int) -> str:
    """Why the queue, or a queue above it, does not admit so many GPUs more; empty: it does. A limit of -1 is none, no limit is 0."""
    if name not in queues:
        return f"queue {name} does not exist" if name else "the PodGroup names no queue"
    for queue in _with_parents(name, queues):
        resources = (queues[queue].get("spec") or {}).get("resources") or {}
        limit = (resources.get("gpu") or {}).get("limit", 0)
        used = sum(allocated(other) for other in queues if queue in _with_parents(other, queues))
        if limit >= 0 and requested and used + requested > limit * 1000:
            shown = (queues[queue].get("spec") or {}).get("displayName") or queue
            return _over_limit(shown, limit * 1000, used, requested)
    return ""


def volcano_refusal(name: str, queues: Mapping[str, Body], allocated: GpusOf, requested: int) -> str:
    """Why the queue does not admit so many GPUs more; empty: it does. Without a capability for GPUs there is no limit."""
    if name not in queues:
        return f"queue {name} does not exist"
    capability = ((queues[name].get("spec") or {}).get("capability") or {}).get(GPU)
    try:
        limit = None if capability is None else thousandths(str(capability))
    except ValueError:
        limit = None
    used = allocated(name)
    return _over_limit(name, limit, used, requested) if limit is not None and used + requested > limit else ""


def _with_parents(name: str, queues: Mapping[str, Body]) -> Iterator[str]:
    """The queue and those above it, each once, as far as they exist."""
    above: set[str] = set()
    while name in queues and name not in above:
        yield name
        above.add(name)
        name = (queues[name].get("spec") or {}).get("parentQueue") or ""


def _over_limit(name: str, limit: float, used: int, requested: int) -> str:
    """In KAI's words."""
    numbers = [f"{amount / 1000:g}" for amount in (limit, used, requested)]
    details = "Limit is {} GPUs, currently {} GPUs allocated and workload requested {} GPUs".format(*numbers)
    return f"{name} quota has reached the allowable limit of GPUs. {details}"
