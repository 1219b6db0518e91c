"""Recorded sets: stored sets with the fabric domains that their objects record, with which manifests are compared (N25)."""

from collections.abc import Mapping

from msgspec.structs import replace

from engine.ids import Kind, ResourceId
from engine.observed import Observed
from engine.paths import overlay
from engine.resource import Body
from engine.runtime.provider import Provider
from engine.world import assemble
from enginectl.input.roots import Roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection, scope_of
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.model.membership import effective_body
from resources.ports.references import KnownReferences
from resources.registry import BLUEPRINTS

KINDS = {(kind.group, kind.name): kind for kind in ROOTS}
RECORDS = (kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG)
"""The kinds of objects that record membership, beside domains, which are references."""


async def recorded_sets(
    wiring: Wiring, roots: Roots, references: KnownReferences, provider: Provider, selection: Selection
) -> Mapping[ResourceId, Body]:
    """Stored set -> its body as its objects record it, for the sets whose membership the manifests would change.

    Objects are listed only if there is such a set. Then a manifest that puts an edited annotation back is no change.
    """
    requests = [request_for(body, references) for body in roots.bodies]
    changed = {request.id for request in requests if _changes_membership(wiring, request)}
    if not changed:
        return {}
    observation = await provider.observe(replace(scope_of(wiring.configuration, selection), children=(*RECORDS, *_domain_kinds(wiring))))
    world = assemble(BLUEPRINTS, observation.roots, observation.children, observation.incomplete, references=observation.references)
    return {observed.root.id: _recorded(observed, wiring) for observed in world.roots if observed.root.id in changed}


def _changes_membership(wiring: Wiring, request: Request) -> bool:
    old, new = request.old, request.body
    if request.id.kind != kinds.PODCLIQUESET.name or old is None or new is None:
        return False
    return any(True for fabric in wiring.configuration.fabrics for _ in fabric.update_issues(old, new))


def _domain_kinds(wiring: Wiring) -> tuple[Kind, ...]:
    return tuple(fabric.kind for fabric in wiring.configuration.fabrics)


def _recorded(observed: Observed, wiring: Wiring) -> Body:
    return effective_body(observed, wiring.configuration)


def request_for(body: Body, references: KnownReferences) -> Request:
    """The admission request of applying this manifest: an update keeps the labels and annotations that the manifest does not name."""
    group, _, _ = body["apiVersion"].rpartition("/")
    id = KINDS[group, body["kind"]].id(body["metadata"].get("namespace", ""), body["metadata"]["name"])
    live = references.find(id)
    if live is None:
        return Request(Act.CREATE, id, body)
    return Request(Act.UPDATE, id, {**body, "metadata": overlay(live.body["metadata"], body["metadata"])}, live.body)
