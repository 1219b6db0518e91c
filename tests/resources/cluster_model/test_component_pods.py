"""Component pods: which pods of components leave their nodes in a forecast, and which have room."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.forecast.cluster_model import Assumption
from engine.forecast.store import ForecastStore
from engine.observed import Live, live
from resources.base import kinds
from resources.cluster_model.cluster import ModelledCluster
from resources.cluster_model.component_pods import (
    ComponentRoom,
    ExchangeStep,
    exchange_steps,
    is_hindered,
    starting,
    steps_between,
    vacated,
)
from resources.cluster_model.pod_room import PodRoom
from resources.cluster_model.pods import is_rolled_out
from resources.cluster_model.references import PodReferences
from resources.placement.usage_totals import UsageTotals, room_node
from resources.preview.forecasting import RoomNeeds
from tests.resources.cluster_model.test_pod_room import GPU, pod, room

NAME = "llm-decode"
LABELS = {"selector": NAME}
RECREATE = {"type": "Recreate"}


def deployment(replicas: int, image: str = "x:1", strategy: Any = RECREATE) -> Live:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "strategy": strategy, "template": template}
    return live({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME, "namespace": "ml", "uid": "u"}, "spec": spec})


def leaving(after: Live | None, *pods: tuple[dict[str, Any], bool]) -> list[bool]:
    """Whether each pod leaves its node, of those that are there and have these labels; then whether it is being deleted."""
    lives = {after.id: after} if after is not None else {}
    leaves = RoomNeeds((), frozenset(), vacated([deployment(3)], lives)).leaves
    return [leaves is not None and leaves("ml", labels, is_ending) for labels, is_ending in pods]


STAYS = (LABELS, False)


@pytest.mark.parametrize(
    "after, expected",
    [
        (deployment(3), [False, False, False]),
        (deployment(1), [True, True, False]),
        (deployment(0), [True, True, True]),
        (deployment(2, "x:2"), [True, True, True]),
        (None, [True, True, True]),
    ],
    ids=["unchanged", "smaller", "empty", "replaced", "gone"],
)
def test_of_a_component_that_becomes_smaller_only_so_many_pods_leave(after: Live | None, expected: list[bool]) -> None:
    assert leaving(after, STAYS, STAYS, STAYS) == expected


def test_pods_of_others_stay_and_those_that_are_being_deleted_are_not_counted() -> None:
    assert leaving(deployment(2), ({"selector": "other"}, False), (LABELS, True), STAYS, STAYS) == [False, True, True, False]


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


@pytest.mark.parametrize(
    "earlier, replicas, strategy, expected",
    [
        (1, 1, None, (ExchangeStep(1, 1), ExchangeStep(1, 1))),
        (3, 3, rolling("25%", "25%"), (ExchangeStep(1, 3), ExchangeStep(3, 1))),
        (4, 4, rolling("25%", "25%"), (ExchangeStep(1, 3), ExchangeStep(4, 0))),
        (10, 10, rolling("25%", "25%"), (ExchangeStep(1, 8), ExchangeStep(10, 0))),
        (3, 3, rolling(1, 0), (ExchangeStep(1, 3), ExchangeStep(3, 1))),
        (3, 3, rolling(0, "20%"), (ExchangeStep(1, 2), ExchangeStep(3, 0))),
        (1, 1, rolling(0, 1), ()),
        (3, 3, RECREATE, ()),
        (2, 5, rolling(1, 0), (ExchangeStep(4, 2), ExchangeStep(5, 1))),
        (5, 2, rolling(1, 0), (ExchangeStep(1, 2), ExchangeStep(2, 1))),
        (0, 2, rolling(1, 0), ()),
        (2, 0, rolling(1, 0), ()),
    ],
)
def test_of_an_update_only_so_many_pods_go_before_new_ones_are_ready(
    earlier: int, replicas: int, strategy: Any, expected: tuple[ExchangeStep, ...]
) -> None:
    assert (
        exchange_steps({"replicas": earlier, "template": {}}, {"replicas": replicas, "strategy": strategy, "template": {"a": 1}})
        == expected
    )


def test_pods_that_stay_for_new_ones_are_those_beyond_what_may_be_missing() -> None:
    after = deployment(4, "x:2", rolling("25%", "25%"))
    needs = RoomNeeds((), frozenset(), vacated([deployment(4)], {after.id: after}))
    assert needs.leaves is not None and needs.replaced is not None

    leaves = needs.leaves
    assert [leaves("ml", LABELS, False) for _ in range(4)] == [True, False, False, False]
    assert (needs.replaced("ml", LABELS), needs.replaced("ml", {"selector": "other"})) == (after.id, None)


def test_an_update_that_replaces_no_pods_has_no_steps() -> None:
    assert not steps_between(deployment(3), deployment(4))
    assert not steps_between(None, deployment(4))


GRAPH = kinds.DYNAMO_GRAPH.id("ml", "llm")


def refused_component() -> Live:
    """A component of two pods that need a node each, whose pods the scheduler refuses."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {GPU: "4"}}}]
    spec = {"replicas": 2, "template": {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}}
    return live({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME, "namespace": "ml", "uid": "u"}, "spec": spec})


