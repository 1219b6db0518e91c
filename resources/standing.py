"""Standing: how the fabric domains of a set are doing, in our words: a driver's "Ready" says nothing of a domain that nobody is in."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.operation import Held, Plan
from engine.resource import Body
from resources import fabric, kinds, labels
from resources.planned import planned
from resources.policies import drain
from resources.policies.drain import User
from resources.ports import Explaining, Fabric, Joined
from resources.setup import Setup


class State(StrEnum):
    """One word for a domain."""

    MISSING = "missing"
    """Asked for, and not there."""
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
class Standing:
    """One domain, seen from one set."""

    id: ResourceId
    state: State
    maker: str = ""
    """`engine`, `user`, or nothing while it is not there."""
    shared: bool = False
    replica: int | None = None
    """Whose it is, where it is a replica's own."""
    joined: tuple[Joined, ...] = ()
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


def standings(observed: Observed, plan: Plan, setup: Setup) -> tuple[Standing, ...]:
    """The domains of one set, by name: those that it asks for, and those that it has had."""
    return tuple(sorted(_standings(observed, plan, setup), key=lambda one: one.id))


def _standings(observed: Observed, plan: Plan, setup: Setup) -> Iterator[Standing]:
    if observed.root.id.kind != kinds.PODCLIQUESET.name:
        return
    body: Body = observed.proposal or observed.root.body
    shared = {live.id: live for live in fabric.owned(observed, setup)}
    told = {held.id: held for held in (*plan.waiting, *plan.held)}
    for one in setup.fabrics:
        wanted = {} if observed.root.deleting_since else {each.id: each for each in planned(observed.root.id, body, one)}
        own = {live.id: live for part in observed.slices.values() for live in part.of(one.kind.name)}
        there = own | {id: live for id, live in shared.items() if id.kind == one.kind.name}
        for id in sorted(wanted.keys() | there.keys()):
            live = there.get(id) or observed.neighbours.objects.get(id)
            seat = _Seat(wanted[id].wish.shared, wanted[id].index, True) if id in wanted else _Seat(id in shared, _index(live), False)
            yield _until(observed, live, setup, _standing(observed, one, id, live, told.get(id), seat), seat)


@dataclass(frozen=True, slots=True)
class _Seat:
    """What a domain is to the set."""

    shared: bool
    index: int | None
    wanted: bool


def _index(live: Live | None) -> int | None:
    told = live.labels.get(labels.REPLICA_INDEX, "") if live is not None else ""
    return int(told) if told.isdecimal() and len(told) < 8 else None


def _until(observed: Observed, live: Live | None, setup: Setup, found: Standing, seat: _Seat) -> Standing:
    """What goes waits for those who use it, and no longer than they may take."""
    if live is None or seat.wanted or found.until is not None:
        return found
    one = next(one for one in setup.fabrics if one.kind.name == live.id.kind)
    claims = () if found.others else fabric.claims(observed, [live], setup)
    users = [User(pod, "pod") for pod in _pods(observed, one, live) if not drain.has_ended(pod)]
    return replace(found, until=drain.judge([*users, *(User(claim, "claim") for claim in claims)], setup.drain).until)


def _standing(observed: Observed, one: Fabric, id: ResourceId, live: Live | None, held: Held | None, seat: _Seat) -> Standing:
    why, until = (held.why, held.until) if held else ("", None)
    found = Standing(id, State.MISSING, shared=seat.shared, replica=seat.index, why=why, until=until)
    if live is None or (not seat.shared and not _is_own(live, observed)):
        return replace(found, why=found.why or ("it is made first" if live is None else "its name is taken"))
    users = list(_pods(observed, one, live))
    running = [pod for pod in users if not drain.has_ended(pod)]
    nodes = {str(pod.body["spec"].get("nodeName") or "") for pod in running} - {""}
    joined = one.joined(live) if isinstance(one, Explaining) else ()
    found = replace(
        found,
        maker="engine" if fabric.is_made_here(live, one) else "user",
        joined=joined,
        expected=len(nodes),
        pods=dict(sorted(Counter(pod.labels.get(labels.PODCLIQUE, "") for pod in running).items())),
        ended=len(users) - len(running),
        others=tuple(sorted({owner.name for owner in live.owners if owner.uid != observed.root.uid})),
    )
    if live.deleting_since is not None:
        return replace(found, state=State.TERMINATING, finalizers=tuple(map(str, live.body["metadata"].get("finalizers") or ())))
    return replace(found, state=_state(observed, one, live, found, len(running), nodes, wanted=seat.wanted))


def _state(observed: Observed, one: Fabric, live: Live, found: Standing, running: int, nodes: set[str], *, wanted: bool) -> State:
    ready = {each.node for each in found.joined if each.ready}
    states = (
        (State.LEAVING, not wanted),
        (State.WAITING, not running and not _leads(observed, one, live)),
        (State.COMPLETED, not running and found.ended > 0),
        (State.EMPTY, not running),
        (State.USED, not isinstance(one, Explaining)),
        (State.JOINING, not nodes or not nodes <= ready or len(nodes) < running),
    )
    return next((state for state, applies in states if applies), State.JOINED)


def _is_own(live: Live, observed: Observed) -> bool:
    return live.controller is not None and live.controller.uid == observed.root.uid


def _leads(observed: Observed, one: Fabric, live: Live) -> bool:
    """Whether the driver has answered."""
    template = observed.neighbours.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(live.id.namespace, one.template(live, live.id.name)))
    return template is not None and not one.unready(live, template)


def _pods(observed: Observed, one: Fabric, live: Live) -> Iterator[Live]:
    """The set's pods that claim a place in it, whether they have ended or not."""
    template = one.template(live, live.id.name)
    return (pod for part in observed.slices.values() for pod in part.of(kinds.POD.name) if drain.asks(pod, template))
