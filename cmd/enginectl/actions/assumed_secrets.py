"""Assumed Secrets: what a forecast takes for granted if its user may not list Secrets."""

from typing import Any, Final

from msgspec.structs import replace

from engine.guard import Limits
from engine.intent import Intent
from engine.memo import Memo
from engine.observed import Live, Observed, World, live, slice_of
from engine.operation import owner_reference
from engine.plan import Plan
from engine.runtime.passes import Pass
from engine.tick import Plans, plan_all
from engine.verb import Verb
from enginectl.actions.unread_secrets import may_not_list_secrets, other_kinds
from resources.base.kinds import SECRET
from resources.registry import BLUEPRINTS

REVISION: Final = "1"


def with_assumed_secrets(result: Pass, intent: Intent, limits: Limits) -> Pass:
    """The pass as if Secrets had been listed, and those that belong to something that exists were there, as they should be.

    The same pass if Secrets were listed, or if it is not known for another reason which exist. `intent`: what the pass was made with.
    """
    if not may_not_list_secrets(result.world.incomplete):
        return result
    incomplete = other_kinds(result.world.incomplete)
    roots = tuple(replace(each, incomplete=each.incomplete - {SECRET.key}) for each in result.world.roots)
    world = replace(result.world, roots=roots, incomplete=incomplete)
    missing = {plan.root: plan for plan in _planned(result, world, intent, limits).plans}
    world = replace(world, roots=tuple(_with_secrets(each, missing.get(each.root.id)) for each in world.roots))
    return replace(result, world=world, planned=_planned(result, world, intent, limits))


def _planned(result: Pass, world: World, intent: Intent, limits: Limits) -> Plans:
    """The plans of the pass for another world."""
    focus, removals = intent.focus, intent.removals
    return plan_all(BLUEPRINTS, world, result.now, result.configuration, Memo(), limits, focus=focus, removals=removals)


def _with_secrets(observed: Observed, plan: Plan | None) -> Observed:
    """The observation with the Secrets that the plan would create beside objects of the same part that exist."""
    blueprint = next(each for each in BLUEPRINTS if each.kind.name == observed.root.id.kind)
    slices = dict(observed.slices)
    for operation in plan.operations if plan is not None else ():
        part = blueprint.part_of(observed.root.id, operation.id)
        if operation.verb is Verb.CREATE and operation.id.kind == SECRET.name and part in slices:
            owners = [owner_reference(bound) for bound in operation.owners]
            slices[part] = slice_of([*slices[part].objects.values(), _secret({**operation.body}, owners)])
    return replace(observed, slices=slices)


def _secret(body: dict[str, Any], owners: list[dict[str, object]]) -> Live:
    """A Secret as it is when it has been created, and filled."""
    metadata = {**body["metadata"], "uid": f"assumed-{body['metadata']['name']}", "resourceVersion": REVISION, "ownerReferences": owners}
    return live({**body, "metadata": metadata, "data": {"token": "Kg==", "ca.crt": "Kg==", "namespace": "Kg=="}})
