"""Around: what is there of everything that admission looks at beside a manifest."""

from dataclasses import replace

from engine.report.printable import clipped
from engine.runtime.provider import Provider
from enginectl import output, wiring
from enginectl.wiring import Where, Wiring
from resources.ports.references import KnownReferences, references

UNKNOWN = KnownReferences()
"""Nobody has looked."""


async def references_in(wired: Wiring, provider: Provider, against: str, where: Where) -> KnownReferences:
    """The sets that are there, and what sets refer to. What could not be listed is told, and not known; nor is anything of nothing.

    Of a snapshot, a kind is known if there is any of it: who took it may not have looked at the others.
    """
    if against == wiring.NOTHING:
        return UNKNOWN
    scope = replace(wiring.scope(wired.setup, where), children=())
    sighting = await provider.observe(scope)
    for kind, why in sighting.incomplete.items():
        output.fault(f"not every {kind} could be seen: {clipped(why, 200)}")
    found = (*sighting.roots, *sighting.references)
    kinds = {kind.name for kind in (*scope.roots, *scope.references)} if against == wiring.LIVE else {live.id.kind for live in found}
    return references(found, kinds - sighting.incomplete.keys())
