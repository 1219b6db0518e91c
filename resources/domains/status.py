"""DomainStatus: how the fabric domains of a set are doing, in our words: a driver's "Ready" says nothing of a domain that nobody is in."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.plan import Plan, Wait
from engine.resource import Body
from resources.base import kinds, labels
from resources.domains import drain
from resources.domains.drain import User
from resources.domains.release import owned
from resources.domains.requests import planned
from resources.domains.users import claims
from resources.model.domain import is_made_here
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric
from resources.ports.inspection import DiagnosingFabric, JoinedNode


class State(StrEnum):
    """One word for a domain."""

    MISSING = "missing"
    """Asked for, and not there."""
    UNKNOWN = "unknown"
    """Asked for, and nobody may see whether it is there."""
    WAITING = "waiting"
    """There, and its driver has not answered yet: no pod can be made that is in it."""
    EMPTY = "empty"
    """Nobody is in it. Whatever its driver says, that is neither good nor bad."""
    JOINING = "joining"
    """Pods are to be in it, and not all their nodes are."""
    JOINED = "joined"
    """The nodes of all its pods are in it."""
    USED = "in use"
    """Pods are in it; which nodes are, its driver does not tell."""
    COMPLETED = "completed"
    """All its pods have ended. It lives on until it is scaled in or deleted."""
    LEAVING = "leaving"
    """It is wanted no more, and is still there."""
    TERMINATING = "terminating"
    """It has been deleted, and somebody holds it."""


@dataclass(frozen=True, slots=True)
class DomainStatus:
    """One domain, seen from one set."""

    id: ResourceId
    state: State
    maker: str = ""
    """`engine`, `user`, or nothing while it is not there."""
    shared: bool = False
    replica: int | None = None
    """Whose it is, where it is a replica's own."""
    joined: tuple[JoinedNode, ...] = ()
    expected: int = 0
    """How many nodes have pods that are to be in it."""
    pods: Mapping[str, int] | None = None
    """Clique -> how many of its pods claim a place in it and have not ended."""
    ended: int = 0
    others: tuple[str, ...] = ()
    """Other sets that are in it by name."""
    why: str = ""
    """What it waits for, or what blocks it."""
    until: datetime | None = None
    finalizers: tuple[str, ...] = ()
    """Who holds it, while it terminates."""

    @property
    def ready(self) -> int:
        """How many nodes have joined for good."""
        return sum(one.ready for one in self.joined)


def domain_statuses(observed: Observed, plan: Plan, configuration: Configuration) -> tuple[DomainStatus, ...]:
    """The domains of one set, by name: those that it asks for, and those that it has had."""
    return tuple(sorted(_standings(observed, plan, configuration), key=lambda one: one.id))


def _standings(observed: Observed, plan: Plan, configuration: Configuration) -> Iterator[DomainStatus]:
    if observed.root.id.kind != kinds.PODCLIQUESET.name:
        return
    body: Body = observed.proposal or observed.root.body
    shared = {live.id: live for live in owned(observed, configuration)}
    told = {held.id: held for held in (*plan.pending, *plan.deferred)}
    users = _users(observed)
    for fabric in configuration.fabrics:
        looking = _Looking(observed, configuration, fabric, users, faulty=bool(plan.problems))
        wanted = {} if observed.root.deleting_since else {each.id: each for each in planned(observed.root.id, body, fabric)}
        own = {live.id: live for part in observed.slices.values() for live in part.of(fabric.kind.name)}
        there = own | {id: live for id, live in shared.items() if id.kind == fabric.kind.name}
        for id in sorted(wanted.keys() | there.keys()):
            live = there.get(id) or observed.references.objects.get(id)
            seat = _Role(wanted[id].request.shared, wanted[id].index, True) if id in wanted else _Role(id in shared, _index(live), False)
            yield looking.standing(id, live, told.get(id), seat)


def _users(observed: Observed) -> Mapping[str, tuple[Live, ...]]:
    """Claim template -> the set's pods that are made to claim what it gives, whether they have ended or not."""
    found: dict[str, list[Live]] = {}
    for pod in (pod for part in observed.slices.values() for pod in part.of(kinds.POD.name)):
        for template in {claim.get("resourceClaimTemplateName") for claim in pod.body["spec"].get("resourceClaims") or ()} - {None}:
            found.setdefault(template, []).append(pod)
    return {template: tuple(pods) for template, pods in found.items()}


