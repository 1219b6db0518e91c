"""Narration: what was done, told to people as Kubernetes Events on the parent of what it was done to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.conditions import find
from engine.event import Event, Fault
from engine.ids import ResourceId
from engine.operation import Operation, Verb
from engine.resource import Occasion
from engine.result import Outcome, Result
from resources.base import kinds, labels
from resources.ports.configuration import Setup
from resources.status.topology_binding import DRIFT

MOST = 100
"""Events of one pass, failures first: a bring-up of a thousand pods is not told pod by pod."""


@dataclass(frozen=True, slots=True)
class Telling:
    """The reasons and messages for one kind of call. `{key}` is namespace/name, `{error}` what went wrong."""

    done: str
    done_text: str
    failed: str
    failed_text: str


_CLIQUE = Telling(
    "PodCliqueCreateOrUpdateSuccessful",
    "PodClique {key} created or updated successfully",
    "PodCliqueCreateOrUpdateFailed",
    "PodClique {key} creation or updation failed: {error}",
)
_GROUP = Telling(
    "PodCliqueScalingGroupCreateSuccessful",
    "Created PodCliqueScalingGroup {key}",
    "PodCliqueScalingGroupCreateOrUpdateFailed",
    "Error creating or updating PodCliqueScalingGroup {key}: {error}",
)
_GANG = Telling(
    "PodGangCreateOrUpdateSuccessful",
    "Created/Updated PodGang {key}",
    "PodGangCreateOrUpdateFailed",
    "Error Creating/Updating PodGang {key}: {error}",
)

TELLINGS: Mapping[tuple[str, str, Verb], Telling] = {
    ("PodCliqueSet", "PodClique", Verb.CREATE): _CLIQUE,
    ("PodCliqueSet", "PodClique", Verb.PATCH): _CLIQUE,
    ("PodCliqueSet", "PodClique", Verb.DELETE): Telling(
        "PodCliqueDeleteSuccessful", "Deleted PodClique: {name}", "PodCliqueDeleteFailed", "Error deleting PodClique {key}: {error}"
    ),
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.CREATE): _GROUP,
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.PATCH): _GROUP,
    ("PodCliqueSet", "PodCliqueScalingGroup", Verb.DELETE): Telling(
        "PodCliqueScalingGroupDeleteSuccessful",
        "Deleted PodCliqueScalingGroup: {name}",
        "PodCliqueScalingGroupDeleteFailed",
        "Error deleting PodCliqueScalingGroup {key}: {error}",
    ),
    ("PodCliqueSet", "PodGang", Verb.CREATE): _GANG,
    ("PodCliqueSet", "PodGang", Verb.PATCH): _GANG,
    ("PodCliqueSet", "PodGang", Verb.DELETE): Telling(
        "PodGangDeleteSuccessful", "Deleted PodGang {key}", "PodGangDeleteFailed", "Error deleting PodGang {key}: {error}"
    ),
    ("PodCliqueScalingGroup", "PodClique", Verb.CREATE): Telling(
        "PodCliqueCreateSuccessful",
        "PodClique {key} created successfully",
        "PodCliqueCreateFailed",
        "PodClique {key} creation failed: {error}",
    ),
    ("PodCliqueScalingGroup", "PodClique", Verb.PATCH): _CLIQUE,
    ("PodClique", "Pod", Verb.CREATE): Telling(
        "PodCreateSuccessful", "Created Pod: {name}", "PodCreateFailed", "Error creating pod {name}: {error}"
    ),
    ("PodClique", "Pod", Verb.DELETE): Telling(
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


def narrator(setup: Setup) -> Callable[[Sequence[Fault], Sequence[Result]], tuple[Event, ...]]:
    """`narrate` for these fabrics."""
    return partial(narrate, domains=frozenset(fabric.kind.name for fabric in setup.fabrics))


def narrate(faults: Sequence[Fault], results: Sequence[Result], *, domains: frozenset[str] = frozenset()) -> tuple[Event, ...]:
    """The events of a pass, on the objects that the calls were made for; what goes as part of something bigger is told as that.

    `domains` are the kinds of fabric domains.
    """
    uids = {result.operation.id: _uid(result) for result in results}
    told = [
        *(Event(fault.root, fault.uid, fault.reason or REFUSED, fault.text, warning=True) for fault in faults),
        *_of_occasions(results),
        *(event for result in results for event in _told(result, uids, domains)),
    ]
    return tuple(sorted(dict.fromkeys(told), key=lambda event: not event.warning)[:MOST])


def _of_occasions(results: Sequence[Result]) -> Iterator[Event]:
    """Each is told once: as failed when any of its deletes has, as done when the last of them is."""
    answers: dict[Occasion, list[Result]] = {}
    for result in results:
        if occasion := _occasion(result.operation):
            answers.setdefault(occasion, []).append(result)
    for occasion, deletes in answers.items():
        failed = next((one for one in deletes if one.outcome is Outcome.FAILED), None)
        if failed is not None:
            text = f"{occasion.failed}: {failed.error}"
            yield Event(occasion.about, occasion.uid, f"{occasion.reason}Failed", text, warning=True)
        elif all(one.outcome is Outcome.DONE for one in deletes):
            yield Event(occasion.about, occasion.uid, f"{occasion.reason}Successful", occasion.done)


def _occasion(operation: Operation) -> Occasion | None:
    return operation.occasion if operation.verb is Verb.DELETE else None


def _uid(result: Result) -> str:
    return str(result.live["metadata"]["uid"]) if result.live else result.operation.expect.uid


def _told(result: Result, uids: Mapping[ResourceId, str], domains: frozenset[str]) -> Iterator[Event]:
    operation = result.operation
    if operation.verb is Verb.STATUS:
        yield from _lost(result)
        yield from _drifted(result)
    if _occasion(operation):
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


def _telling(about: ResourceId, operation: Operation, domains: frozenset[str]) -> Telling | None:
    kind = operation.id.kind
    if kind not in domains:
        return TELLINGS.get((about.kind, kind, operation.verb))
    if operation.verb is Verb.CREATE:
        index = operation.body["metadata"]["labels"].get(labels.REPLICA_INDEX)
        whose = f"for replica {index}" if index is not None else "{name}"
        return Telling(f"{kind}Created", f"{kind} {{name}} created", f"{kind}Failed", f"Failed to create {kind} {whose}: {{error}}")
    if operation.verb is Verb.DELETE:
        return Telling(f"{kind}Deleted", f"{kind} {{name}} deleted", f"{kind}DeleteFailed", f"Failed to delete {kind} {{name}}: {{error}}")
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
    reference = next(iter(operation.references), None)
    if reference is None:
        return None
    uid = reference.uid if isinstance(reference.uid, str) else uids.get(reference.uid.id, "")
    return reference.owner.id, uid