def test_a_component_that_waits_for_room_waits_on_until_some_is_freed() -> None:
    component, nodes = refused_component(), room(pod("a-0", node="n0"))
    components = ComponentRoom(nodes, lambda _: {}, ())
    nodes.note_refused(components.refused([(component, GRAPH, 0)]))
    components.note_waiting(nodes.is_explained)

    assert not components.have_room(component, GRAPH)
    assert components.admitted(nodes.admitted()) == [] and not nodes.shortages(), "It waits as before."
    nodes.remove(["uid-a-0"])
    assert components.admitted(nodes.admitted()) == [component.id]
    assert components.have_room(component, GRAPH)


def test_a_component_has_room_once_its_last_pod_has_a_node() -> None:
    component, nodes = refused_component(), room(pod("a-0", node="n0"), pod("a-1", node="n1"))
    components = ComponentRoom(nodes, lambda _: {}, ())
    assert not components.have_room(component, GRAPH) and components.admitted(nodes.admitted()) == []

    for uid, expected in (("uid-a-0", []), ("uid-a-1", [component.id])):
        nodes.remove([uid])
        assert components.admitted(nodes.admitted()) == expected
        assert components.have_room(component, GRAPH) is bool(expected)


def group_of_leader(gpus: int = 4) -> Live:
    """A LeaderWorkerSet of a leader and a worker, which need a node each."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {GPU: str(gpus)}}}]
    template = {"workerTemplate": {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}, "size": 2}
    metadata = {"name": NAME, "namespace": "ml", "uid": "u", "generation": 1}
    spec = {"replicas": 1, "leaderWorkerTemplate": template}
    return live({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec})


def refused_group(**status: Any) -> Live:
    """Its PodGroup, which Volcano refuses."""
    conditions = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "queue over capability"}]
    metadata = {"name": NAME, "namespace": "ml", "uid": "group"}
    status = {"phase": "Pending", "conditions": conditions, **status}
    return live({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "status": status})


def answered(nodes: PodRoom | None, *lives: Live) -> tuple[bool, bool]:
    """Whether the component becomes ready, and whether it is told that it stays as it is, in a cluster with these objects and nodes."""
    store = ForecastStore(lives, datetime(2030, 1, 1, tzinfo=UTC), lambda _: False)
    model = ModelledCluster((), nodes)
    model.begin(store)
    used = model.answer(store) | model.answer(store)
    return is_rolled_out(store.lives[kinds.LEADER_WORKER_SET.id("ml", NAME)]), Assumption.FAILURES_STAY in used


def vacated_room(*bodies: dict[str, Any], nodes: int = 2) -> PodRoom:
    """Nodes on which pods of others run: those with a label `leaves` do so in the forecast."""
    totals = UsageTotals(leaves=lambda _, labels, __: "leaves" in labels)
    for each in bodies:
        totals.add(each)
    made = [{"metadata": {"name": f"n{i}"}, "status": {"allocatable": {GPU: "4", "pods": "10"}}} for i in range(nodes)]
    return PodRoom(totals.room(map(room_node, made)))


def other(name: str, node: str, **labels: str) -> dict[str, Any]:
    """A pod of others that takes a node."""
    body = pod(name, node=node).body
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


def test_a_group_that_is_refused_although_there_is_room_stays_so() -> None:
    for nodes in (None, vacated_room(), vacated_room(other("a-0", "n3", leaves="1"), nodes=4)):
        assert answered(nodes, group_of_leader(), refused_group()) == (False, True)


def test_a_group_that_is_refused_because_of_pods_that_leave_their_nodes_is_tried_again() -> None:
    assert answered(vacated_room(other("a-0", "n0", leaves="1")), group_of_leader(), refused_group()) == (True, False)
    assert answered(vacated_room(other("a-0", "n0")), group_of_leader(), refused_group()) == (False, False), "It waits."


def test_of_a_group_that_has_lost_pods_only_these_need_nodes() -> None:
    leader = other("llm-decode-0", "n0")
    group = refused_group(phase="Unknown", running=1)

    assert answered(vacated_room(leader, other("a-0", "n1", leaves="1")), group_of_leader(), group) == (True, False)
    assert answered(vacated_room(leader, other("a-0", "n1")), group_of_leader(), group) == (False, False), "It waits."
    assert answered(vacated_room(leader), group_of_leader(), group) == (False, True), "Something else is in its way."


def groups(replicas: int, updated: int, image: str = "x:1") -> Live:
    """A LeaderWorkerSet of groups of two pods, of which so many groups are updated."""
    template = {"spec": {"containers": [{"name": "main", "image": image}], "resourceClaims": [CLAIM]}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    metadata = {"name": NAME, "namespace": "ml", "uid": "u"}
    body = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}
    return live({**body, "status": {"replicas": 2, "updatedReplicas": updated}})


CLAIM = {"name": "d", "resourceClaimTemplateName": "own"}
STARTED = [pod(f"started-{number}", node="n") for number in range(2)]
LEADER = live({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "leader", "namespace": "ml"}, "spec": {"resourceClaims": [CLAIM]}})


@pytest.mark.parametrize(
    ("after", "read", "expected"),
    [
        (groups(2, 1), [], [f"{NAME}-leaderTemplate-1", f"{NAME}-workerTemplate-1"]),
        (groups(2, 1), [*STARTED, LEADER], ["leader", f"{NAME}-workerTemplate-1"]),
        (groups(1, 1), [*STARTED, LEADER], []),
        (groups(1, 1, "x:2"), [*STARTED, LEADER], [f"{NAME}-leaderTemplate-0", f"{NAME}-workerTemplate-0"]),
    ],
    ids=["not read", "a leader waits", "it goes first", "replaced"],
)
def test_of_groups_that_exist_only_pods_that_have_not_started_have_still_to(after: Live, read: list[Live], expected: list[str]) -> None:
    assert [each.id.name for each in starting(after, groups(2, 1), read)] == expected


def test_of_a_pod_that_waits_only_the_claims_that_are_not_made_are_missing() -> None:
    status = {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "made"}]}
    body = {**LEADER.body, "spec": {"resourceClaims": [CLAIM, {"name": "e", "resourceClaimTemplateName": "other"}]}, "status": status}

    (waiting, _) = starting(groups(2, 1), groups(2, 1), [*STARTED, live(body)])

    store = ForecastStore([], datetime(2026, 1, 1, tzinfo=UTC), lambda _: False)
    assert [id.name for id in PodReferences(()).lacks(store, waiting)] == ["other"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"running": {}}, False), ({"waiting": {"reason": "CrashLoopBackOff"}}, True), ({"waiting": {"reason": "ContainerCreating"}}, False)],
)
def test_a_component_with_a_pod_that_runs_again_after_a_failure_may_still_become_ready(state: dict[str, Any], *, expected: bool) -> None:
    container = {"name": "main", "ready": False, "state": state, "lastState": {"terminated": {"exitCode": 1}}}
    status = {"phase": "Running", "containerStatuses": [container]}
    failed_before = live(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}, "spec": {"nodeName": "n"}, "status": status}
    )

    assert is_hindered(deployment(1), deployment(1), [failed_before]) is expected
