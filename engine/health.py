"""Health: the conditions `Ready`, `Reconciling` and `Stalled` of a root, from which GitOps tools conclude whether it is healthy.

`Ready` is always there. `Reconciling` and `Stalled` are there only while they are True, never both, and never beside a True `Ready`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from engine.conditions import READY, Condition, condition, find, is_true, merge
from engine.observed import Live, moment
from engine.plan import Alarm, Wait
from engine.reason import Reason
from engine.resource import Body

RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
TYPES: Final = (READY, RECONCILING, STALLED)
BREACHED: Final = "MinAvailableBreached"
"""The reason of a root that was ready in its current generation and has lost pods since."""
INVALID: Final = "ValidationFailed"
"""The reason of a root with mistakes in what a user specified."""
HARMLESS: Final = frozenset({Reason.NOT_LISTED, Reason.OWNER_MISSING, Reason.IN_USE})
"""What blocks an object and says nothing of the root: it follows from another obstacle, or passes with the pods that use it."""
PATIENCE: Final = timedelta(minutes=1)
"""For how long what another tool may still provide has to be missing before the root is stalled."""
BLOCKED: Final = "Blocked"
"""The reason of what waits for a user or another controller, where there is no word for what it waits for."""
MAX_MESSAGE: Final = 1024


class Obstacle(Struct, frozen=True):
    """What keeps a root from becoming ready until a user or another controller acts."""

    reason: str
    message: str
    may_pass: bool = False
    """Whether it may pass soon without an action about this root: it stalls the root only after `PATIENCE`."""


class Readiness(Struct, frozen=True):
    """How far a root is, as its blueprint sees it."""

    ready: bool
    """Whether its current generation is carried out completely, and serves or has nothing to serve."""
    reason: str
    message: str
    may_have_lost: bool = False
    """Whether only ready pods are missing: a root that was ready in this generation has lost them."""
    obstacle: Obstacle | None = None
    has_own_ready: bool = False
    """Whether the blueprint writes the condition `Ready` itself, with reasons of its own: they stay unless an obstacle denies them."""


class RootHealth(Struct, frozen=True):
    """The conditions, and when time alone changes them."""

    conditions: tuple[Condition, ...]
    types: tuple[str, ...] = TYPES
    """The types that the engine writes: of these there are no others."""
    until: datetime | None = None


def obstacle_of(deferred: Iterable[Wait], alarms: Iterable[Alarm], problems: Sequence[str] = ()) -> Obstacle | None:
    """The first thing that stays until a user or another controller acts, what cannot pass by itself first; None if there is none.

    What is missing besides (an owner) or only until everything can be listed is none, nor what goes once the pods that use it have gone.
    """
    if problems:
        return Obstacle(INVALID, "; ".join(problems))
    blocked = (wait for wait in deferred if wait.blocked and wait.reason not in HARMLESS)
    obstacles = [_of_alarm(alarm) for alarm in alarms if alarm.blocking or alarm.fault]
    obstacles += [_of_wait(wait) for wait in blocked]
    return min(obstacles, key=lambda obstacle: obstacle.may_pass, default=None)


def _of_alarm(alarm: Alarm) -> Obstacle:
    return Obstacle(INVALID, alarm.text) if alarm.fault else Obstacle(alarm.reason, alarm.text, alarm.may_pass)


def _of_wait(wait: Wait) -> Obstacle:
    message = "; ".join(text for text in (f"{wait.id}: {wait.why}", wait.remedy) if text)
    return Obstacle(wait.reason.value if wait.reason else BLOCKED, message, may_pass=wait.reason is not Reason.NAME_CONFLICT)


def health(readiness: Readiness, deferred: Sequence[Wait], alarms: Sequence[Alarm], root: Live, now: datetime) -> RootHealth:
    """The conditions of the root. `deferred` and `alarms` are those of its plan."""
    old = _conditions(root)
    unlisted = next((wait for wait in deferred if wait.reason is Reason.NOT_LISTED), None)
    ready: bool | None = readiness.ready
    until: datetime | None = None
    second = RECONCILING
    if (obstacle := readiness.obstacle or obstacle_of(deferred, alarms)) is not None:
        ready, reason, message = False, obstacle.reason, obstacle.message
        stalls_at = _stalls_at(obstacle, old, root.generation, now)
        second, until = (STALLED, None) if stalls_at <= now else (RECONCILING, stalls_at)
    elif unlisted is not None:
        ready, reason, message = None, Reason.NOT_LISTED.value, f"{unlisted.id}: {unlisted.why}"
    else:
        is_loss = not ready and readiness.may_have_lost and _was_ready(old, root.generation)
        reason, message = BREACHED if is_loss else readiness.reason, readiness.message
    wanted = {READY: ready} if ready else {READY: ready, second: True}
    types = TYPES[1:] if readiness.has_own_ready else TYPES
    if readiness.has_own_ready and (ready or not readiness.ready):
        del wanted[READY]
    conditions = (_condition(type, status, reason, message, root.generation, old) for type, status in wanted.items())
    return RootHealth(tuple(conditions), types, until)


def with_health(status: Body, health: RootHealth, root: Live) -> Body:
    """The desired status with these conditions: where the root has them, else before all others."""
    types = [each.get("type") for each in _conditions(root)]
    place = {type: number for number, type in enumerate(types)}
    written = {*health.types, *(each["type"] for each in health.conditions)}
    others = [each for each in status.get("conditions") or () if each.get("type") not in written]
    wanted = sorted(
        (*health.conditions, *others), key=lambda each: place.get(each.get("type"), -1 if each.get("type") in TYPES else len(types))
    )
    return {**status, "conditions": wanted}


def _conditions(root: Live) -> Sequence[Condition]:
    return (root.body.get("status") or {}).get("conditions") or ()


def _condition(type: str, status: bool | None, reason: str, message: str, generation: int, old: Sequence[Condition]) -> Condition:
    """One condition, with the time since which it has this status; `Reconciling` with that since which it has this reason."""
    known = find(old, type)
    if known is not None and type == RECONCILING and known.get("reason") != reason:
        known = None
    desired = condition(type, status, reason, message[:MAX_MESSAGE], generation=generation)
    (merged,) = merge((known,) if known is not None else (), (desired,), owned=())
    return merged


def _stalls_at(obstacle: Obstacle, old: Sequence[Condition], generation: int, now: datetime) -> datetime:
    """When the obstacle counts: at once if it cannot pass, if it has counted before, or if the root has been ready in this generation."""
    stalled, reconciling = find(old, STALLED), find(old, RECONCILING)
    is_known = stalled is not None and stalled.get("status") == "True" and stalled.get("reason") == obstacle.reason
    if not obstacle.may_pass or is_known or _was_ready(old, generation):
        return now
    if reconciling is None or reconciling.get("status") != "True" or reconciling.get("reason") != obstacle.reason:
        return now + PATIENCE
    return _moment(reconciling.get("lastTransitionTime"), now) + PATIENCE


def _was_ready(old: Sequence[Condition], generation: int) -> bool:
    """Whether the root has been ready in this generation: it says so, or that it has lost pods since."""
    ready = find(old, READY)
    if ready is None or ready.get("observedGeneration") != generation:
        return False
    return is_true(old, READY) or ready.get("reason") == BREACHED


def _moment(text: Any, default: datetime) -> datetime:
    """A transition time; what another program wrote may be no time at all."""
    try:
        at = moment(text)
    except (TypeError, ValueError):
        return default
    return at if at.tzinfo is not None else default
