"""Assumed Secrets: what a preview assumes if its user may not list Secrets, as users who only read should not.

The report is still complete: Secrets of workloads that exist are assumed to exist, and those of workloads that do not exist yet are
created with them. So the plan and its reasons are those that users with the right to list them see.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from engine.focus import EVERYTHING
from engine.memo import Memo
from engine.observed import Live, Observed, Unlisted, World, live, slice_of
from engine.operation import Create, owner_reference
from engine.plan import Plan
from engine.tick import Plans, plan_all
from resources.base.kinds import SECRET
from resources.preview.facts import FirstPass
from resources.registry import BLUEPRINTS

REVISION: Final = "1"


def may_not_list_secrets(incomplete: Mapping[str, Unlisted]) -> bool:
    """Whether Secrets are missing from an observation because the API server forbids to list them."""
    unlisted = incomplete.get(SECRET.key)
    return unlisted is not None and unlisted.is_forbidden


def other_kinds(incomplete: Mapping[str, Unlisted]) -> dict[str, Unlisted]:
    """The kinds that could not be listed completely, less Secrets that must not be listed."""
    withheld = {SECRET.key} if may_not_list_secrets(incomplete) else set[str]()
    return {kind: why for kind, why in incomplete.items() if kind not in withheld}


def with_assumed_secrets(first: FirstPass) -> FirstPass:
    """The pass as if Secrets had been listed, and those that belong to something that exists were there, as they should be.

    The same pass if Secrets were listed, or if it is not known for another reason which exist.
    """
    if not may_not_list_secrets(first.world.incomplete):
        return first
    incomplete = other_kinds(first.world.incomplete)
    roots = tuple(replace(each, incomplete=each.incomplete - {SECRET.key}) for each in first.world.roots)
    world = replace(first.world, roots=roots, incomplete=incomplete)
    of_all = replace(first, intent=replace(first.intent, focus=EVERYTHING, removals={}))
    missing = {plan.root: plan for plan in _planned(of_all, _undeleted(world)).plans}
    world = replace(world, roots=tuple(_with_secrets(each, missing.get(each.root.id)) for each in world.roots))
    return replace(first, world=world, planned=_planned(first, world), assumes_secrets=True)


def _undeleted(world: World) -> World:
    """The world in which no root is being deleted: so the plans show which Secrets each of them has."""

    def undeleted(observed: Observed) -> Observed:
        root = observed.root
        return replace(observed, root=replace(root, deleting_since=None)) if root.deleting_since is not None else observed

    return replace(world, roots=tuple(map(undeleted, world.roots)))


def _planned(first: FirstPass, world: World) -> Plans:
    """The plans of the pass for another world."""
    focus, removals = first.intent.focus, first.intent.removals
    return plan_all(
        BLUEPRINTS, world, first.now, first.configuration, Memo(first.intent.memo), first.limits, focus=focus, removals=removals
    )


def _with_secrets(observed: Observed, plan: Plan | None) -> Observed:
    """The observation with the Secrets that the plan would create beside objects of the same part that exist.

    Where the root exists and its objects could not be listed, they are taken to exist.
    """
    blueprint = next(each for each in BLUEPRINTS if each.kind.name == observed.root.id.kind)
    slices = dict(observed.slices)
    is_unknown = bool(observed.root.uid and observed.incomplete)
    for operation in plan.operations if plan is not None else ():
        part = blueprint.part_of(observed.root.id, operation.id)
        if isinstance(operation, Create) and operation.id.kind == SECRET.name and (part in slices or is_unknown):
            owners = [owner_reference(bound) for bound in operation.owners]
            beside = slices[part].objects.values() if part in slices else ()
            slices[part] = slice_of([*beside, _secret({**operation.manifest}, owners)])
    return replace(observed, slices=slices)


def _secret(body: dict[str, Any], owners: list[dict[str, object]]) -> Live:
    """A Secret as it is when it has been created, and filled."""
    metadata = {**body["metadata"], "uid": f"assumed-{body['metadata']['name']}", "resourceVersion": REVISION, "ownerReferences": owners}
    return live({**body, "metadata": metadata, "data": {"token": "Kg==", "ca.crt": "Kg==", "namespace": "Kg=="}})
