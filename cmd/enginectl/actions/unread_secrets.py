"""Unread Secrets: what a report says if its user may not list Secrets, as people who only read should not.

The plan leaves Secrets alone then. That is no fault of a report: everything else in it is complete.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from engine.plan import Plan
from engine.runtime.passes import Pass
from resources.base.kinds import SECRET

NOTE: Final = "Secrets are not shown: you may not list them"


def may_not_list_secrets(incomplete: Mapping[str, str]) -> bool:
    """Whether Secrets are missing from an observation because the API server forbids to list them."""
    return "is forbidden" in incomplete.get(SECRET.key, "")


def other_kinds(incomplete: Mapping[str, str]) -> dict[str, str]:
    """The kinds that could not be listed completely, less Secrets that must not be listed."""
    withheld = {SECRET.key} if may_not_list_secrets(incomplete) else set[str]()
    return {kind: why for kind, why in incomplete.items() if kind not in withheld}


def without_unread_secrets(result: Pass) -> Pass:
    """The pass without what waits for Secrets to be listed; the same pass if they were listed, or for another reason were not."""
    if not may_not_list_secrets(result.world.incomplete):
        return result
    world = replace(result.world, incomplete=other_kinds(result.world.incomplete))
    planned = replace(result.planned, plans=tuple(_without_waits(plan) for plan in result.planned.plans))
    return replace(result, world=world, planned=planned)


def _without_waits(plan: Plan) -> Plan:
    deferred = tuple(wait for wait in plan.deferred if f"{SECRET.name} objects" not in wait.why)
    return replace(plan, deferred=deferred) if len(deferred) < len(plan.deferred) else plan
