"""Domain status: the state of each fabric domain of a set, and the facts that it follows from. A driver's own status is not enough: it is
Ready even for a domain without pods.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.operation import Create
from engine.paths import get
from engine.plan import Plan, Wait
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of
from resources.domains.cut_off import CutOff, cut_off
from resources.domains.reach import Split, split_of
from resources.domains.release import User, claims_on, drain_verdict, has_ended, owned_domains
from resources.domains.requests import requested_by_set, scaled_groups
from resources.model.domain import domain_requests_of, is_foreign, is_managed, specified_in
from resources.model.membership import effective_body, specified_body
from resources.ports.checks import JoinedNode
from resources.ports.configuration import Configuration
from resources.ports.fabric import DomainRequest, Fabric


class State(StrEnum):
    """The state of a domain."""

    MISSING = "missing"
    """Requested, and does not exist."""
    UNKNOWN = "unknown"
    """Requested; domains could not be listed."""
    PENDING = "pending"
    """Exists; its driver has not created its ResourceClaimTemplate yet, so no pod can join it."""
    EMPTY = "empty"
    """No pod is in it. That is neither good nor bad."""
    JOINING = "joining"
    """Not every node of its pods has joined yet."""
    JOINED = "joined"
    """Every node of its pods has joined."""
    USED = "in use"
    """Pods are in it; its driver does not report which nodes have joined."""
    COMPLETED = "completed"
    """All its pods have ended. It exists until its replica or its set is deleted."""
    REPLACED = "replaced"
    """It was created again while pods used the previous domain of its name: those pods are cut off."""
    RELEASED = "released"
    """All its pods have completed and the set asks for its release then: it is created again before its next pods."""
    RELEASING = "releasing"
    """No longer requested, or all its pods have completed and the set asks for its release; it is deleted when its users are gone."""
    TERMINATING = "terminating"
    """Deleted; finalizers keep it."""


STAYS: Final = (
    f"all its pods have completed; it stays until its replica or set goes: {labels.RELEASE_DOMAINS}: {labels.ON_COMPLETION} on the"
    " set releases it then"
)


class DomainStatus(Struct, frozen=True):
    """The status of one domain, from the point of view of one set."""

    id: ResourceId
    state: State
    made_by: str = ""
    """Who created it: `engine` or `user`; empty while it does not exist."""
    shared: bool = False
    replica: int | None = None
    """The index of the replica that it belongs to; None if it is shared."""
    joined: tuple[JoinedNode, ...] = ()
    """The nodes that have joined it, if the fabric can tell."""
    expected: int = 0
    """The number of nodes with running pods of the domain."""
    pods: Mapping[str, int] | None = None
    """Clique -> how many of its pods claim the domain and have not ended."""
    ended: int = 0
    """The number of its pods that have ended."""
    other_sets: tuple[str, ...] = ()
    """The other sets that share it."""
    why: str = ""
    """What it waits for, or what blocks it."""
    until: datetime | None = None
    """When the wait or the drain ends by itself, if that is known."""
    finalizers: tuple[str, ...] = ()
    """The finalizers that keep it, while it terminates."""
    split: Split | None = None
    """How its nodes are separated from one another; None if all of them can reach one another, or if that is not known."""
    cut: CutOff | None = None
    """The pods of the set that are cut off from it; None if there are none."""

    @property
    def ready(self) -> int:
        """The number of nodes that have joined and are ready."""
        return sum(node.ready for node in self.joined)


def domain_statuses(observed: Observed, plan: Plan, configuration: Configuration) -> tuple[DomainStatus, ...]:
    """The status of every domain that a set requests or still has, by name; empty for a root that is not a PodCliqueSet."""
    return tuple(sorted(_statuses(observed, plan, configuration), key=lambda status: status.id))


def _statuses(observed: Observed, plan: Plan, configuration: Configuration) -> Iterator[DomainStatus]:
    if observed.root.id.kind != kinds.PODCLIQUESET.name:
        return
    body = effective_body(observed, configuration)
    specified = specified_in(body)
    shared = {live.id: live for live in owned_domains(observed, configuration)}
    waits = {wait.id: wait for wait in (*plan.pending, *plan.deferred)}
    pods = _pods_by_template(observed)
    groups = scaled_groups([observed])
    created = frozenset(operation.id for operation in plan.operations if isinstance(operation, Create))
    for fabric in configuration.fabrics:
        domain_requests = domain_requests_of(fabric, observed.root.id.name, specified)
        view = _FabricView(
            observed,
            configuration,
            fabric,
            domain_requests,
            pods,
            created,
            faulty=bool(plan.problems or plan.error),
        )
        requests = requested_by_set(observed.root.id, body, fabric, groups) if observed.root.deleting_since is None else ()
        own = {live.id: live for part in observed.slices.values() for live in part.of(fabric.kind.name)}
        existing = own | {id: live for id, live in shared.items() if id.kind == fabric.kind.name}
        requested = {each.id: each for each in requests if each.request.cliques or each.id in existing}
        for id in sorted(requested.keys() | existing.keys()):
            live = existing.get(id) or observed.references.objects.get(id)
            request = requested.get(id)
            role = _Role(request.request.shared, request.index, True) if request else _Role(id in shared, _replica_of(live), False)
            yield view.status(id, live, waits.get(id), role)


def _pods_by_template(observed: Observed) -> Mapping[str, tuple[Live, ...]]:
    """ResourceClaimTemplate -> the pods of the set whose spec claims it, ended ones included."""
    pods: dict[str, list[Live]] = {}
    for pod in (pod for part in observed.slices.values() for pod in part.of(kinds.POD.name)):
        for template in {claim.get("resourceClaimTemplateName") for claim in pod.body["spec"].get("resourceClaims") or ()} - {None}:
            pods.setdefault(template, []).append(pod)
    return {template: tuple(listed) for template, listed in pods.items()}


class _Role(Struct, frozen=True):
    """How a set uses a domain."""

    shared: bool
    replica: int | None
    """The index of the replica that it belongs to; None if it is shared or not labelled."""
    requested: bool


def _replica_of(live: Live | None) -> int | None:
    return names.index_in(live.labels.get(labels.REPLICA_INDEX, "")) if live is not None else None


class _FabricView(Struct, frozen=True, eq=False):
    """The domains of one fabric in one set."""

    observed: Observed
    configuration: Configuration
    fabric: Fabric
    requests: tuple[DomainRequest, ...]
    """The set's requests for domains of this fabric."""
    pods: Mapping[str, tuple[Live, ...]]
    created: frozenset[ResourceId]
    """What the plan creates."""
    faulty: bool
    """Whether the set has problems or its plan failed, so that nothing is created for it."""

    def status(self, id: ResourceId, live: Live | None, wait: Wait | None, role: _Role) -> DomainStatus:
        """The status of one domain."""
        why, until = (wait.why, wait.until) if wait else ("", None)
        own = (self.observed.slice(str(role.replica)),) if not role.shared and role.replica is not None else self.observed.slices.values()
        cut = cut_off(self.observed, self.fabric, self.requests, id, live, own)
        status = DomainStatus(id, State.MISSING, shared=role.shared, replica=role.replica, why=why, until=until, cut=cut)
        if live is None and self.fabric.kind.name in self.observed.incomplete:
            return replace(status, state=State.UNKNOWN, why=why or f"{self.fabric.kind.name} objects could not be listed completely")
        if live is None and wait is None and id not in self.created and self._is_released(id):
            ended = len(self.pods.get(self.fabric.template_name(None, id.name), ()))
            return replace(status, state=State.RELEASED, ended=ended, why="it is created again before its next pods")
        if live is None or is_foreign(live, self.fabric, self.observed.root.uid, shared=role.shared):
            return replace(status, why=why or self._why_missing(live))
        pods = self.pods.get(self.fabric.template_name(live, live.id.name), ())
        running = [pod for pod in pods if not has_ended(pod)]
        nodes = {str(pod.body["spec"].get("nodeName") or "") for pod in running} - {""}
        status = replace(
            status,
            made_by="engine" if is_managed(live, self.fabric) else "user",
            joined=self.fabric.joined_nodes(live) or (),
            expected=len(nodes),
            pods=dict(sorted(Counter(pod.labels.get(labels.PODCLIQUE, "") for pod in running).items())),
            ended=len(pods) - len(running),
            other_sets=tuple(sorted({owner.name for owner in live.owners if owner.uid != self.observed.root.uid})),
            split=split_of(self.observed, self.fabric, live, pods, self.configuration),
        )
        if not role.requested and status.until is None:
            status = replace(status, until=self._drain_deadline(live, running, with_claims=not status.other_sets))
        if live.deleting_since is not None:
            return replace(status, state=State.TERMINATING, finalizers=tuple(map(str, live.body["metadata"].get("finalizers") or ())))
        starts = any(get(pod.body, ("status", "phase")) == "Running" for pod in running)
        unreported = self.fabric.unreported(live) if starts and not status.joined else ""
        state = self._state(live, status, len(running), nodes, requested=role.requested, is_reported=not unreported)
        own_why = {State.COMPLETED: STAYS, State.USED: status.why or unreported}
        return replace(status, state=state, why=own_why.get(state, status.why))

    @property
    def _releases(self) -> bool:
        """Whether the set asks for the release of domains whose pods have all completed."""
        return bool(annotations_of(specified_body(self.observed)).get(labels.RELEASE_DOMAINS) == labels.ON_COMPLETION)

    def _is_released(self, id: ResourceId) -> bool:
        pods = self.pods.get(self.fabric.template_name(None, id.name), ())
        return self._releases and bool(pods) and all(map(has_ended, pods))

    def _is_owner(self, live: Live) -> bool:
        return any(owner.uid == self.observed.root.uid for owner in live.owners)

    def _why_missing(self, live: Live | None) -> str:
        if live is not None:
            return "conflict: an object of that name exists and does not belong to this set"
        return "nothing is created for a set with faults" if self.faulty else "it is created in the next pass"

    def _state(self, live: Live, status: DomainStatus, running: int, nodes: set[str], *, requested: bool, is_reported: bool) -> State:
        """The first state that applies to a domain that exists. `running` is the number of its pods that have not ended, on `nodes`.

        `is_reported`: whether the domain names the nodes that have joined it.
        """
        ready = {node.node for node in status.joined if node.ready}
        states = (
            (State.RELEASING, not requested or (status.ended > 0 and not running and self._is_owner(live) and self._releases)),
            (State.REPLACED, status.cut is not None),
            (State.PENDING, not running and not self._accepts_pods(live)),
            (State.COMPLETED, not running and status.ended > 0),
            (State.EMPTY, not running),
            (State.USED, not is_reported or self.fabric.joined_nodes(live) is None),
            (State.JOINING, not nodes or not nodes <= ready or len(nodes) < running),
        )
        return next((state for state, applies in states if applies), State.JOINED)

    def _drain_deadline(self, live: Live, running: Sequence[Live], *, with_claims: bool) -> datetime | None:
        """When the drain of a released domain times out. Where other sets share the domain, their claims do not count."""
        claims = claims_on(self.observed, [live], self.configuration) if with_claims else ()
        users = [*(User(pod, "pod") for pod in running), *(User(claim, "claim") for claim in claims)]
        return drain_verdict(users, self.configuration.drain_timeout).until

    def _accepts_pods(self, live: Live) -> bool:
        """Whether the driver has created the ResourceClaimTemplate that pods of the domain claim."""
        name = self.fabric.template_name(live, live.id.name)
        template = self.observed.references.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(live.id.namespace, name))
        return template is not None and not self.fabric.template_blocker(live, template)
