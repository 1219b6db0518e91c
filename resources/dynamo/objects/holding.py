"""Holding: resources that are left as they are until somebody acts."""

from msgspec.structs import replace

from engine.resource import Resource, Stance


def held(resource: Resource, why: str) -> Resource:
    """The resource, neither created nor changed for this reason; somebody else has to act."""
    return replace(resource, stance=Stance.HOLD, why=why, blocked=True)
