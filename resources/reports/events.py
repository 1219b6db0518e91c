"""Narration: what was done, told to people as Kubernetes Events on the parent of what it was done to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.conditions import find
from engine.event import Event, RootWarning
from engine.ids import ResourceId
from engine.operation import Operation
from engine.resource import EventGroup
from engine.result import Outcome, Result
from engine.verb import Verb
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.status.topology_binding import DRIFT

MOST = 100
"""Events of one pass, failures first: a bring-up of a thousand pods is not told pod by pod."""


@dataclass(frozen=True, slots=True)
class EventTexts:
    """The reasons and messages for one kind of call. `{key}` is namespace/name, `{error}` what went wrong."""

    done: str
    done_text: str
    failed: str
    failed_text: str


_CLIQUE = EventTexts(
    "PodCliqueCreateOrUpdateSuccessful",
    "PodClique {key} created or updated successfully",
    "PodCliqueCreateOrUpdateFailed",
    "PodClique {key} creation or updation failed: {error}",
)
_GROUP = EventTexts(
    "PodCliqueScalingGroupCreateSuccessful",
    "Created PodCliqueScalingGroup {key}",
    "PodCliqueScalingGroupCreateOrUpdateFailed",
    "Error creating or updating PodCliqueScalingGroup {key}: {error}",
)
_GANG = EventTexts(
    "PodGangCreateOrUpdateSuccessful",
    "Created/Updated PodGang {key}",
    "PodGangCreateOrUpdateFailed",
    "Error Creating/Updating PodGang {key}: {error}",
)

EVENT_TEXTS: Mapping[tuple[str, str, Verb], EventTexts] = {
    ("PodCliqueSet", "PodClique", Verb.CREATE): _CLIQUE,
    ("PodCliqueSet", "PodClique", Verb.PATCH): _CLIQUE,
    ("PodCliqueSet", "PodClique", Verb.DELETE): EventTexts(
        "PodCliqueDeleteSuccessful", "Deleted PodClique: {name}", "PodCliqueDeleteFailed", "Error deleting PodClique {key}: {error}"
    ),
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.CREATE): _GROUP,
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.PATCH): _GROUP,
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.DELETE): EventTexts(
        "PodCliqueScalingGroupDeleteSuccessful",
        "Deleted PodCliqueScalingGroup: {name}",
        "PodCliqueScalingGroupDeleteFailed",
        "Error deleting PodCliqueScalingGroup {key}: {error}",
    ),
    ("PodCliqueSet", "PodGang", Verb.CREATE): _GANG,
    ("PodCliqueSet", "PodGang", Verb.PATCH): _GANG,
    ("PodCliqueSet", "PodGang", Verb.DELETE): EventTexts(
        "PodGangDeleteSuccessful", "Deleted PodGang {key}", "PodGangDeleteFailed", "Error deleting PodGang {key}: {error}"
    ),
    ("PodCliqueScalingGroup", "PodClique", Verb.CREATE): EventTexts(
        "PodCliqueCreateSuccessful",
        "PodClique {key} created successfully",
        "PodCliqueCreateFailed",
        "PodClique {key} creation failed: {error}",
    ),
    ("PodCliqueScalingGroup", "PodClique", Verb.PATCH): _CLIQUE,
    ("PodClique", "Pod", Verb.CREATE): EventTexts(
        "PodCreateSuccessful", "Created Pod: {name}", "PodCreateFailed", "Error creating pod {name}: {error}"
    ),
    ("PodClique", "Pod", Verb.DELETE): EventTexts(
        "PodDeleteSuccessful", "Deleted Pod: {name}", "PodDeleteFailed", "Error deleting pod: {error}"
    ),
}
"""Parent, child and call -> what is told. What is not here is not told: gates, identities, Services, HPAs."""

LOST: Mapping[str, str] = {
    "PodClique": "All scheduled pods lost (was {was}). Gang termination will fire after TerminationDelay if the PodClique"
    " stays below MinAvailable; investigate node availability or capacity.",
    "PodCliqueScalingGroup": "All scheduled replicas lost (was {was}). Gang termination will fire after TerminationDelay if the PCSG"
    " stays below MinAvailable; investigate node availability or capacity.",
}
"""What is told of who had something scheduled, and now has nothing."""

DRIFTED: Mapping[str, tuple[str, bool]] = {"True": ("TopologyDriftDetected", True), "False": ("TopologyInSync", False)}
"""What is told when it turns out that schedulers agree with a binding, or do not: the reason, and whether it is a warning."""

REFUSED = "ValidationFailed"
"""The reason of what is told about a set that cannot be accepted as it is."""


def event_builder(configuration: Configuration) -> Callable[[Sequence[RootWarning], Sequence[Result]], tuple[Event, ...]]:
    """`events_of_pass` for these fabrics."""
    return partial(events_of_pass, domains=frozenset(fabric.kind.name for fabric in configuration.fabrics))


def events_of_pass(faults: Sequence[RootWarning], results: Sequence[Result], *, domains: frozenset[str] = frozenset()) -> tuple[Event, ...]:
    """The events of a pass, on the objects that the calls were made for; what goes as part of something bigger is told as that.

    `domains` are the kinds of fabric domains.
    """
    uids = {result.operation.id: _uid(result) for result in results}
    told = [
        *(Event(fault.root, fault.uid, fault.reason or REFUSED, fault.text, warning=True) for fault in faults),
        *_of_event_groups(results),
        *(event for result in results for event in _told(result, uids, domains)),
    ]
    return tuple(sorted(dict.fromkeys(told), key=lambda event: not event.warning)[:MOST])


def _of_event_groups(results: Sequence[Result]) -> Iterator[Event]:
    """Each is told once: as failed when any of its deletes has, as done when the last of them is."""
    answers: dict[EventGroup, list[Result]] = {}
    for result in results:
        if event_group := _event_group(result.operation):
            answers.setdefault(event_group, []).append(result)
    for event_group, deletes in answers.items():
        failed = next((one for one in deletes if one.outcome is Outcome.FAILED), None)
        if failed is not None:
            text = f"{event_group.failed}: {failed.error}"
            yield Event(event_group.about, event_group.uid, f"{event_group.reason}Failed", text, warning=True)
        elif all(one.outcome is Outcome.DONE for one in deletes):
            yield Event(event_group.about, event_group.uid, f"{event_group.reason}Successful", event_group.done)


def _event_group(operation: Operation) -> EventGroup | None:
    return operation.event_group if operation.verb is Verb.DELETE else None


def _uid(result: Result) -> str:
    return str(result.live["metadata"]["uid"]) if result.live else result.operation.expect.uid


def _told(result: Result, uids: Mapping[ResourceId, str], domains: frozenset[str]) -> Iterator[Event]:
    operation = result.operation
    if operation.verb is Verb.STATUS:
        yield from _lost(result)
        yield from _drifted(result)
    if _event_group(operation):
        return
    about = _parent(operation, uids)
    telling = _telling(about[0], operation, domains) if about else None
    if about is None or telling is None or result.outcome not in (Outcome.DONE, Outcome.FAILED):
        return
    words = {"key": f"{operation.id.namespace}/{operation.id.name}", "name": operation.id.name, "error": result.error}
    if result.outcome is Outcome.DONE:
        yield Event(*about, telling.done, telling.done_text.format(**words))
    else:
        yield Event(*about, telling.failed, telling.failed_text.format(**words), warning=True)


def _telling(about: ResourceId, operation: Operation, domains: frozenset[str]) -> EventTexts | None:
    kind = operation.id.kind
    if kind not in domains:
        return EVENT_TEXTS.get((about.kind, kind, operation.verb))
    if operation.verb is Verb.CREATE:
        index = operation.body["metadata"]["labels"].get(labels.REPLICA_INDEX)
        whose = f"for replica {index}" if index is not None else "{name}"
        return EventTexts(f"{kind}Created", f"{kind} {{name}} created", f"{kind}Failed", f"Failed to create {kind} {whose}: {{error}}")
    if operation.verb is Verb.DELETE:
        return EventTexts(
            f"{kind}Deleted", f"{kind} {{name}} deleted", f"{kind}DeleteFailed", f"Failed to delete {kind} {{name}}: {{error}}"
        )
    return None


def _lost(result: Result) -> Iterator[Event]:
    """A state that was written says that everything scheduled is gone."""
    operation = result.operation
    if operation.id.kind not in LOST or result.outcome is not Outcome.DONE:
        return
    for change in operation.changes:
        if change.path == ("status", "scheduledReplicas") and change.old and not change.new:
            message = LOST[operation.id.kind].format(was=change.old)
            yield Event(operation.id, operation.expect.uid, "AllScheduledReplicasLost", message, warning=True)


def _drifted(result: Result) -> Iterator[Event]:
    """A state that was written says something else than before about whether schedulers agree with a binding."""
    operation = result.operation
    if operation.id.kind != kinds.TOPOLOGY_BINDING.name or result.outcome is not Outcome.DONE:
        return
    for change in operation.changes:
        if change.path == ("status", "conditions"):
            old, new = (find(side or (), DRIFT) or {} for side in (change.old, change.new))
            if new.get("status") in DRIFTED and new["status"] != old.get("status"):
                reason, warning = DRIFTED[new["status"]]
                yield Event(operation.id, operation.expect.uid, reason, new["message"], warning=warning)


_PARENTS = {kind.name: kind for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP)}


def _parent(operation: Operation, uids: Mapping[ResourceId, str]) -> tuple[ResourceId, str] | None:
    """The controller of what the call was about, with its uid."""
    if operation.controller is not None:
        kind = _PARENTS.get(operation.controller.kind)
        id = kind.id(operation.id.namespace, operation.controller.name) if kind else None
        return (id, operation.controller.uid) if id else None
    reference = next(iter(operation.owners), None)
    if reference is None:
        return None
    uid = reference.uid if isinstance(reference.uid, str) else uids.get(reference.uid.id, "")
    return reference.owner.id, uid
