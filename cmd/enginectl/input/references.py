"""References: the objects that admission rules look up besides the manifest itself."""

from msgspec.structs import replace

from engine.blueprint import relevant_incomplete
from engine.observed import unlisted_texts
from engine.runtime.provider import Provider
from enginectl.base import terminal
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection, scope_of
from resources.ports.references import KnownReferences, known_references
from resources.registry import BLUEPRINTS

NO_REFERENCES = KnownReferences()
"""Nothing has been listed: rules that look up other objects do not apply."""


async def list_references(wiring: Wiring, provider: Provider, against: str, selection: Selection) -> KnownReferences:
    """The roots, and the objects that they refer to. A kind that could not be listed is unknown, and named on stderr.

    Of a snapshot, a kind is known if the snapshot has at least one object of it: whoever took it may not have listed the others.
    """
    if against == EMPTY:
        return NO_REFERENCES
    scope = replace(scope_of(wiring.configuration, selection), children=())
    observation = await provider.observe(scope)
    present = {root.id.kind for root in observation.roots}
    incomplete = relevant_incomplete(BLUEPRINTS, observation.incomplete, observation.unserved, present, wiring.configuration)
    terminal.incomplete(unlisted_texts(incomplete))
    objects = (*observation.roots, *observation.references)
    in_scope = [kind for kind in (*scope.roots, *scope.references) if kind.key not in observation.unserved]
    present = {key for live in objects for key in live.id.keys()}
    known = {kind.key for kind in in_scope if against == LIVE or kind.key in present}
    return known_references(objects, known - observation.incomplete.keys())
