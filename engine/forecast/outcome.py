"""Outcome: the objects of a world after a forecast, from which another plan can begin."""

from collections.abc import Mapping

from engine.forecast.forecast import Forecast
from engine.forecast.simulation import existing
from engine.ids import ResourceId
from engine.observed import Live, World, live
from engine.operation import Creation, Patch, body_of
from engine.ownership import with_owned

Write = Creation | Patch
"""Operations that set fields of an object's main body."""


def outcome(world: World, concerned: World, forecast: Forecast) -> tuple[Live, ...]:
    """The objects that exist at the end: those of the forecast, which was made for the `concerned` part of the world, and all others.

    They have the field ownership that a server would record, so that what a later manifest leaves out is removed.
    """
    before = {each.id for each in existing(concerned)}
    others = {each.id: each for each in existing(world) if each.id not in before}
    writes: dict[ResourceId, list[Write]] = {}
    for operation in forecast.operations():
        if isinstance(operation, Write):
            writes.setdefault(operation.id, []).append(operation)
    final = {each.id: _written(each, writes) for each in forecast.final}
    return tuple((others | final).values())


def _written(existing: Live, writes: Mapping[ResourceId, list[Write]]) -> Live:
    """The object with the ownership of what the forecast has written."""
    if existing.id not in writes:
        return existing
    body = existing.body
    for operation in writes[existing.id]:
        if isinstance(operation, Creation):
            body = {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}
        body = with_owned(body, body_of(operation))
    return live(body)
