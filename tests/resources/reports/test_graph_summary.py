"""The summary of a graph: what runs it, how many of its services are ready, its waits, and its state together with its sets."""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Observed, live, slice_of
from engine.operation import Cause, Create
from engine.plan import Plan, Wait
from resources.base import kinds
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.replica_limit import MOST_INSTANCES
from resources.reports.graph_summary import GraphSummary
from resources.reports.summarized_graph import graph_summary, nested_plans
from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker

ROOT = kinds.DYNAMO_GRAPH.id("ai", "g")
SET = kinds.PODCLIQUESET.id("ai", "g")
GROUP = kinds.SCALING_GROUP.id("ai", "g-0-decode")
NO_MULTINODE = frozenset({kinds.PODCLIQUESET.key, kinds.LEADER_WORKER_SET.key})


def body(id: ResourceId, api_version: str, **rest: Any) -> dict[str, Any]:
    """An object as a server returns it."""
    metadata = {"name": id.name, "namespace": "ai", "uid": f"u-{id.kind}-{id.name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": api_version, "kind": id.kind, "metadata": metadata, **rest}


def specified(replicas: int | None = 2) -> InferenceGraph:
    """A graph of a frontend and of a worker on two nodes."""
    decode = worker(nodes=2) if replicas is None else worker(nodes=2, replicas=replicas)
    return graph(Frontend=frontend(), decode=decode)


def observed(available: int = 2, *, unserved: frozenset[str] = frozenset(), state: Any = "pending") -> Observed:
    """The graph with its set, the scaling group and the clique of its services."""
    group = body(GROUP, "grove.io/v1alpha1", spec={"replicas": 2}, status={"replicas": 2, "availableReplicas": available})
    clique = body(kinds.PODCLIQUE.id("ai", "g-0-frontend"), "grove.io/v1alpha1", spec={"replicas": 1}, status={"readyReplicas": 1})
    nested = Observed(live(body(SET, "grove.io/v1alpha1")), {"0": slice_of([live(group), live(clique)])})
    root = live(body(ROOT, "nvidia.com/v1alpha1", status={"state": state}))
    return Observed(root, {}, unserved=unserved, nested={SET: nested})


def summarized(world: Observed, graph: InferenceGraph | None, plan: Plan, *sets: Plan) -> GraphSummary:
    """The summary."""
    return graph_summary(world, graph, plan, sets)


def test_a_graph_has_the_state_of_its_status_and_counts_the_services_that_are_ready() -> None:
    result = summarized(observed(available=1), specified(), Plan(ROOT))

    assert (result.graph_state, result.orchestrator, result.ready, len(result.services)) == ("pending", "Grove", 1, 2)
    decode = next(service for service in result.services if service.name == "decode")
    assert (decode.nodes, decode.replicas, decode.usable, decode.state.component_name) == (2, 2, 1, "g-0-decode")
    assert result.nested == (SET,)


def test_a_service_that_names_no_replicas_is_counted_against_those_that_exist() -> None:
    result = summarized(observed(), specified(None), Plan(ROOT))

    assert {service.name: service.replicas for service in result.services} == {"decode": 2, "Frontend": 1}


def test_a_graph_that_nothing_can_run_has_no_orchestrator_and_no_service_that_is_ready() -> None:
    result = summarized(observed(unserved=NO_MULTINODE), specified(), Plan(ROOT))

    assert (result.orchestrator, result.ready, [service.state.component_kind for service in result.services]) == ("", 0, ["", ""])


def test_a_number_of_replicas_that_no_webhook_has_judged_costs_no_more_than_what_is_created() -> None:
    world = replace(observed(unserved=frozenset({kinds.PODCLIQUESET.key})), nested={})

    (decode,) = (each for each in summarized(world, specified(30_000), Plan(ROOT)).services if each.name == "decode")

    assert (decode.replicas, decode.state.reason.count("leaderworkerset/")) == (30_000, MOST_INSTANCES)


def test_a_graph_that_is_not_valid_has_no_services() -> None:
    result = summarized(observed(state={"hostile": 1}), None, Plan(ROOT, deferred=(Wait(ROOT, "Validation failed", blocked=True),)))

    assert (result.state, result.orchestrator, result.services) == ("blocked", "", ())


def test_the_state_is_the_most_severe_of_the_graph_and_its_sets() -> None:
    pending = Plan(ROOT, pending=(Wait(GROUP, "not ready"),))
    pod = kinds.POD.id("ai", "p")
    blocked = Plan(SET, deferred=(Wait(pod, "no claim", blocked=True),), parent=ROOT)
    changing = replace(blocked, operations=(Create(pod, "missing", Cause.INTENT, manifest={}),))

    assert [summarized(observed(), specified(), pending, *sets).state for sets in ((), (blocked,), (changing,))] == [
        "pending",
        "blocked",
        "changing",
    ]


def test_waits_are_those_of_the_graph_and_what_is_blocked_in_its_sets_each_object_once() -> None:
    pod = kinds.POD.id("ai", "p")
    plan = Plan(ROOT, deferred=(Wait(GROUP, "no queue", blocked=True),), pending=(Wait(GROUP, "not ready"),))
    nested = Plan(SET, deferred=(Wait(pod, "no claim", blocked=True), Wait(pod, "later")), pending=(Wait(pod, "not ready"),), parent=ROOT)

    waits = summarized(observed(), specified(), plan, nested).waits

    assert [(wait.id, wait.why) for wait in waits] == [(pod, "no claim"), (GROUP, "no queue")]
    assert [wait.since for wait in waits] == [None, datetime(2026, 1, 1, tzinfo=UTC)]


def test_the_plans_of_a_graphs_sets_are_those_that_it_proposes_or_controls() -> None:
    proposed, other = Plan(kinds.PODCLIQUESET.id("ai", "new"), parent=ROOT), Plan(kinds.PODCLIQUESET.id("ai", "other"))
    controlled = Plan(SET)

    assert nested_plans(observed(), [Plan(ROOT), proposed, other, controlled]) == (controlled, proposed)
