"""PodFacts: the fields of a live pod that decisions depend on."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.conditions import find
from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base import kinds, labels, names
from resources.base.fields import mapping, mappings

PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}
"""Phase -> its rank when a clique shrinks: pods of a lower rank are deleted first. Any other phase counts as Pending."""
CLAIM_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pvc-protection"
PROTECTIONS: Final = frozenset({CLAIM_PROTECTION, VOLUME_PROTECTION})
"""The finalizers that Kubernetes removes as soon as no pod uses the claim."""

IMAGE: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable")
"""The reasons with which a container waits whose image cannot be had."""
CRASH_LOOP: Final = "CrashLoopBackOff"
"""The reason with which a container waits that ends again and again."""


class PodFacts(Struct, frozen=True, eq=False):
    """One live pod."""

    live: Live
    index: int | None
    """Its index in the clique; None if neither its label nor its hostname has one."""
    phase: str
    """Its phase: Pending, Running, Succeeded, Failed or Unknown."""
    node: str
    """The node it is bound to; empty before it is scheduled."""
    ready: bool
    """Whether its condition Ready is True."""
    scheduled: bool
    """Whether its condition PodScheduled is True."""
    gated: bool
    """Whether it has our scheduling gate."""
    scheduler: str
    """The name of the scheduler that places it."""
    grouped: bool
    """Whether it is a member of a group of kube-scheduler."""
    scheduling_gated: bool
    """Whether its PodScheduled condition has the reason SchedulingGated, whichever gate causes it."""
    failing: bool
    """Whether it is not ready, has not succeeded, and one of its containers has terminated with an error before."""
    unready: bool
    """Whether it is not ready, not failing, and one of its containers has started and is not ready."""
    restarts_always: bool
    """Whether its restart policy is Always."""
    hash: str
    """The hash of the template it was created from; empty if it has no such label."""
    reason: str
    """Why it is not scheduled or why a container waits, in the cluster's words; empty if neither applies."""

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.live.id.name

    @property
    def hindered(self) -> bool:
        """Whether a container has failed before, or cannot start."""
        return self.failing or self.kept_from_starting

    @property
    def kept_from_starting(self) -> bool:
        """Whether a container waits and cannot start now: its image cannot be had, it ends again and again, a key is missing."""
        return bool(self.node and self.reason and not self.ready)

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.live.deleting_since is not None

    @property
    def ended(self) -> bool:
        """Whether it has ended and must be replaced: it has failed, or it has completed although its containers should restart."""
        return self.phase == "Failed" or (self.phase == "Succeeded" and self.restarts_always)

    @property
    def completed(self) -> bool:
        """Whether its containers have succeeded and are not restarted: it keeps its index and needs nothing any more (N33)."""
        return self.phase == "Succeeded" and not self.restarts_always

    @property
    def serving(self) -> bool:
        """Whether it occupies its index: it is neither terminating nor ended."""
        return not self.terminating and not self.ended


def facts_of(live: Live) -> PodFacts:
    """The facts of a live pod."""
    body = live.body
    spec: Mapping[str, Any] = body.get("spec") or {}
    status: Mapping[str, Any] = body.get("status") or {}
    conditions = status.get("conditions") or ()
    scheduled = find(conditions, "PodScheduled") or {}
    ready = (find(conditions, "Ready") or {}).get("status") == "True"
    containers = list(status.get("containerStatuses") or ())
    all_containers = [*(status.get("initContainerStatuses") or ()), *containers]
    phase = status.get("phase", "Pending")
    failing = not ready and phase != "Succeeded" and any(_has_failed(container) for container in all_containers)
    started = any(container.get("started") and not container.get("ready") for container in containers)
    return PodFacts(
        live=live,
        index=_index(live, spec),
        phase=phase,
        node=spec.get("nodeName", ""),
        ready=ready,
        scheduled=scheduled.get("status") == "True",
        gated=any(gate.get("name") == labels.GATE for gate in spec.get("schedulingGates") or ()),
        scheduler=spec.get("schedulerName", ""),
        grouped=bool(spec.get("schedulingGroup")),
        scheduling_gated=scheduled.get("status") == "False" and scheduled.get("reason") == "SchedulingGated",
        failing=failing,
        unready=not ready and not failing and started,
        restarts_always=spec.get("restartPolicy", "Always") == "Always",
        hash=live.labels.get(labels.TEMPLATE_HASH, ""),
        reason=_reason(scheduled, spec, all_containers),
    )


