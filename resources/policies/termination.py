"""Termination: a gang that has been without its minimum for too long is recycled as a whole.

Nothing is stored: the evidence is the condition of a clique that is condemned with the others, and dies with it. So the deleted_last goes
last: were it deleted first and we with it, nobody would know why the others should go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.verdict import Verdict, earliest
from resources.model.view import CliqueView, GroupView, View
from resources.policies.availability import breached_since


@dataclass(frozen=True, slots=True)
class Termination:
    """Which cliques go, which of them goes last, and why."""

    cliques: frozenset[str]
    deleted_last: str
    why: str
    whole: bool
    """Whether it is the whole replica of the set."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A breach of something that a gang cannot do without: since when, and the clique that proves it."""

    since: datetime
    deleted_last: str


def judge(view: View, delay: timedelta, now: datetime) -> Verdict[tuple[Termination, ...]]:
    """The terminations that are due. The answer stands until the next one falls due."""
    fatal = [breach for breach in _against_the_replica(view) if breach is not None]
    due = [breach for breach in fatal if now - breach.since >= delay]
    pending = [breach.since + delay for breach in fatal if now - breach.since < delay]
    if due:
        first = min(due, key=lambda breach: (breach.since, breach.deleted_last))
        why = f"replica {view.index} is recycled: {first.deleted_last} has been below minAvailable since {spelled(first.since)}"
        return Verdict((Termination(frozenset(clique.name for clique in view.cliques), first.deleted_last, why, whole=True),), why)
    terminations, later = _against_group_replicas(view, delay, now)
    return Verdict(tuple(terminations), until=earliest([*pending, *later]))


def spelled(moment: datetime) -> str:
    """A moment as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _against_the_replica(view: View) -> Iterator[Breach | None]:
    """A clique that stands alone is vital; a scaling group is when fewer of its replicas are sound than must be."""
    for clique in view.cliques:
        if clique.group is None:
            yield _oldest_breach([clique])
    for group in view.groups:
        yield _against_group(view, group)


def _oldest_breach(cliques: Sequence[CliqueView]) -> Breach | None:
    """The oldest breach among some cliques."""
    breaches = [Breach(since, clique.name) for clique in cliques if (since := breached_since(clique)) is not None]
    return min(breaches, key=lambda breach: (breach.since, breach.deleted_last), default=None)


def _against_group(view: View, group: GroupView) -> Breach | None:
    """A breach of the group itself began when one replica too many was breached.

    Replicas of which something is missing count as breached from the start, but prove nothing by themselves: in the middle of a
    recycling the last deleted_last still convicts the group.
    """
    breaches: list[Breach] = []
    missing = 0
    for index in range(group.replicas):
        members = list(view.members(group, index))
        breach = _oldest_breach(members)
        if breach is not None:
            breaches.append(breach)
        elif any(clique.live is None for clique in members):
            missing += 1
    too_many = group.replicas - group.group.min_available + 1
    if not breaches or missing + len(breaches) < too_many:
        return None
    breaches.sort(key=lambda breach: (breach.since, breach.deleted_last))
    last_straw = breaches[max(0, too_many - missing - 1)]
    return replace(breaches[0], since=last_straw.since)


def _against_group_replicas(view: View, delay: timedelta, now: datetime) -> tuple[list[Termination], list[datetime]]:
    """Replicas of scaling groups that may go alone, because the group keeps its minimum without them."""
    terminations: list[Termination] = []
    later: list[datetime] = []
    for group in view.groups:
        breached = [(index, breach) for index in range(group.replicas) if (breach := _oldest_breach(list(view.members(group, index))))]
        if group.replicas - len(breached) < group.group.min_available:
            continue
        for index, breach in breached:
            if now - breach.since < delay:
                later.append(breach.since + delay)
                continue
            cliques = frozenset(clique.name for clique in view.members(group, index))
            why = f"replica {index} of {group.name} is recycled: {breach.deleted_last} has been below minAvailable since {spelled(breach.since)}"
            terminations.append(Termination(cliques, breach.deleted_last, why, whole=False))
    return terminations, later
