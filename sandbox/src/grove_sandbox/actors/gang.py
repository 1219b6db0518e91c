"""Gang: which pods have to be placed together, and which of them on nodes of one domain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from grove_sandbox.actors.body import Body, Key, annotations_of, is_deleting, is_finished, labels_of
from grove_sandbox.product import PODGANG_LABEL, Kind, kinds

VOLCANO, KAI = "volcano", "kai-scheduler"
"""The `schedulerName`s whose pods refer to PodGroups."""
VOLCANO_GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
KAI_GROUP: Final = "pod-group-name"
"""The annotations of pods with the name of their PodGroup."""


class SchedulingUnit(NamedTuple):
    """What is placed at once: the gang that this object describes, or a single pod."""

    kind: Kind
    namespace: str
    name: str

    @property
    def is_single(self) -> bool:
        """Whether it is a pod of no gang."""
        return self.kind == kinds.POD

    def __str__(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind.name} {self.namespace}/{self.name}"


class PodBlock(Struct, frozen=True):
    """The pods of a gang or of a part of it: those that are placed, those that must be placed together, and those beyond the minimum."""

    placed: tuple[Body, ...] = ()
    required: tuple[Body, ...] = ()
    extra: tuple[Body, ...] = ()
    domain: str = ""
    """The label of nodes that must have the same value for all pods of this block and of the blocks in it; empty: none."""
    blocks: tuple["PodBlock", ...] = ()

    def __iter__(self) -> Iterator["PodBlock"]:
        """This block and all that are in it."""
        yield self
        for block in self.blocks:
            yield from block


class GangPods(Struct, frozen=True):
    """The pods of a gang, and what prevents their placement."""

    root: PodBlock
    missing: str = ""
    """Which pods the gang still lacks before it can be placed; empty: none."""
    refusal: str = ""
    """Why the gang cannot be placed even if there is room: its queue, or its topology; empty: it can."""

    @property
    def required(self) -> tuple[Body, ...]:
        """All pods that must be placed together."""
        return tuple(pod for block in self.root for pod in block.required)

    @property
    def extra(self) -> tuple[Body, ...]:
        """All unplaced pods beyond the minimum."""
        return tuple(pod for block in self.root for pod in block.extra)

    @property
    def placed(self) -> tuple[Body, ...]:
        """All pods that are placed and have not finished."""
        return tuple(pod for block in self.root for pod in block.placed)


class PodStates(Struct, frozen=True):
    """What the scheduler knows of pods."""

    is_placed: Callable[[Body], bool]
    is_schedulable: Callable[[Body], bool]


def unit_of(pod: Body) -> SchedulingUnit:
    """The unit that the pod belongs to: its PodGroup, that of its scheduler's annotation, or that of Grove's label, in this order."""
    namespace = pod["metadata"]["namespace"]
    if group := (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"):
        return SchedulingUnit(kinds.POD_GROUP, namespace, group)
    annotations, scheduler = annotations_of(pod), pod["spec"].get("schedulerName")
    if scheduler == VOLCANO and (group := next(filter(None, map(annotations.get, VOLCANO_GROUPS)), None)):
        return SchedulingUnit(kinds.VOLCANO_POD_GROUP, namespace, group)
    if scheduler == KAI and (group := annotations.get(KAI_GROUP)):
        return SchedulingUnit(kinds.KAI_POD_GROUP, namespace, group)
    if gang := labels_of(pod).get(PODGANG_LABEL):
        return SchedulingUnit(kinds.PODGANG, namespace, gang)
    return SchedulingUnit(kinds.POD, namespace, pod["metadata"]["name"])


def block_of(pods: Sequence[Body], minimum: int, states: PodStates, domain: str = "") -> tuple[PodBlock, int]:
    """The block of these pods, and how many pods it lacks. Placed pods and those that have succeeded count towards the minimum."""
    active = [pod for pod in pods if not is_deleting(pod) and not is_finished(pod)]
    placed = [pod for pod in active if states.is_placed(pod)]
    schedulable = [pod for pod in active if not states.is_placed(pod) and states.is_schedulable(pod)]
    succeeded = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods if not is_deleting(pod))
    needed = max(0, minimum - len(placed) - succeeded)
    block = PodBlock(tuple(placed), tuple(schedulable[:needed]), tuple(schedulable[needed:]), domain)
    return block, max(0, needed - len(schedulable))


def gang_pods(gang: Body, pods: Mapping[Key, Body], states: PodStates) -> GangPods:
    """The pods of a PodGang: at least the minimum of each of its groups, or all that it lists of a clique that was scaled below that.

    Without a back end for gangs, pods that a gang does not even list cannot keep the others from nodes.
    """
    blocks: list[PodBlock] = []
    missing: list[str] = []
    for group in gang["spec"].get("podgroups") or ():
        members = [pods.get((reference["namespace"], reference["name"])) for reference in group.get("podReferences") or ()]
        minimum = min(group["minReplicas"], len(members)) if members else group["minReplicas"]
        block, lacking = block_of([pod for pod in members if pod is not None], minimum, states)
        blocks.append(block)
        if lacking:
            missing.append(f"podgroup {group['name']} has {minimum - lacking} of {minimum} pods")
    return GangPods(PodBlock(blocks=tuple(blocks)), "; ".join(missing))
