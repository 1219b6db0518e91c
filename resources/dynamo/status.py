"""Status of a graph: its state, its condition `Ready`, and the replicas of its services."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from engine.conditions import READY, condition, find, merge
from engine.diff import compare_status
from engine.health import STALLED, Obstacle, Readiness
from engine.observed import Live, Observed
from engine.resource import Body
from resources.base.fields import count, mapping
from resources.dynamo.model.state import NotReady, ServiceState
from resources.dynamo.versions.api_versions import is_beta
from resources.dynamo.versions.status import beta_entry

ALL_READY = "All resources are ready"
INVALID = "ValidationFailed"
FAILED = "failed_to_reconcile_the_resources"


class Failure(Struct, frozen=True):
    """Why a graph cannot be carried out."""

    reason: str
    """The reason of the condition: `INVALID` or `FAILED`."""
    message: str


def status_of(
    root: Live, states: Sequence[ServiceState], failure: Failure | None, restart: Body | None = None, sets: Iterable[Observed] = ()
) -> Body:
    """The desired status, with `restart` of that content. Services that the graph no longer has are removed from it.

    `sets` are those in which the services run.
    """
    state, ready, reason, message = _verdict(states, failure, sets)
    is_new_form = is_beta(root.body)
    field = "components" if is_new_form else "services"
    old = mapping(root.body.get("status"))
    known = old.get("conditions")
    services: dict[str, Any] = dict.fromkeys(mapping(old.get(field)))
    services.update((each.service, beta_entry(each.status) if is_new_form else each.status) for each in states)
    desired = [condition(READY, ready, reason, message, generation=root.generation)]
    body: dict[str, Any] = {"state": state, "conditions": merge(known if isinstance(known, list) else [], desired, owned=(READY,))}
    past = {"inProgress": None} if "inProgress" in mapping(old.get("restart")) else {}
    body |= {"restart": {**past, **restart}} if restart else {}
    body |= {field: services} if services else {}
    # A definition of v1alpha1 may lack the field, and the server drops it: then it must not be what a status is written for.
    if is_new_form or "observedGeneration" in old or compare_status(body, old).changes:
        body["observedGeneration"] = root.generation
    return body


def readiness_of(states: Sequence[ServiceState], failure: Failure | None, sets: Iterable[Observed]) -> Readiness:
    """How far the graph is, whose services run in these sets. It writes its condition `Ready` itself."""
    sets = tuple(sets)
    _, ready, reason, message = _verdict(states, failure, sets)
    of_sets = [obstacle for each in sets if failure is None and (obstacle := _stalled(each.root)) is not None]
    return Readiness(ready, reason, message, obstacle=next(iter(of_sets), None), has_own_ready=True)


def _stalled(root: Live) -> Obstacle | None:
    """Why a set is stalled; None if it is not, or was so in an earlier generation."""
    stalled = find(mapping(root.body.get("status")).get("conditions") or (), STALLED)
    if stalled is None or stalled.get("status") != "True" or stalled.get("observedGeneration") != root.generation:
        return None
    return Obstacle(str(stalled.get("reason")), f"{root.id.kind} {root.id.name}: {stalled.get('message')}")


def _behind(root: Live) -> str:
    """Why a set does not run its current generation yet, although as many pods as it needs may be ready; empty if it does."""
    status = mapping(root.body.get("status"))
    observed = status.get("observedGeneration")
    if not root.uid or observed is None:  # Its services are missing as well.
        return ""
    if root.deleting_since is not None:
        return "is being deleted"
    if observed != root.generation:
        return f"spec not yet processed: generation={root.generation}, observedGeneration={observed}"
    progress = mapping(status.get("updateProgress"))
    if not progress or progress.get("updateEndedAt"):
        return ""
    return f"performing rolling update: replicas={count(status.get('replicas'))}, updated={count(status.get('updatedReplicas'))}"


def _verdict(states: Sequence[ServiceState], failure: Failure | None, sets: Iterable[Observed]) -> tuple[str, bool, str, str]:
    """The state, and the status, reason and message of the condition.

    Pods of an earlier template are ready, too: so the graph is ready only once its sets run their current generation.
    """
    if failure is not None:
        return "failed", False, failure.reason, failure.message
    waiting = [state for state in states if not state.is_ready]
    if waiting:
        causes = {state.cause for state in waiting}
        message = "; ".join(f"{state.component_name}: {state.reason}" for state in waiting)
        reason = causes.pop() if len(causes) == 1 else NotReady.SEVERAL
        state = "pending" if any(state.exists for state in states) else "initializing"
        return state, False, reason.value, f"Resources not ready: {message}"
    for root in (each.root for each in sets):
        if why := _behind(root):
            return "pending", False, NotReady.UPDATING.value, f"Resources not ready: {root.id.name}: podcliqueset/{root.id.name}: {why}"
    return "successful", True, "all_resources_are_ready", ALL_READY
