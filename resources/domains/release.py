"""Parting: fabric domains that are not asked for any more: they go when what uses them has gone, or has had time enough."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engine.ids import Owner
from engine.observed import EMPTY, Live, Observed, Slice
from engine.plan import Alarm, Wait
from engine.resource import Resource, Stance
from engine.verdict import Verdict, earliest
from resources.base import kinds
from resources.domains import drain
from resources.domains.users import users_of
from resources.model.domain import is_made_here, policy_of
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric


@dataclass(frozen=True, slots=True, eq=False)
class DomainRelease:
    """Domains that are not wanted any more, as what they are to become, until when, and what people must know."""

    resources: tuple[Resource, ...] = ()
    until: datetime | None = None
    alarms: tuple[Alarm, ...] = ()

    @property
    def pending(self) -> tuple[Wait, ...]:
        """Those that are still in use: nobody's turn but that of who uses them."""
        return tuple(Wait(one.id, one.why, self.until) for one in self.resources if one.stance is Stance.HOLD)


def leaving(
    observed: Observed, lives: Iterable[Live], configuration: Configuration, why: str, now: datetime, slices: Iterable[Slice]
) -> DomainRelease:
    """What becomes of these domains, whose pods are in those slices: they go when what uses them has gone, or has had time enough."""
    by_kind = {fabric.kind.name: fabric for fabric in configuration.fabrics}
    within = tuple(slices)
    found = [_left(observed, live, by_kind[live.id.kind], configuration, why, now, within) for live in lives]
    alarms = tuple(_forced(resource, verdict) for resource, verdict in found if resource.stance is Stance.DROP and verdict.why)
    return DomainRelease(tuple(resource for resource, _ in found), earliest(verdict.until for _, verdict in found), alarms)


def _left(
    observed: Observed, live: Live, fabric: Fabric, configuration: Configuration, why: str, now: datetime, slices: Sequence[Slice]
) -> tuple[Resource, Verdict[str]]:
    shared = live.controller is None
    owner = Owner(observed.root.id, kinds.PODCLIQUESET.api_version, controller=not shared)
    others = shared and any(one.uid != observed.root.uid for one in live.owners)
    users = users_of(observed, fabric, live, slices, claims=not others)
    verdict = drain.judge(users, configuration.drain, now)
    resource = Resource(live.id, {}, why, (owner,), stance=Stance.DROP, policy=policy_of(fabric, shared=shared))
    if verdict.value:
        resource = replace(resource, stance=Stance.HOLD, why=f"{why}; {verdict.value}")
    return resource, verdict


def _forced(resource: Resource, verdict: Verdict[str]) -> Alarm:
    kind, name = resource.id.kind, resource.id.name
    return Alarm(f"{kind}DrainTimedOut", f"{kind} {name} goes although it is in use: {verdict.why}")


def owned(observed: Observed, configuration: Configuration, own: Slice = EMPTY) -> tuple[Live, ...]:
    """The domains that are no replica's: those that the set shares, and any among its `own` whose names tell of no replica."""
    return (*(live for fabric in configuration.fabrics for live in own.of(fabric.kind.name)), *_shared_with(observed, configuration))


def _shared_with(observed: Observed, configuration: Configuration) -> tuple[Live, ...]:
    if not any(observed.references.of(fabric.kind.name) for fabric in configuration.fabrics):
        return ()

    def by_owner(around: Slice) -> Mapping[str, tuple[Live, ...]]:
        found: dict[str, list[Live]] = {}
        for live in (live for fabric in configuration.fabrics for live in around.of(fabric.kind.name) if _is_shared(live, fabric)):
            for owner in live.owners:
                found.setdefault(owner.uid, []).append(live)
        return {uid: tuple(lives) for uid, lives in found.items()}

    return observed.references.index("domains by owner", by_owner).get(observed.root.uid, ())


def _is_shared(live: Live, fabric: Fabric) -> bool:
    """Whether it is a domain of our making that nobody has for himself. A user's may have a set as its owner, so as to go with it."""
    return live.controller is None and is_made_here(live, fabric)
