"""Termination: a gang that stays below its minimum for the set's terminationDelay is deleted as a whole, and then created again.

Nothing is stored. A breach is proved by the MinAvailableBreached condition of a clique that is deleted with its gang. That clique is
deleted last: after a crash its condition is the only evidence that the rest of the gang must still be deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from engine.observed import timestamp
from engine.reason import Verdict, earliest
from resources.lifecycle.availability import FIRST_MOMENTS, breached_since, group_breached_since, is_sound
from resources.model.view import CliqueView, GroupView, View


class Termination(Struct, frozen=True):
    """The deletion of a gang: all cliques of a replica of the set, or of one replica of a scaling group."""

    cliques: frozenset[str]
    """The names of their PodCliques."""
    deleted_last: str
    """The PodClique that is deleted after the others: its condition is the evidence of the breach."""
    why: str
    whole: bool
    """Whether it deletes the whole replica of the set; otherwise one replica of a scaling group."""


class Breach(Struct, frozen=True):
    """A clique or a scaling group below its minAvailable."""

    name: str
    """The name of the PodClique or PodCliqueScalingGroup."""
    since: datetime
    """When the breach began; terminationDelay counts from then."""
    evidence: str
    """The name of the PodClique whose condition proves the breach."""
    created_at: datetime
    """When that clique was created."""


class _GroupState(Struct, frozen=True):
    """A scaling group with the breaches of its replicas."""

    group: GroupView
    has_minimum: bool
    """Whether at least minAvailable of its replicas are complete and not breached."""
    breaches: Mapping[int, Breach]
    """The oldest breach of each breached replica, by index."""


def terminations(view: View, delay: timedelta, now: datetime) -> Verdict[tuple[Termination, ...]]:
    """The terminations that are due now: one of the whole replica of the set, or any number of replicas of scaling groups.

    `delay` is the set's terminationDelay. The verdict is valid until the next termination is due.
    """
    groups = [_group_state(view, group) for group in view.groups]
    of_replica = [*_standalone_breaches(view), *(breach for state in groups if (breach := _group_breach(state)))]
    if due := [breach for breach in of_replica if now - breach.since >= delay]:
        termination = _of_replica(view, min(due, key=_age))
        return Verdict((termination,), termination.why)
    of_group_replicas = [(state.group, index, breach) for state in groups for index, breach in _separate_breaches(state).items()]
    breaches = (*of_replica, *(breach for *_, breach in of_group_replicas))
    next_due = earliest(breach.since + delay for breach in breaches if now - breach.since < delay)
    separate = (_of_group_replica(view, *entry) for entry in of_group_replicas if now - entry[-1].since >= delay)
    return Verdict(tuple(separate), until=next_due)


def _of_replica(view: View, breach: Breach) -> Termination:
    why = f"replica {view.index} is recycled: {breach.name} has been below minAvailable since {timestamp(breach.since)}"
    return Termination(frozenset(clique.name for clique in view.cliques), breach.evidence, why, whole=True)


def _of_group_replica(view: View, group: GroupView, index: int, breach: Breach) -> Termination:
    why = f"replica {index} of {group.name} is recycled: {breach.name} has been below minAvailable since {timestamp(breach.since)}"
    return Termination(frozenset(clique.name for clique in view.members(group, index)), breach.evidence, why, whole=False)


def _standalone_breaches(view: View) -> Iterator[Breach]:
    """The breached cliques outside of scaling groups: the replica of the set needs each of them."""
    for clique in view.cliques:
        if clique.group is None and (breach := _oldest_breach([clique])):
            yield breach


def _group_breach(state: _GroupState) -> Breach | None:
    """The breach of a group; None while it has its minimum, and if it has not had its minimum since its breached cliques were created.

    A replica that lacks a clique, or whose pods have not been scheduled again, is unavailable but is no evidence. The evidence is a
    breached clique that existed before the group fell below its minimum. The breach begins when both the clique and the group are breached.
    """
    onset = group_breached_since(state.group)
    if onset is None or state.has_minimum:
        return None
    evidence = [breach for breach in state.breaches.values() if onset > breach.created_at + FIRST_MOMENTS]
    if not evidence:
        return None
    oldest = min(evidence, key=_age)
    return replace(oldest, name=state.group.name, since=max(onset, oldest.since))


def _separate_breaches(state: _GroupState) -> Mapping[int, Breach]:
    """The breaches for which a replica of the group is recycled alone, by its index: all of them while the group has its minimum.

    A group below its minimum has none if its own breach recycles the whole replica of the set, or may do so once its condition is True.
    Otherwise it has not had its minimum yet: breached replicas are recycled alone if at least minAvailable others are not breached.
    """
    has_enough_others = state.group.replicas - len(state.breaches) >= state.group.group.min_available
    had_no_minimum = group_breached_since(state.group) is not None and _group_breach(state) is None
    return state.breaches if state.has_minimum or (had_no_minimum and has_enough_others) else {}


def _group_state(view: View, group: GroupView) -> _GroupState:
    replicas = view.members_by_replica(group)
    breaches = {index: breach for index, members in enumerate(replicas) if (breach := _oldest_breach(members))}
    return _GroupState(group, sum(map(is_sound, replicas)) >= group.group.min_available, breaches)


def _oldest_breach(cliques: Sequence[CliqueView]) -> Breach | None:
    breaches = [
        Breach(clique.name, since, clique.name, clique.live.created_at)
        for clique in cliques
        if clique.live is not None and (since := breached_since(clique)) is not None
    ]
    return min(breaches, key=_age, default=None)


def _age(breach: Breach) -> tuple[datetime, str]:
    return breach.since, breach.evidence
