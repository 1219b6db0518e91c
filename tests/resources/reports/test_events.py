"""The Kubernetes Events of a pass: what was done and what failed, each on the parent of the object."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from engine.errors import Forbidden
from engine.event import Event, RootWarning
from engine.ids import Kind, Owner, OwnerRef, ResourceId
from engine.operation import BoundOwner, Cause, Operation, Outcome, Result
from engine.verb import Verb
from resources.base import kinds
from resources.reports.events import events_of_pass
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.operations import operation_of

ROOT = kinds.PODCLIQUESET.id("default", "demo")
REFUSED = Forbidden("not for you")


def demo(group_replicas: int = 2) -> dict[str, Any]:
    """A set with a standalone clique and a scaling group of two cliques."""
    cliques = [clique("a", 2), clique("b"), clique("c")]
    return podcliqueset("demo", *cliques, groups=(group("g", "b", "c", replicas=group_replicas),), terminationDelay="10m")


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set has been settled for a minute."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    toy.now += timedelta(minutes=1)
    return toy


def every_call(operation: Operation) -> bool:
    """Every call succeeds."""
    return True


def passed(toy: Toy, succeeds: Callable[[Operation], bool] = every_call) -> tuple[Event, ...]:
    """The events of one pass, in which those calls succeed that `succeeds` selects."""
    results = []
    for plan in toy.plans():
        failed: set[str] = set()
        for operation in plan.operations:
            if failed & operation.after:
                failed.add(operation.key)
                results.append(Result(operation, Outcome.SKIPPED, error=Exception("comes after")))
            elif succeeds(operation):
                toy.call(operation)
                results.append(Result(operation, Outcome.DONE, uid=uid_of(toy, operation.id), owner_uid=owner_uid(toy, operation)))
            else:
                failed.add(operation.key)
                results.append(Result(operation, Outcome.FAILED, error=REFUSED, owner_uid=owner_uid(toy, operation)))
    toy.live()
    toy.now += timedelta(seconds=1)
    return events_of_pass((), results)


def uid_of(toy: Toy, id: ResourceId) -> str:
    """The uid of an object of the cluster; empty if there is none."""
    return str(toy.objects[id]["metadata"]["uid"]) if id in toy.objects else ""


def owner_uid(toy: Toy, operation: Operation) -> str:
    """The uid of the first owner that the operation gives the object; empty if it gives none."""
    return uid_of(toy, operation.owners[0].owner.id) if operation.owners else ""


def all_events(toy: Toy, passes: int = 12) -> list[Event]:
    """The events of all passes until nothing changes."""
    return [event for _ in range(passes) for event in passed(toy)]


def scale(toy: Toy, kind: Kind, name: str, replicas: int) -> None:
    """What `kubectl scale` does."""
    id = kind.id("default", name)
    toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})


def edit(toy: Toy, cliques: list[dict[str, Any]]) -> None:
    """A user applies the set with these cliques."""
    generation = toy.objects[ROOT]["metadata"]["generation"] + 1
    toy.write(ROOT, {"spec": {"template": {"cliques": cliques}}, "metadata": {"generation": generation}})


def reasons(events: list[Event], about: ResourceId = ROOT) -> dict[str, int]:
    """Reason -> the number of events about an object."""
    return dict(Counter(event.reason for event in events if event.about == about))


def test_a_created_object_is_reported_on_its_parent() -> None:
    toy = Toy()
    toy.put(demo())
    events = all_events(toy)

    assert reasons(events) == {
        "PodCliqueCreateOrUpdateSuccessful": 1,
        "PodCliqueScalingGroupCreateSuccessful": 1,
        "PodGangCreateOrUpdateSuccessful": 2,
    }
    assert reasons(events, kinds.SCALING_GROUP.id("default", "demo-0-g")) == {"PodCliqueCreateSuccessful": 4}
    assert reasons(events, kinds.PODCLIQUE.id("default", "demo-0-a")) == {"PodCreateSuccessful": 2}
    assert {event.uid for event in events} <= {body["metadata"]["uid"] for body in toy.objects.values()}
    assert all(event.subject and event.message[event.subject_at :].startswith(event.subject) for event in events)


def test_a_group_replica_that_is_scaled_in_is_reported_once_on_the_set() -> None:
    toy = up(demo(3))
    scale(toy, kinds.SCALING_GROUP, "demo-0-g", 1)
    events = [event for event in all_events(toy) if "Replica" in event.reason]

    uid = toy.objects[ROOT]["metadata"]["uid"]
    assert sorted(events, key=lambda event: event.message) == [
        Event(ROOT, uid, "PodCliqueScalingGroupReplicaDeleteSuccessful", f"Deleted PodCliqueScalingGroup demo-0-g replicaIndex: {index}")
        for index in (1, 2)
    ]


def test_a_group_replica_that_an_update_replaces_is_reported_once_on_the_set() -> None:
    toy = up(demo())
    edit(toy, [clique("a", 2), clique("b", labels={"now": "other"}), clique("c")])

    messages = [event.message for event in all_events(toy, 30) if event.reason.startswith("PodCliqueScalingGroupReplicaDelete")]
    assert sorted(messages) == [f"Deleted PodCliqueScalingGroup demo-0-g replicaIndex: {index}" for index in (0, 1)]


def test_a_recycled_replica_is_reported_once_and_its_cliques_are_not() -> None:
    toy = up(demo())
    for pod in [pod for pod in toy.pods() if pod.name.startswith("demo-0-a-")]:
        toy.write(pod, {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})
    passed(toy)
    toy.now += timedelta(minutes=11)
    events = all_events(toy)

    deletes = [event for event in events if "Delete" in event.reason and event.about == ROOT]
    uid = toy.objects[ROOT]["metadata"]["uid"]
    assert deletes == [Event(ROOT, uid, "PodCliqueSetReplicaDeleteSuccessful", "PodCliqueSet replica 0 deleted")]


def test_a_replica_is_reported_as_failed_until_all_of_it_is_deleted() -> None:
    toy = up(demo(2))
    scale(toy, kinds.SCALING_GROUP, "demo-0-g", 1)
    passed(toy)
    first = passed(toy, succeeds=lambda operation: operation.id.name != "demo-0-g-1-b" or operation.verb is not Verb.DELETE)
    later = all_events(toy)

    what = "PodCliqueScalingGroup demo-0-g replicaIndex: 1"
    prefix = "PodCliqueScalingGroupReplicaDelete"
    assert [(event.reason, event.message, event.warning) for event in first if event.reason.startswith(prefix)] == [
        (f"{prefix}Failed", f"Error deleting {what}: not for you", True)
    ]
    deleted = [event for event in later if event.reason.startswith(prefix)]
    assert [(event.reason, event.message) for event in deleted] == [(f"{prefix}Successful", f"Deleted {what}")]


def test_the_loss_of_all_scheduled_replicas_is_reported_on_their_owner() -> None:
    toy = up(podcliqueset("demo", clique("b", 2), groups=(group("g", "b", replicas=1),)))
    for pod in toy.pods():
        toy.write(pod, {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})
    events = all_events(toy, 3)

    tail = "investigate node availability or capacity."
    lost = sorted((event.about.name, event.message, event.warning) for event in events if event.reason == "AllScheduledReplicasLost")
    fires = "Gang termination will fire after TerminationDelay if the"
    assert lost == [
        ("demo-0-g", f"All scheduled replicas lost (was 1). {fires} PCSG stays below MinAvailable; {tail}", True),
        ("demo-0-g-0-b", f"All scheduled pods lost (was 2). {fires} PodClique stays below MinAvailable; {tail}", True),
    ]


def test_a_status_that_could_not_be_written_causes_no_event() -> None:
    toy = up(podcliqueset("demo", clique("b", 2)))
    for pod in toy.pods():
        toy.write(pod, {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})

    assert passed(toy, succeeds=lambda operation: operation.verb is not Verb.STATUS) == ()


def test_with_on_delete_the_cliques_of_a_group_are_patched_and_reported_on_the_group() -> None:
    manifest = demo()
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, [clique("a", 2), clique("b", labels={"now": "other"}), clique("c")])

    assert reasons(all_events(toy), kinds.SCALING_GROUP.id("default", "demo-0-g")) == {"PodCliqueCreateOrUpdateSuccessful": 2}


@pytest.mark.parametrize(
    ("kind", "about", "reason", "message"),
    [
        ("PodClique", ROOT, "PodCliqueCreateOrUpdateFailed", "PodClique default/demo-0-a creation or updation failed: not for you"),
        ("PodGang", ROOT, "PodGangCreateOrUpdateFailed", "Error Creating/Updating PodGang default/demo-0: not for you"),
        (
            "PodCliqueScalingGroup",
            ROOT,
            "PodCliqueScalingGroupCreateOrUpdateFailed",
            "Error creating or updating PodCliqueScalingGroup default/demo-0-g: not for you",
        ),
    ],
)
def test_a_failed_call_is_a_warning(kind: str, about: ResourceId, reason: str, message: str) -> None:
    toy = Toy()
    toy.put(demo())
    events = passed(toy, succeeds=lambda operation: operation.id.kind != kind)

    failed = [event for event in events if event.warning and event.about == about]
    assert {event.reason for event in failed} == {reason}
    assert {event.message for event in failed} >= {message}


def test_a_fault_of_a_set_is_a_warning_with_the_reason_validation_failed() -> None:
    fault = RootWarning(ROOT, "uid-1", 3, "spec.replicas: must not be negative")

    assert events_of_pass([fault], ()) == (Event(ROOT, "uid-1", "ValidationFailed", fault.text, warning=True),)


def test_an_internal_error_is_published_under_its_own_reason_and_not_as_a_fault_of_the_set() -> None:
    defect = RootWarning(ROOT, "uid-1", 3, "KeyError: 'x'", "InternalError")

    assert events_of_pass([defect], ()) == (Event(ROOT, "uid-1", "InternalError", "KeyError: 'x'", warning=True),)


def test_failures_come_first() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 150)))
    events = passed(toy, succeeds=lambda operation: operation.id.kind != "Pod" or operation.id.name.endswith(tuple("bcdfgh")))

    warnings = [event.warning for event in events]
    assert warnings == sorted(warnings, reverse=True) and True in warnings


def test_a_pod_that_cannot_be_created_is_reported_on_its_clique() -> None:
    toy = Toy()
    toy.put(demo())
    events = passed(toy, succeeds=lambda operation: operation.id.kind != "Pod")

    failed = [event for event in events if event.about == kinds.PODCLIQUE.id("default", "demo-0-a")]
    assert [event.reason for event in failed] == ["PodCreateFailed"] * 2
    assert all(event.message.startswith("Error creating pod demo-0-a-") and event.message.endswith(": not for you") for event in failed)


def graph_call(verb: Verb, kind: Kind, outcome: Outcome, *, new: bool) -> Result:
    """A call on an object of a graph, successful or refused."""
    graph, id = kinds.DYNAMO_GRAPH.id("default", "demo"), kind.id("default", "demo")
    owner = Owner(graph, kinds.DYNAMO_GRAPH.api_version)
    controller = None if new else OwnerRef(graph.kind, graph.name, "u-graph", controller=True)
    owners = (BoundOwner(owner, "u-graph"),) if new else ()
    operation = operation_of(verb, id, "why", Cause.INTENT, owners=owners, controller=controller, body={"metadata": {"name": "demo"}})
    return Result(operation, outcome, error=REFUSED if outcome is Outcome.FAILED else None)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
def test_the_objects_of_a_graph_have_no_events(outcome: Outcome) -> None:
    objects = (kinds.PODCLIQUESET, kinds.SERVICE, kinds.DEPLOYMENT, kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP, kinds.SECRET)
    calls = [graph_call(verb, kind, outcome, new=verb is Verb.CREATE) for kind in objects for verb in Verb]

    assert events_of_pass((), calls) == ()


def test_an_alarm_of_a_graph_is_a_warning_under_its_own_reason() -> None:
    graph = kinds.DYNAMO_GRAPH.id("default", "demo")
    warnings = (RootWarning(graph, "u", 1, "nothing can run it", "FailedToReconcileTheResources"), RootWarning(graph, "u", 1, "a fault"))

    assert events_of_pass(warnings, ()) == (
        Event(graph, "u", "FailedToReconcileTheResources", "nothing can run it", warning=True),
        Event(graph, "u", "ValidationFailed", "a fault", warning=True),
    )


@pytest.mark.parametrize(("kind", "name"), [(kinds.PODCLIQUE, "demo-0-a"), (kinds.SCALING_GROUP, "demo-0-g")])
def test_what_is_scaled_to_zero_has_lost_nothing_and_no_termination_is_announced(kind: Kind, name: str) -> None:
    toy = up(demo())
    scale(toy, kind, name, 0)

    assert [event for event in all_events(toy) if event.reason == "AllScheduledReplicasLost"] == []


def test_the_alarms_about_domains_that_are_counted_apart_are_events_that_are() -> None:
    warnings = [RootWarning(ROOT, "uid", 1, "text", "ThingFailed", counted_apart=True), RootWarning(ROOT, "uid", 1, "text", "Other")]

    assert [(event.reason, event.counted_apart) for event in events_of_pass(warnings, ())] == [("ThingFailed", True), ("Other", False)]
