"""Reach: pods of a domain in several NVLink cliques are reported, and only those (N29)."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.memo import Memo
from engine.plan import Alarm, Plan
from engine.runtime.event_publishing import new_warnings, warnings_of
from enginectl.output.domains import describe, domain_entry, is_good
from providers.fabrics.nvidia.fabric import Nvidia
from resources.domains.status import DomainStatus, domain_statuses
from resources.reports.summary import state_of, summary
from tests.laws.rack import Rack
from tests.mnnvl.asking import plan_of, root, up
from tests.mnnvl.sets import auto, gpu, named

A, B = "5a4d8b1e.0", "5a4d8b1e.1"
Body = dict[str, Any]


def placed(toy: Rack, domain: str, *cliques: str, status: str = "Ready") -> list[Any]:
    """The pods that claim the domain, each on a node of its own, which has joined in the clique that is given for it."""
    pods = sorted(id for id in toy.pods() if any(one["resourceClaimTemplateName"] == domain for one in _claims(toy.objects[id])))
    for number, pod in enumerate(pods):
        toy.write(pod, {"spec": {"nodeName": f"n{number}"}})
    joined(toy, domain, *cliques, status=status)
    return pods


def joined(toy: Rack, domain: str, *cliques: str, status: str = "Ready") -> None:
    """The driver reports nodes in these cliques: n0, n1, …"""
    nodes = [
        {"name": f"n{number}", "ipAddress": "10.0.0.1", "cliqueID": clique, "index": number, "status": status}
        for number, clique in enumerate(cliques)
    ]
    toy.write(toy.domain(domain), {"status": {"status": "Ready", "nodes": nodes}})


def _claims(pod: Body) -> list[Body]:
    return list(pod["spec"].get("resourceClaims") or ())


def alarms(plan: Plan) -> list[Alarm]:
    return [alarm for alarm in plan.alarms if alarm.reason == "ComputeDomainSplit"]


def statuses(toy: Rack, name: str = "demo") -> dict[str, DomainStatus]:
    plan = plan_of(toy, name)
    observed = next(observed for observed in toy.world().roots if observed.root.id == root(name))
    return {status.id.name: status for status in domain_statuses(observed, plan, toy.configuration)}


def state(toy: Rack, name: str = "demo") -> str:
    plan = plan_of(toy, name)
    observed = next(observed for observed in toy.world().roots if observed.root.id == root(name))
    return state_of(observed, plan)


def test_N29_pods_in_several_nvlink_cliques_are_reported_with_the_nodes_in_each() -> None:
    toy = up(auto(1, gpu(replicas=4)))
    before = state(toy)
    placed(toy, "demo-0", A, A, B, B)
    (alarm,), status = alarms(plan_of(toy)), statuses(toy)["demo-0"]

    assert (before, state(toy)) == ("settled", "degraded")
    assert alarm.text == (
        "pods of ComputeDomain demo-0 cannot all reach one another over NVLink: they run in NVLink cliques "
        "5a4d8b1e.0 (2 nodes), 5a4d8b1e.1 (2 nodes); engine why computedomain/demo-0 says what to do"
    )
    assert "joined, 4 of 4 nodes joined, in 2 NVLink cliques, pods: 4 of demo-0-worker" in describe(status)
    assert not is_good(status)
    assert domain_entry(status)["split"] == {"islands": [{"name": A, "nodes": 2}, {"name": B, "nodes": 2}], "nodesInNone": []}


def test_N29_nothing_waits_for_a_split_domain_and_its_warning_is_published_once() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0", A, B)
    plan = plan_of(toy)
    first, second = (warnings_of(toy.world(), [plan_of(toy)]) for _ in range(2))
    passes = (new_warnings(first, frozenset()), new_warnings(second, frozenset().union(*first.values())))
    published = [[warning.reason for warnings in by_root.values() for warning in warnings] for by_root in passes]

    assert not alarms(plan)[0].blocking
    assert (plan.operations, plan.deferred, plan.pending) == ((), (), ())
    assert published == [["ComputeDomainSplit"], []]


def test_N29_the_summary_has_the_warning() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0", A, B)
    observed = next(observed for observed in toy.world().roots if observed.root.id == root())
    workload = summary(observed, plan_of(toy), tuple(statuses(toy).values()))

    assert workload.state == "degraded"
    assert [alarm.reason for alarm in workload.alarms] == ["ComputeDomainSplit"]


@pytest.mark.parametrize("cliques", [(A, A), (A,), ("",), ()], ids=["one clique", "one node", "one node without NVLink", "none joined"])
def test_N29_a_domain_in_one_clique_or_on_one_node_is_whole(cliques: tuple[str, ...]) -> None:
    toy = up(auto(1, gpu(replicas=max(1, len(cliques)))))
    placed(toy, "demo-0", *cliques)

    assert (alarms(plan_of(toy)), state(toy), statuses(toy)["demo-0"].split) == ([], "settled", None)


@pytest.mark.parametrize(
    ("cliques", "short", "long"),
    [
        ((A, ""), "1 of 2 nodes without NVLink", "they run in NVLink clique 5a4d8b1e.0 (1 node) and on 1 node without NVLink (n1);"),
        (("", ""), "2 of 2 nodes without NVLink", "they run on 2 nodes without NVLink (n0, n1);"),
        ((A, B, ""), "in 2 NVLink cliques, 1 of 3 nodes without NVLink", "and on 1 node without NVLink (n2);"),
    ],
)
def test_N29_nodes_without_a_fabric_in_a_domain_of_several_are_reported(cliques: tuple[str, ...], short: str, long: str) -> None:
    toy = up(auto(1, gpu(replicas=len(cliques))))
    placed(toy, "demo-0", *cliques)
    split = statuses(toy)["demo-0"].split

    assert split is not None and split.summary == short
    assert long in alarms(plan_of(toy))[0].text


def test_N29_a_node_that_is_still_joining_may_not_know_its_clique_yet() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0", A, "", status="NotReady")

    assert alarms(plan_of(toy)) == []


def test_N29_the_warning_comes_when_every_pod_has_arrived_so_that_it_names_all_nodes() -> None:
    toy = up(auto(1, gpu(replicas=4)))
    pods = placed(toy, "demo-0", A, B)
    on_the_way = [len(alarms(plan_of(toy)))]
    toy.write(pods[3], {"spec": {"nodeName": None}})
    joined(toy, "demo-0", A, B, B)
    on_the_way.append(len(alarms(plan_of(toy))))
    toy.write(pods[3], {"spec": {"nodeName": "n3"}})
    joined(toy, "demo-0", A, B, B, A)

    assert on_the_way == [0, 0]
    assert "5a4d8b1e.0 (2 nodes), 5a4d8b1e.1 (2 nodes)" in alarms(plan_of(toy))[0].text


@pytest.mark.parametrize(
    "held",
    [
        {"spec": {"nodeName": None}, "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
        {"spec": {"nodeName": None, "schedulingGates": [{"name": "example.com/quota"}]}},
    ],
    ids=["fits nowhere", "gated"],
)
def test_N29_the_warning_does_not_wait_for_a_pod_that_is_held_back(held: Body) -> None:
    toy = up(auto(1, gpu(replicas=3)))
    toy.write(placed(toy, "demo-0", A, B)[2], held)

    assert "5a4d8b1e.0 (1 node), 5a4d8b1e.1 (1 node)" in alarms(plan_of(toy))[0].text


@pytest.mark.parametrize("change", [{"status": {"phase": "Succeeded"}}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}])
def test_N29_completed_and_terminating_pods_do_not_count(change: Body) -> None:
    toy = up(auto(1, gpu(replicas=3)))
    pods = placed(toy, "demo-0", A, A, B)
    toy.write(pods[2], change)

    assert alarms(plan_of(toy)) == []


def test_N29_a_node_that_has_no_pod_any_more_does_not_count() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0", A, A)
    joined(toy, "demo-0", A, A, B)

    assert alarms(plan_of(toy)) == []


def test_N29_a_shared_domain_is_split_between_its_sets_and_each_set_says_so_once() -> None:
    toy = up(named("rack", "one", replicas=2), named("rack", "two"))
    pods = placed(toy, "rack", A, A, B)
    of = {id.name: toy.objects[id]["spec"]["nodeName"] for id in pods}
    for id, body in toy.objects.items():
        if id.kind == "ResourceClaim":
            result = {"driver": "compute-domain.nvidia.com", "pool": of[body["metadata"]["annotations"]["pod"]], "device": "channel-0"}
            toy.write(id, {"status": {"allocation": {"devices": {"results": [{"request": "channel", **result}]}}}})

    assert [len(alarms(plan_of(toy, name))) for name in ("one", "two")] == [1, 1]
    assert alarms(plan_of(toy, "one")) == alarms(plan_of(toy, "two"))


@pytest.mark.parametrize("nodes", [None, 5, "n", [5, None], [{"name": 5, "cliqueID": []}, {"name": None, "cliqueID": {"a": 1}}]])
def test_N29_a_status_of_the_wrong_shape_is_no_fault_of_the_set(nodes: Any) -> None:
    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0")
    toy.write(toy.domain("demo-0"), {"status": {"status": 7, "nodes": nodes}})

    assert plan_of(toy).error is None and state(toy) == "settled"


def test_N29_the_plan_is_the_same_with_and_without_a_memo_and_follows_the_status() -> None:
    toy, memo = up(auto(2, gpu(replicas=2))), Memo()
    seen = []
    for cliques in ((A, B), (A, A), (B, A), ("", "")):
        placed(toy, "demo-1", *cliques)
        remembered = next(plan for plan in toy.plans(memo) if plan.root == root())
        assert remembered.alarms == plan_of(toy).alarms
        seen.append(len(remembered.alarms))

    assert seen == [1, 0, 1, 1]


def test_N29_a_fabric_that_does_not_tell_islands_reports_no_split() -> None:
    class Plain(Nvidia):
        """The fabric without its islands."""

        islands = None  # type: ignore[assignment]

    toy = up(auto(1, gpu(replicas=2)))
    placed(toy, "demo-0", A, B)
    toy.configuration = replace(toy.configuration, fabrics=(Plain(auto=True),))

    assert (alarms(plan_of(toy)), statuses(toy)["demo-0"].split) == ([], None)