def _index(live: Live, spec: Mapping[str, Any]) -> int | None:
    text = live.labels.get(labels.POD_INDEX) or str(spec.get("hostname", "")).rpartition("-")[2]
    return int(text) if text.isascii() and text.isdigit() else None


def _has_failed(container: Mapping[str, Any]) -> bool:
    last = (container.get("lastState") or {}).get("terminated") or {}
    return bool(last.get("exitCode"))


def _reason(scheduled: Mapping[str, Any], spec: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> str:
    if scheduled.get("status") == "False":
        gates = [str(gate.get("name")) for gate in spec.get("schedulingGates") or ()]
        if gates and labels.GATE not in gates:
            return f"{scheduled.get('reason')}: others have to remove scheduling gate{'s' if len(gates) > 1 else ''} {', '.join(gates)}"
        return ": ".join(text for text in (scheduled.get("reason", ""), scheduled.get("message", "")) if text)
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason", "")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            return f"{container.get('name')} {reason}"
    return ""


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


def assign_pods(
    podclique: str,
    identity: str,
    replicas: int,
    hash: str,
    pods: Sequence[PodFacts],
    taken: Collection[str],
    *,
    is_member: bool = False,
) -> PodAssignment:
    """Assign `replicas` pods to indices.

    Serving pods keep their index, free indices are filled from the lowest, and surplus pods are chosen by `deletion_order`.
    `podclique` is the clique's name, `hash` its current template hash and `pods` its live pods; `identity` is the set's part of the
    names of new pods (`names.pod`); `taken` are pod names that foreign objects use. `is_member`: as for `deletion_order`.
    """
    serving = [pod for pod in pods if pod.serving]
    excess = max(0, len(serving) - replicas)
    surplus = sorted(serving, key=lambda pod: deletion_order(pod, hash, is_member=is_member))[:excess] if excess else []
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


def deletion_order(pod: PodFacts, hash: str, *, is_member: bool = False) -> tuple[bool, bool, int, bool, bool, int, float, str]:
    """Sort key: the pods of a shrinking clique that sort first are deleted first.

    The criteria in order: in no group of kube-scheduler, without a node, by `PHASE_RANK`, not ready, outdated (their hash is not `hash`),
    in a scaling group (`is_member`) the highest index, youngest, by name. A gang needs the pods of its group: no other can join it.
    """
    highest_first = -(pod.index or 0) if is_member else 0
    youngest_first = -pod.live.created_at.timestamp()
    rank = PHASE_RANK.get(pod.phase, 0)
    return (pod.grouped, bool(pod.node), rank, pod.ready, pod.hash == hash, highest_first, youngest_first, pod.name)


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


def reserved_for(claim: Live) -> dict[str, str]:
    """Uid of each pod that a ResourceClaim is reserved for -> its name."""
    entries = mappings(mapping(claim.body.get("status")).get("reservedFor"))
    return {
        entry["uid"]: entry["name"]
        for entry in entries
        if entry.get("resource") == "pods" and isinstance(entry.get("uid"), str) and isinstance(entry.get("name"), str)
    }


def unmade_claims(pod: Live) -> list[str]:
    """The names of the claims of a pod that are made from templates, and are not made: by a quota, perhaps."""
    named = mappings(mapping(pod.body.get("spec")).get("resourceClaims"))
    made = {str(each.get("name")) for each in mappings(mapping(pod.body.get("status")).get("resourceClaimStatuses"))}
    return [name for each in named if each.get("resourceClaimTemplateName") and (name := str(each.get("name"))) not in made]


def claims_of(namespace: str, pod_spec: Any) -> Iterator[ResourceId]:
    """The claims that a pod spec names, of either kind. It is not validated."""
    spec = mapping(pod_spec)
    for entry in mappings(spec.get("resourceClaims")):
        if isinstance(name := entry.get("resourceClaimName"), str):
            yield kinds.RESOURCE_CLAIM.id(namespace, name)
    for volume in mappings(spec.get("volumes")):
        if isinstance(name := mapping(volume.get("persistentVolumeClaim")).get("claimName"), str):
            yield kinds.PVC.id(namespace, name)


def pod_spec_of(body: Body) -> Body:
    """The pod spec of a pod, or that of the template of an object whose controller makes pods; empty if it has none."""
    spec = mapping(body.get("spec"))
    template = spec.get("template") or mapping(spec.get("leaderWorkerTemplate")).get("workerTemplate")
    return mapping(mapping(template).get("spec")) if template else spec
