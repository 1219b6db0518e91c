"""Events: the Kubernetes Events of a pass, each recorded on the parent of the object that a call changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from engine.conditions import find
from engine.event import Event, RootWarning
from engine.ids import ResourceId
from engine.operation import Create, Delete, Operation, Outcome, Result, WriteStatus
from engine.reason import Reason
from engine.resource import EventGroup
from resources.base import kinds, labels
from resources.children.child_kind import EventTexts
from resources.children.table import CHILDREN
from resources.lifecycle.availability import BREACHED
from resources.model.domain import subject_of
from resources.ports.configuration import Configuration
from resources.status.topology_binding import DRIFT

LOST: Mapping[str, str] = {
    "PodClique": "All scheduled pods lost (was {was}). Gang termination will fire after TerminationDelay if the PodClique"
    " stays below MinAvailable; investigate node availability or capacity.",
    "PodCliqueScalingGroup": "All scheduled replicas lost (was {was}). Gang termination will fire after TerminationDelay if the PCSG"
    " stays below MinAvailable; investigate node availability or capacity.",
}
"""Kind -> the message when none of its scheduled pods or replicas is left."""
DRIFTED: Mapping[str, tuple[str, bool]] = {"True": ("TopologyDriftDetected", True), "False": ("TopologyInSync", False)}
"""Status of a binding's drift condition -> the reason of the event, and whether it is a warning."""
VALIDATION_FAILED = "ValidationFailed"
"""The reason of the event for a `RootWarning` without a reason: the stored root has a fault."""
_PARENTS = {kind.name: kind for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP)}


def event_builder(configuration: Configuration) -> Callable[[Sequence[RootWarning], Sequence[Result]], tuple[Event, ...]]:
    """`events_of_pass` for the fabrics of this configuration."""
    return partial(events_of_pass, domains=frozenset(fabric.kind.name for fabric in configuration.fabrics))


def events_of_pass(
    warnings: Sequence[RootWarning], results: Sequence[Result], *, domains: frozenset[str] = frozenset()
) -> tuple[Event, ...]:
    """The events of one root in a pass: warnings first, then those about fabric domains, which are counted apart: those about
    pods and cliques cannot crowd them out. `domains` are the kinds of fabric domains.

    A root warning is published under its own reason: an alarm's, `InternalError` for a defect of the engine, or `ValidationFailed`. Objects
    that are deleted as part of an event group are reported once, as that group.
    """
    events = [
        *map(_of_warning, warnings),
        *_of_event_groups(results),
        # First those that tell what no other object does: where there are too many, the last ones are combined.
        *(
            event
            for result in sorted(results, key=lambda each: each.operation.id.kind not in domains)
            for event in _of_result(result, domains)
        ),
    ]
    return tuple(sorted(events, key=lambda event: not event.warning))


def _of_warning(warning: RootWarning) -> Event:
    reason = warning.reason or VALIDATION_FAILED
    return Event(warning.root, warning.uid, reason, warning.text, warning=True, counted_apart=warning.counted_apart)


def _of_event_groups(results: Sequence[Result]) -> Iterator[Event]:
    """One event for each group: failed if one of its deletes has failed, successful if all of them are done."""
    by_group: dict[EventGroup, list[Result]] = {}
    for result in results:
        if group := _event_group(result.operation):
            by_group.setdefault(group, []).append(result)
    for group, deletes in by_group.items():
        failed = next((result for result in deletes if result.outcome is Outcome.FAILED), None)
        if failed is not None:
            yield Event(group.about, group.uid, f"{group.reason}Failed", f"{group.failed}: {failed.error}", warning=True)
        elif all(result.outcome is Outcome.DONE for result in deletes):
            yield Event(group.about, group.uid, f"{group.reason}Successful", group.done)


def _event_group(operation: Operation) -> EventGroup | None:
    """The group of a delete; None for other operations."""
    return operation.event_group if isinstance(operation, Delete) else None


