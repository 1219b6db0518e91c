"""LwsGroups: the groups of a LeaderWorkerSet as they are, which of them a rollout replaces next, and what the status says of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from grove_sandbox.actors.body import Body, conditions_of, labels_of, status_of, timestamp, uid_of
from grove_sandbox.actors.lws_pods import (
    LEADER_INDEX,
    NAME,
    REVISION,
    WORKER,
    controller_of,
    group_index,
    is_leader,
    size_of,
    template_revision,
)
from grove_sandbox.product import conditions


class LwsGroup(Struct, frozen=True):
    """One group: its leader, which may be terminating, and the workers that this leader controls."""

    index: int
    leader: Body
    workers: tuple[Body, ...]

    @property
    def pods(self) -> tuple[Body, ...]:
        """The leader and the workers."""
        return (self.leader, *self.workers)

    def is_ready(self, size: int) -> bool:
        """Whether all of its pods run and are ready."""
        return len(self.pods) == size and all(map(_is_ready, self.pods))

    def is_updated(self, revision: str) -> bool:
        """Whether its pods are of this revision."""
        return all(labels_of(pod).get(REVISION) == revision for pod in self.pods)


def groups_of(lws: Body, pods: Iterable[Body]) -> dict[int, LwsGroup]:
    """The groups of the set by index. Pods that neither the set nor one of its leaders controls are left out."""
    known = list(pods)
    leaders = [pod for pod in known if is_leader(pod) and controller_of(pod) == uid_of(lws) and group_index(pod) >= 0]
    workers: dict[str, list[Body]] = {}
    for pod in known:
        if not is_leader(pod):
            workers.setdefault(controller_of(pod), []).append(pod)
    return {group_index(leader): LwsGroup(group_index(leader), leader, tuple(workers.get(uid_of(leader), ()))) for leader in leaders}


def outdated(lws: Body, groups: Mapping[int, LwsGroup]) -> list[LwsGroup]:
    """The groups of an older revision that may be replaced now: from the last one down, at most `maxUnavailable` at once.

    Groups that are not ready are no loss and do not wait for others. `maxSurge` is taken as 0, `partition` is kept.
    """
    rolling = (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    count, size, revision = int(lws["spec"].get("replicas", 1)), size_of(lws), template_revision(lws)
    ready = [index in groups and groups[index].is_ready(size) for index in range(count)]
    current = [index in groups and groups[index].is_updated(revision) for index in range(count)]
    done = next((number for number in range(count) if not (ready[-1 - number] and current[-1 - number])), count)
    lowest = max(0, count - done - max(1, scaled(rolling.get("maxUnavailable", 1), count)))
    partition = lowest + ready[:lowest].count(False)
    for index in range(min(partition, count - 1), lowest - 1, -1):
        if ready[index] and not current[index]:
            break
        partition = index
    partition = max(partition, int(rolling.get("partition") or 0))
    return [groups[index] for index in range(partition, count) if index in groups and not current[index]]


def scaled(value: int | str, total: int, *, up: bool = False) -> int:
    """A number, or a percentage of the total, rounded down or up; 0 if it is malformed."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if not digits.isdecimal() or len(digits) > 9 or digits == value:
        return 0
    exact = int(digits) * total / 100
    return math.ceil(exact) if up else math.floor(exact)


def status(lws: Body, groups: Mapping[int, LwsGroup], now: datetime) -> Mapping[str, Any]:
    """The status of the set."""
    count, size, revision = int(lws["spec"].get("replicas", 1)), size_of(lws), template_revision(lws)
    ready = {index for index, group in groups.items() if group.is_ready(size)}
    updated = {index for index, group in groups.items() if group.is_updated(revision)}
    wanted = {index for index in groups if index < count}
    true: tuple[str, ...] = ("Progressing",)
    if wanted - updated:
        true = ("UpdateInProgress", "Progressing")
    elif len(wanted & ready) == count:
        true = ("Available",)
    return {
        "replicas": len(groups),
        "readyReplicas": len(ready),
        "updatedReplicas": len(updated),
        "observedGeneration": lws["metadata"].get("generation", 1),
        "hpaPodSelector": f"{NAME}={lws['metadata']['name']},{WORKER}={LEADER_INDEX}",
        "conditions": _conditions(lws, true, timestamp(now)),
    }


_REASONS = {
    "Available": ("AllGroupsReady", "All replicas are ready"),
    "Progressing": ("GroupsProgressing", "Replicas are progressing"),
    "UpdateInProgress": ("GroupsUpdating", "Rolling Upgrade is in progress"),
}


def _conditions(lws: Body, true: Sequence[str], now: str) -> list[Mapping[str, Any]]:
    """The conditions, of which these are true. Available excludes the other two; those two do not end one another."""
    generation = lws["metadata"].get("generation", 1)
    result: list[Mapping[str, Any]] = []
    for type_, (reason, message) in _REASONS.items():
        live = conditions.find(conditions_of(lws), type_)
        if type_ not in true and live is None:
            continue
        ended = ("Available" in true) != (type_ == "Available")
        is_true = type_ in true or (live is not None and live.get("status") == "True" and not ended)
        new = {"type": type_, "status": "True" if is_true else "False", "reason": reason, "message": message}
        kept = live is not None and live.get("status") == new["status"]
        time = live["lastTransitionTime"] if live is not None and kept else now
        result.append({**new, "lastTransitionTime": time, "observedGeneration": generation})
    return result


def _is_ready(pod: Body) -> bool:
    return status_of(pod).get("phase") == "Running" and conditions.is_true(conditions_of(pod), "Ready")
