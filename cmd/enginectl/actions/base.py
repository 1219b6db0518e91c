"""Base: what exists when other manifests were applied and everything is settled, to compare a change with, without a cluster."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.forecast.forecast import End, Forecast
from engine.forecast.simulation import existing, outcome
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import Intent
from engine.observed import Live
from engine.proposal import proposed_root
from engine.runtime.clock import StandingClock
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from enginectl.actions.planning import first_pass
from enginectl.base.options import FieldValidation
from enginectl.input.admission import admit_against
from enginectl.input.roots import Roots
from enginectl.wiring.cluster import LIVE, engine_of
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection
from providers.recorded_objects import RecordedObjects
from providers.snapshot import Snapshot
from resources.base.fields import mapping, mappings
from resources.ports.configuration import Configuration
from resources.preview.forecasting import can_be_forecast, restricted, simulated

BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""When a base begins that has no object with a time."""
SETTLING: Final = timedelta(minutes=1)
"""How long after the last pass of the base the change is looked at."""
MISSING: Final = "it is in the base and not in the files of the change: it stays"


class SettledBase(Struct, frozen=True, eq=False):
    """What a change is compared with."""

    provider: Provider
    at: datetime
    """When everything is settled."""
    notes: Mapping[ResourceId, tuple[str, ...]]
    """Root -> why it is not settled."""


async def settled_base(
    wiring: Wiring, base: Roots, provider: Provider, selection: Selection, *, against: str, limits: Limits
) -> SettledBase:
    """What exists when the base has been applied to what the provider shows. Nothing is written.

    Equal manifests and equal objects give equal results: time begins with the last change of an object, that of a live cluster is now.
    Raises `InputError` if a manifest of the base is rejected.
    """
    now = wiring.clock.now() if against == LIVE else await latest(wiring, provider, selection)
    standing = StandingClock(now)
    # The base is what has been applied: its pods exist.
    lenient = replace(wiring, validation=FieldValidation.IGNORE)
    admitted = await admit_against(lenient, base, provider, against, selection)
    admitted.require_all()
    intent = Intent(admitted.roots.bodies, memo=admitted.roots.memo, replicas=admitted.roots.replicas)
    engine = engine_of(wiring, provider, selection, limits, clock=standing)
    current, first = await first_pass(engine, intent)
    # Every object is needed, which an extended forecast does not have.
    concerned = restricted(first)
    forecast = simulated(concerned) if can_be_forecast(first) else None
    lives = outcome(first.world, concerned.world, forecast) if forecast else tuple(existing(current.world))
    record = Snapshot(lives, unserved=current.world.unserved, incomplete=current.world.incomplete)
    replaced = frozenset(live.id for live in existing(current.world))
    duration = forecast.passes[-1].after if forecast is not None and forecast.passes else timedelta()
    at = now + duration + SETTLING
    return SettledBase(RecordedObjects(record, provider, replaced), at, dict(notes_about(current, forecast)))


async def latest(wiring: Wiring, provider: Provider, selection: Selection) -> datetime:
    """The latest time that an object of the selection has."""
    observation = await provider.observe(engine_of(wiring, provider, selection).scope)
    lives = (*observation.roots, *observation.children, *observation.references)
    return max((time for live in lives for time in times_of(live)), default=BEGINNING)


def times_of(live: Live) -> Iterator[datetime]:
    """When the object was created, and when its conditions changed."""
    conditions = mappings(mapping(live.body.get("status")).get("conditions"))
    texts = (mapping(live.body["metadata"]).get("creationTimestamp"), *(each.get("lastTransitionTime") for each in conditions))
    for text in texts:
        try:
            yield datetime.fromisoformat(str(text)).astimezone(UTC)
        except ValueError:
            continue


def notes_about(current: Pass[Configuration], forecast: Forecast | None) -> Iterator[tuple[ResourceId, tuple[str, ...]]]:
    """What keeps a root of the base from being settled: the change is still compared with what exists."""
    for plan in current.planned.plans:
        last = forecast.plans.get(plan.root) if forecast is not None else plan
        if forecast is not None and forecast.end_of(plan.root) is End.SETTLED:
            continue
        if last is not None and (reasons := [*last.problems, *(wait.why for wait in (*last.deferred, *last.pending))]):
            yield plan.root, (f"in the base it is not settled: {reasons[0]}",)


def notes_about_missing(base: Roots, change: Roots) -> dict[ResourceId, tuple[str, ...]]:
    """A note about each root that is in the base only."""
    kept = {proposed_root(body).id for body in change.bodies}
    return {id: (MISSING,) for body in base.bodies if (id := proposed_root(body).id) not in kept}


def together(base: Roots, change: Roots) -> Roots:
    """The roots of both, for what is to be read."""
    return Roots((*base.bodies, *change.bodies), (*base.manifests, *change.manifests))
