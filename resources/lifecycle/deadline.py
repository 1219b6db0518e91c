"""Deadline: which updates have made no progress for the `progressDeadline` of their clique or scaling group. This is only reported.

Progress is that a pod of the replica of the set becomes ready that was created since the update began. The clock of a clique or a group
does not run while it waits for the turn of another one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from engine.conditions import find
from engine.observed import Live, moment
from engine.reason import Verdict, earliest
from resources.lifecycle.rollout import is_in_transition
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, View

Part = tuple[Live, timedelta, Sequence[CliqueView]]
"""A PodClique or PodCliqueScalingGroup, its deadline, and its cliques."""


def stalled_updates(view: View, now: datetime) -> Verdict[Mapping[str, datetime]]:
    """PodClique or PodCliqueScalingGroup -> since when its update has made no progress, where that is longer than its deadline.

    The verdict is valid until the next deadline passes.
    """
    stalled: dict[str, datetime] = {}
    coming: list[datetime] = []
    for live, deadline, cliques in _parts(view):
        started = _started(live)
        if started is None or _waits_for_others(view, cliques):
            continue
        since = max((started, *_became_ready(view, started)))
        if now - since >= deadline:
            stalled[live.id.name] = since
        else:
            coming.append(since + deadline)
    return Verdict(stalled, until=earliest(coming))


def _parts(view: View) -> Iterator[Part]:
    for clique in view.cliques:
        deadline = clique.clique.budget.progress_deadline if clique.group is None else None
        if deadline is not None and clique.live is not None and not clique.terminating:
            yield clique.live, deadline, (clique,)
    for group in view.groups:
        deadline = group.group.budget.progress_deadline
        if deadline is not None and group.live is not None and not group.terminating:
            yield group.live, deadline, [clique for clique in view.cliques if clique.group is group]


def _started(live: Live) -> datetime | None:
    """When the update in progress began, as the status records it; None if none is."""
    progress = (live.body.get("status") or {}).get("updateProgress") or {}
    started = progress.get("updateStartedAt")
    return moment(started) if started and not progress.get("updateEndedAt") else None


def _waits_for_others(view: View, cliques: Sequence[CliqueView]) -> bool:
    own = {clique.name for clique in cliques}
    moving = {clique.name for clique in view.cliques if is_in_transition(clique)}
    return bool(moving) and moving.isdisjoint(own)


def _became_ready(view: View, started: datetime) -> Iterator[datetime]:
    """When each ready pod of the replica became ready that was created since then."""
    return _ready_times(pod for clique in view.cliques for pod in clique.pods if pod.ready and pod.live.created_at >= started)


def _ready_times(pods: Iterable[PodFacts]) -> Iterator[datetime]:
    for pod in pods:
        ready = find((pod.live.body.get("status") or {}).get("conditions") or (), "Ready") or {}
        if time := ready.get("lastTransitionTime"):
            yield moment(time)
