"""PodAssignment: which pods of a clique are kept, which are deleted, and which indices get a new pod."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from resources.base import names
from resources.model.pod_facts import PodFacts

PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}
"""Phase -> its rank when a clique shrinks: pods of a lower rank are deleted first. Any other phase counts as Pending."""


class NewPod(Struct, frozen=True):
    """A pod to create: its index in the clique and its name."""

    index: int
    name: str


class PodAssignment(Struct, frozen=True):
    """What happens to each pod of a clique."""

    kept: tuple[PodFacts, ...] = ()
    """Serving pods that keep their index."""
    new: tuple[NewPod, ...] = ()
    """Pods to create."""
    surplus: tuple[PodFacts, ...] = ()
    """Serving pods beyond the number of replicas."""
    ended: tuple[PodFacts, ...] = ()
    """Pods that have ended and are replaced."""
    terminating: tuple[PodFacts, ...] = ()
    """Pods that are being deleted already."""


def assign_pods(podclique: str, identity: str, replicas: int, hash: str, pods: Sequence[PodFacts], taken: Collection[str]) -> PodAssignment:
    """Assign `replicas` pods to indices.

    Serving pods keep their index, free indices are filled from the lowest, and surplus pods are chosen by `deletion_order`.
    `podclique` is the clique's name, `hash` its current template hash and `pods` its live pods; `identity` is the set's part of the
    names of new pods (`names.pod`); `taken` are pod names that foreign objects use.
    """
    serving = [pod for pod in pods if pod.serving]
    excess = max(0, len(serving) - replicas)
    surplus = sorted(serving, key=lambda pod: deletion_order(pod, hash))[:excess] if excess else []
    surplus_names = {pod.name for pod in surplus}
    kept = [pod for pod in serving if pod.name not in surplus_names]
    used = {pod.index for pod in kept}
    free = (index for index in range(len(used) + replicas) if index not in used)
    indices = [next(free) for _ in range(replicas - len(kept))]
    return PodAssignment(
        kept=tuple(kept),
        new=tuple(_new_pods(podclique, identity, indices, pods, taken)),
        surplus=tuple(surplus),
        ended=tuple(pod for pod in pods if pod.ended and not pod.terminating),
        terminating=tuple(pod for pod in pods if pod.terminating),
    )


def deletion_order(pod: PodFacts, hash: str) -> tuple[bool, int, bool, bool, float, str]:
    """Sort key: the pods of a shrinking clique that sort first are deleted first.

    The criteria in order: without a node, by `PHASE_RANK`, not ready, outdated (their hash is not `hash`), youngest, by name.
    """
    youngest_first = -pod.live.created_at.timestamp()
    return (bool(pod.node), PHASE_RANK.get(pod.phase, 0), pod.ready, pod.hash == hash, youngest_first, pod.name)


def _new_pods(podclique: str, identity: str, indices: Iterable[int], pods: Iterable[PodFacts], taken: Collection[str]) -> Iterator[NewPod]:
    """The pods of these indices. Of thousands of names a few would be equal: the higher index gets another one."""
    used = {pod.name for pod in pods}.union(taken)
    for index in indices:
        pod = _new_pod(podclique, identity, index, pods, used)
        used.add(pod.name)
        yield pod


def _new_pod(podclique: str, identity: str, index: int, pods: Iterable[PodFacts], taken: Collection[str]) -> NewPod:
    predecessors = [pod for pod in pods if pod.index == index and not pod.serving]
    predecessor = max(predecessors, key=lambda pod: (pod.live.created_at, pod.name)).live.uid if predecessors else ""
    attempt = 0
    while (name := names.pod(podclique, identity, index, predecessor, attempt)) in taken:
        attempt += 1
    return NewPod(index, name)
