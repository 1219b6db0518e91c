"""Cut-off pods: pods whose fabric domain is being deleted, is gone, or was created again, so that the fabric no longer connects them.

A claim is bound to the uid of its domain: a pod stays in the domain that its claim was made for, whatever exists under that name now (N32).
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed, Slice, timestamp
from engine.plan import Alarm
from resources.base import kinds, labels
from resources.domains.release import domains_by_user, has_ended
from resources.model.domain import Domain
from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest, Fabric

MAX_NAMES = 8
"""Pods that a command names; of more, it selects the cliques where that selects no other pod."""
FIRST_NAMES = 3
"""Pods that a sentence names; of more, it gives the number."""


class CutOff(Struct, frozen=True):
    """The pods of one set that are cut off from one domain, and how to mend that."""

    pods: tuple[str, ...]
    """Their names, sorted; at least one."""
    link: str
    """What connected them, e.g. NVLink."""
    since: datetime | None
    """The latest time at which it began; None if that is not known."""
    remedy: str
    """What to do, with a command that can be pasted into a shell."""

    @property
    def text(self) -> str:
        """E.g. `NVLink is cut for 2 pods (demo-0-a-x, demo-0-a-y)`."""
        return f"{self.link} is cut for {counted(self.pods)}"


def cut_off(
    observed: Observed, fabric: Fabric, requests: Iterable[DomainRequest], id: ResourceId, live: Live | None, slices: Iterable[Slice]
) -> CutOff | None:
    """The pods in these slices that are cut off from the domain `id`; None if there are none, or domains could not be listed completely.

    `live` is the domain that exists now, None if none does; `requests` are all requests of the set for domains of this fabric. Pods that
    have ended or are being deleted do not count.
    """
    pods = _cut_off_pods(observed, fabric, tuple(requests), id, live, parts := tuple(slices))
    if not pods:
        return None
    since = None if live is None else live.deleting_since or live.created_at
    all_pods = [pod for part in parts for pod in part.of(kinds.POD.name)]
    return CutOff(tuple(pod.id.name for pod in pods), fabric.link, since, remedy(pods, all_pods))


def with_cut_off(domain: Domain, live: Live | None, cut: CutOff) -> Domain:
    """The domain with the alarm about its cut-off pods. `live` is the object that has its name, None if none has.

    The text changes only with the pods and the domain, so that equal events are counted.
    """
    kind, name = domain.id.kind, f"{domain.id.kind} {domain.id.name}"
    if live is None:
        text = f"{name} does not exist any more: {cut.text} since it was deleted; {cut.remedy}"
        return replace(domain, cut_alarm=Alarm(f"{kind}Gone", text, counted_apart=True))
    if live.deleting_since is None:
        text = f"{name} was created again at {timestamp(live.created_at)}: {cut.text} since then; {cut.remedy}"
        return replace(domain, cut_alarm=Alarm(f"{kind}Replaced", text, counted_apart=True))
    waits = "new pods wait until it is gone" if domain.resource is None else "it is kept until its users are gone, then created again"
    text = f"{name} is being deleted since {timestamp(live.deleting_since)}: {cut.text}; {waits}; {cut.remedy}"
    return replace(domain, alarm=None, cut_alarm=Alarm(f"{kind}Terminating", text, counted_apart=True, may_pass=True))


def counted(pods: Sequence[str]) -> str:
    """The number of pods with the first names, e.g. `1 pod (a)` or `5 pods (a, b, c, …)`."""
    listed = ", ".join((*pods[:FIRST_NAMES], *(["…"] if len(pods) > FIRST_NAMES else [])))
    return f"{len(pods)} pod{'' if len(pods) == 1 else 's'} ({listed})"


def remedy(pods: Sequence[Live], all_pods: Iterable[Live]) -> str:
    """What mends cut-off pods: to delete them. `all_pods` are those that the command must not select, and perhaps these.

    Many pods are selected by their cliques, if no other pod is in them; else the command names the first ones.
    """
    command = f"kubectl -n {shlex.quote(pods[0].id.namespace)} delete pod"
    if len(pods) <= MAX_NAMES:
        return f"delete {'it' if len(pods) == 1 else 'them'}: {command} {_quoted(pod.id.name for pod in pods)}"
    cliques = sorted({pod.labels.get(labels.PODCLIQUE, "") for pod in pods})
    selected = {pod.id for pod in all_pods if pod.labels.get(labels.PODCLIQUE, "") in cliques}
    if len(cliques) <= MAX_NAMES and all(cliques) and selected <= {pod.id for pod in pods}:
        selector = f"{labels.PODCLIQUE} in ({','.join(cliques)})"
        return f"delete them: {command} -l {shlex.quote(selector)}"
    return f"delete them, e.g. the first {MAX_NAMES}: {command} {_quoted(pod.id.name for pod in pods[:MAX_NAMES])}"


def _quoted(words: Iterable[str]) -> str:
    return " ".join(map(shlex.quote, words))


def _cut_off_pods(
    observed: Observed, fabric: Fabric, requests: Sequence[DomainRequest], id: ResourceId, live: Live | None, slices: Sequence[Slice]
) -> tuple[Live, ...]:
    if fabric.kind.name in observed.incomplete:
        return ()
    lost = _users_of_lost_domains(observed, fabric)
    terminating = live.uid if live is not None and live.deleting_since is not None else ""
    if not lost and not terminating:
        return ()
    domains, root = domains_by_user(observed, fabric), observed.root.id.name
    pods = [
        pod
        for part in slices
        for pod in part.of(kinds.POD.name)
        if (terminating and terminating in domains.get(pod.uid, ()))
        or (pod.uid in lost and id.name in _requested_names(pod, root, requests))
    ]
    return tuple(sorted((pod for pod in pods if pod.deleting_since is None and not has_ended(pod)), key=lambda pod: pod.id))


def _users_of_lost_domains(observed: Observed, fabric: Fabric) -> Collection[str]:
    """The uids of the pods with a claim that refers to a domain that does not exist."""
    domains = domains_by_user(observed, fabric)

    def lost(references: Slice) -> frozenset[str]:
        existing = {live.uid for live in references.of(fabric.kind.name)}
        return frozenset(user for user, uids in domains.items() if not uids <= existing)

    return observed.references.index(f"users of lost domains of {fabric.name}", lost)


def _requested_names(pod: Live, root: str, requests: Iterable[DomainRequest]) -> Iterator[str]:
    """The names of the domains that a pod of the set `root` should be in. Its labels name its PodClique, which is compared as a whole."""
    index, clique = str(pod.labels.get(labels.REPLICA_INDEX, "")), pod.labels.get(labels.PODCLIQUE, "")
    group_replica = str(pod.labels.get(labels.GROUP_REPLICA_INDEX, ""))
    prefixes = _clique_prefixes(pod.labels, root, index)
    return (
        request.name.replace(INDEX, index).replace(GROUP_INDEX, group_replica)
        for request in requests
        if any(clique == f"{prefix}-{member}" for prefix in prefixes for member in request.cliques)
    )


def _clique_prefixes(keys: Mapping[str, str], root: str, index: str) -> tuple[str, ...]:
    """What precedes the name of a clique of the template in the name of its PodClique: of the replica and, in a group, of its replica."""
    group = keys.get(labels.SCALING_GROUP, "")
    of_group = (f"{group}-{keys.get(labels.GROUP_REPLICA_INDEX, '')}",) if group else ()
    return (f"{root}-{index}", *of_group)