def _of_result(result: Result, domains: frozenset[str]) -> Iterator[Event]:
    operation = result.operation
    if isinstance(operation, WriteStatus):
        yield from _scheduled_replicas_lost(result)
        yield from _drift_changed(result)
    if _event_group(operation):
        return
    parent = _parent(result)
    texts = _texts(parent[0], operation, domains) if parent else None
    if parent is None or texts is None or result.outcome not in (Outcome.DONE, Outcome.FAILED):
        return
    is_domain = operation.id.kind in domains
    key = f"{operation.id.namespace}/{operation.id.name}"
    values = {"key": key, "name": operation.id.name, "error": result.error}
    if result.outcome is Outcome.DONE:
        subject, at = key if "{key}" in texts.done_message else operation.id.name, texts.done_message.index("{")
        of_whole = operation.reason is Reason.SET_DELETED and not is_domain
        message = texts.done_message.format(**values)
        yield Event(*parent, texts.done_reason, message, counted_apart=is_domain, subject=subject, subject_at=at, of_whole=of_whole)
    else:
        yield Event(*parent, texts.failed_reason, texts.failed_message.format(**values), warning=True, counted_apart=is_domain)


def _texts(parent: ResourceId, operation: Operation, domains: frozenset[str]) -> EventTexts | None:
    """The texts for a call; None if it records no event."""
    kind = operation.id.kind
    if kind not in domains:
        return CHILDREN.events.get((parent.kind, kind, operation.verb))
    if isinstance(operation, Create):
        index = operation.manifest["metadata"]["labels"].get(labels.REPLICA_INDEX)
        subject = subject_of(operation.id, parent.name, index) if index is not None else "{name}"
        return EventTexts(f"{kind}Created", f"{kind} {{name}} created", f"{kind}Failed", f"Failed to create {kind} {subject}: {{error}}")
    if isinstance(operation, Delete):
        return EventTexts(
            f"{kind}Deleted", f"{kind} {{name}} deleted", f"{kind}DeleteFailed", f"Failed to delete {kind} {{name}}: {{error}}"
        )
    return None


def _scheduled_replicas_lost(result: Result) -> Iterator[Event]:
    """A warning if the written status says that no scheduled pod or replica is left, although there should be some."""
    operation = result.operation
    if operation.id.kind not in LOST or result.outcome is not Outcome.DONE or not isinstance(operation, WriteStatus):
        return
    if _is_scaled_to_zero(operation):
        return
    for change in operation.changes:
        if change.path == ("status", "scheduledReplicas") and change.old and not change.new:
            message = LOST[operation.id.kind].format(was=change.old)
            yield Event(operation.id, operation.expect.uid, "AllScheduledReplicasLost", message, warning=True)


def _is_scaled_to_zero(operation: WriteStatus) -> bool:
    """Whether none should be left: of a group that has no replicas now, or of a clique that is in no breach without a pod."""
    new = {change.path[-1]: change.new for change in operation.changes}
    if operation.id.kind == kinds.SCALING_GROUP.name:
        return new.get("replicas") == 0
    breach = find(new.get("conditions") or (), BREACHED)
    return breach is not None and breach.get("status") == "False"


def _drift_changed(result: Result) -> Iterator[Event]:
    """An event if the written status says that the schedulers' topologies now agree, or no longer agree, with the binding."""
    operation = result.operation
    if operation.id.kind != kinds.TOPOLOGY_BINDING.name or result.outcome is not Outcome.DONE:
        return
    for change in operation.changes:
        if change.path == ("status", "conditions"):
            old, new = (find(conditions or (), DRIFT) or {} for conditions in (change.old, change.new))
            if new.get("status") in DRIFTED and new["status"] != old.get("status"):
                reason, warning = DRIFTED[new["status"]]
                yield Event(operation.id, operation.expect.uid, reason, new["message"], warning=warning)


def _parent(result: Result) -> tuple[ResourceId, str] | None:
    """The parent of an object with the parent's uid: the controller, for a new object the first owner; None if it has neither."""
    operation = result.operation
    if operation.controller is not None:
        kind = _PARENTS.get(operation.controller.kind)
        id = kind.id(operation.id.namespace, operation.controller.name) if kind else None
        return (id, operation.controller.uid) if id else None
    first = next(iter(operation.owners), None)
    if first is None:
        return None
    return first.owner.id, result.owner_uid