@dataclass(frozen=True, slots=True)
class _Role:
    """What a domain is to the set."""

    shared: bool
    index: int | None
    wanted: bool


def _index(live: Live | None) -> int | None:
    told = live.labels.get(labels.REPLICA_INDEX, "") if live is not None else ""
    return int(told) if told.isdecimal() and len(told) < 8 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Looking:
    """What a look at one domain needs."""

    observed: Observed
    configuration: Configuration
    fabric: Fabric
    users: Mapping[str, tuple[Live, ...]]
    faulty: bool
    """Whether the set is wrong as it is stored: nothing is made of it then."""

    def standing(self, id: ResourceId, live: Live | None, held: Wait | None, seat: _Role) -> DomainStatus:
        """How it is doing."""
        why, until = (held.why, held.until) if held else ("", None)
        found = DomainStatus(id, State.MISSING, shared=seat.shared, replica=seat.index, why=why, until=until)
        if live is None and self.fabric.kind.name in self.observed.incomplete:
            return replace(found, state=State.UNKNOWN, why=found.why or f"{self.fabric.kind.name} objects were not seen completely")
        if live is None or self._is_anothers(live, shared=seat.shared):
            return replace(found, why=found.why or self._missing(live))
        users = self.users.get(self.fabric.template(live, live.id.name), ())
        running = [pod for pod in users if not drain.has_ended(pod)]
        nodes = {str(pod.body["spec"].get("nodeName") or "") for pod in running} - {""}
        found = replace(
            found,
            maker="engine" if is_made_here(live, self.fabric) else "user",
            joined=self.fabric.joined(live) if isinstance(self.fabric, DiagnosingFabric) else (),
            expected=len(nodes),
            pods=dict(sorted(Counter(pod.labels.get(labels.PODCLIQUE, "") for pod in running).items())),
            ended=len(users) - len(running),
            others=tuple(sorted({owner.name for owner in live.owners if owner.uid != self.observed.root.uid})),
        )
        if not seat.wanted and found.until is None:
            found = replace(found, until=self._deadline(live, running, alone=not found.others))
        if live.deleting_since is not None:
            return replace(found, state=State.TERMINATING, finalizers=tuple(map(str, live.body["metadata"].get("finalizers") or ())))
        return replace(found, state=self._state(live, found, len(running), nodes, wanted=seat.wanted))

    def _missing(self, live: Live | None) -> str:
        if live is not None:
            return "its name is taken"
        return "nothing is made of a set that is faulty" if self.faulty else "it is made first"

    def _state(self, live: Live, found: DomainStatus, running: int, nodes: set[str], *, wanted: bool) -> State:
        ready = {each.node for each in found.joined if each.ready}
        states = (
            (State.LEAVING, not wanted),
            (State.WAITING, not running and not self._leads(live)),
            (State.COMPLETED, not running and found.ended > 0),
            (State.EMPTY, not running),
            (State.USED, not isinstance(self.fabric, DiagnosingFabric)),
            (State.JOINING, not nodes or not nodes <= ready or len(nodes) < running),
        )
        return next((state for state, applies in states if applies), State.JOINED)

    def _deadline(self, live: Live, running: Sequence[Live], *, alone: bool) -> datetime | None:
        """What goes waits for those who use it, and no longer than they may take. Claims of others are not waited for."""
        led = claims(self.observed, [live], self.configuration) if alone else ()
        users = [*(User(pod, "pod") for pod in running), *(User(claim, "claim") for claim in led)]
        return drain.judge(users, self.configuration.drain).until

    def _is_anothers(self, live: Live, *, shared: bool) -> bool:
        if shared:
            return live.controller is not None and is_made_here(live, self.fabric)
        return live.controller is None or live.controller.uid != self.observed.root.uid

    def _leads(self, live: Live) -> bool:
        """Whether the driver has answered."""
        name = self.fabric.template(live, live.id.name)
        template = self.observed.references.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(live.id.namespace, name))
        return template is not None and not self.fabric.unready(live, template)
