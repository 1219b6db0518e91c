"""Termination: a gang that has been without its minimum for too long is recycled as a whole.

Nothing is stored: the evidence is the condition of a clique that is condemned with the others, and dies with it. So the witness goes
last: were it deleted first and we with it, nobody would know why the others should go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.verdict import Verdict, earliest
from resources.model.view import CliqueView, GroupView, View
from resources.policies.availability import breached_since


@dataclass(frozen=True, slots=True)
class Sentence:
    """Which cliques go, which of them goes last, and why."""

    cliques: frozenset[str]
    witness: str
    why: str
    whole: bool
    """Whether it is the whole replica of the set."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A breach of something that a gang cannot do without: since when, and the clique that proves it."""

    since: datetime
    witness: str


def judge(view: View, delay: timedelta, now: datetime) -> Verdict[tuple[Sentence, ...]]:
    """The sentences that are due. The answer stands until the next one falls due."""
    fatal = [charge for charge in _against_the_replica(view) if charge is not None]
    due = [charge for charge in fatal if now - charge.since >= delay]
    pending = [charge.since + delay for charge in fatal if now - charge.since < delay]
    if due:
        first = min(due, key=lambda charge: (charge.since, charge.witness))
        why = f"replica {view.index} is recycled: {first.witness} has been below minAvailable since {spelled(first.since)}"
        return Verdict((Sentence(frozenset(clique.name for clique in view.cliques), first.witness, why, whole=True),), why)
    sentences, later = _against_group_replicas(view, delay, now)
    return Verdict(tuple(sentences), until=earliest([*pending, *later]))


def spelled(moment: datetime) -> str:
    """A moment as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _against_the_replica(view: View) -> Iterator[Charge | None]:
    """A clique that stands alone is vital; a scaling group is when fewer of its replicas are sound than must be."""
    for clique in view.cliques:
        if clique.group is None:
            yield _charge([clique])
    for group in view.groups:
        yield _against_group(view, group)


def _charge(cliques: Sequence[CliqueView]) -> Charge | None:
    """The oldest breach among some cliques."""
    breaches = [Charge(since, clique.name) for clique in cliques if (since := breached_since(clique)) is not None]
    return min(breaches, key=lambda charge: (charge.since, charge.witness), default=None)


def _against_group(view: View, group: GroupView) -> Charge | None:
    """A breach of the group itself began when one replica too many was breached.

    Replicas of which something is missing count as breached from the start, but prove nothing by themselves: in the middle of a
    recycling the last witness still convicts the group.
    """
    charges: list[Charge] = []
    missing = 0
    for index in range(group.replicas):
        members = list(view.members(group, index))
        charge = _charge(members)
        if charge is not None:
            charges.append(charge)
        elif any(clique.live is None for clique in members):
            missing += 1
    too_many = group.replicas - group.group.min_available + 1
    if not charges or missing + len(charges) < too_many:
        return None
    charges.sort(key=lambda charge: (charge.since, charge.witness))
    last_straw = charges[max(0, too_many - missing - 1)]
    return replace(charges[0], since=last_straw.since)


def _against_group_replicas(view: View, delay: timedelta, now: datetime) -> tuple[list[Sentence], list[datetime]]:
    """Replicas of scaling groups that may go alone, because the group keeps its minimum without them."""
    sentences: list[Sentence] = []
    later: list[datetime] = []
    for group in view.groups:
        breached = [(index, charge) for index in range(group.replicas) if (charge := _charge(list(view.members(group, index))))]
        if group.replicas - len(breached) < group.group.min_available:
            continue
        for index, charge in breached:
            if now - charge.since < delay:
                later.append(charge.since + delay)
                continue
            cliques = frozenset(clique.name for clique in view.members(group, index))
            why = f"replica {index} of {group.name} is recycled: {charge.witness} has been below minAvailable since {spelled(charge.since)}"
            sentences.append(Sentence(cliques, charge.witness, why, whole=False))
    return sentences, later
