"""PodAssignment: which pods keep their seats, which must go, and which seats get a new pod."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from resources.base import names
from resources.model.pod_facts import PodFacts

PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}
"""Who goes first when a clique shrinks; other phases count as pending."""


@dataclass(frozen=True, slots=True)
class NewPod:
    """A seat that gets a new pod, and that pod's name."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class PodAssignment:
    """What becomes of a clique's pods."""

    kept: tuple[PodFacts, ...] = ()
    fresh: tuple[NewPod, ...] = ()
    surplus: tuple[PodFacts, ...] = ()
    """Serving, but more than wanted."""
    spent: tuple[PodFacts, ...] = ()
    """Ended for good; another takes the seat."""
    going: tuple[PodFacts, ...] = ()
    """Already being deleted."""


def assign_pods(podclique: str, identity: str, wanted: int, hash: str, pods: Sequence[PodFacts], taken: Collection[str]) -> PodAssignment:
    """Seats for `wanted` pods: who serves keeps its seat, holes are filled lowest first, surplus goes by `goes_first`.

    `identity` stands for the set in the names of new pods; `taken` are names that foreign hold.
    """
    serving = [pod for pod in pods if pod.serving]
    excess = max(0, len(serving) - wanted)
    leaving = sorted(serving, key=lambda pod: goes_first(pod, hash))[:excess] if excess else []
    gone = {pod.name for pod in leaving}
    kept = [pod for pod in serving if pod.name not in gone]
    used = {pod.seat for pod in kept}
    free = (index for index in range(len(used) + wanted) if index not in used)
    fresh = [_seat(podclique, identity, next(free), pods, taken) for _ in range(wanted - len(kept))]
    return PodAssignment(
        kept=tuple(kept),
        fresh=tuple(fresh),
        surplus=tuple(leaving),
        spent=tuple(pod for pod in pods if pod.spent and not pod.going),
        going=tuple(pod for pod in pods if pod.going),
    )


def goes_first(pod: PodFacts, hash: str) -> tuple[bool, int, bool, bool, float, str]:
    """The order in which pods of a shrinking clique go: without a node, by phase, not ready, of an old template, the newest."""
    age = -pod.live.created_at.timestamp()
    return (bool(pod.node), PHASE_RANK.get(pod.phase, 0), pod.ready, pod.hash == hash, age, pod.name)


def _seat(podclique: str, identity: str, index: int, pods: Iterable[PodFacts], taken: Collection[str]) -> NewPod:
    leaving = [pod for pod in pods if pod.seat == index and not pod.serving]
    predecessor = max(leaving, key=lambda pod: (pod.live.created_at, pod.name)).live.uid if leaving else ""
    attempt = 0
    while (name := names.pod(podclique, identity, index, predecessor, attempt)) in taken:
        attempt += 1
    return NewPod(index, name)
