"""Update budgets: how many pods of a clique, or replicas of a group, an update takes at a time, and what it says when it is stuck."""

from typing import Any

import pytest

from engine.conditions import find
from engine.ids import Kind
from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import images, is_leaving, is_ready, label, running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
SLOW = {"sandbox.grove.io/ready-after": "5s", "sandbox.grove.io/terminate-after": "3s"}
BROKEN = "example/broken:1"


def standalone(version: int, replicas: int = 6, rolling: Body | None = None, **spec: Any) -> Body:
    """A clique of six that all are needed."""
    worker = clique("worker", replicas, pod_spec=running(version), annotations=SLOW, **spec)
    return podcliqueset("web", worker | ({"rollingUpdate": rolling} if rolling else {}))


def grouped(version: int, replicas: int = 4, rolling: Body | None = None, **spec: Any) -> Body:
    """A clique that stands alone, and a group of four."""
    same: Body = {"pod_spec": running(version), "annotations": SLOW, **spec}
    pool = group("pool", "leader", "worker", replicas=replicas, min_available=2, **({"rollingUpdate": rolling} if rolling else {}))
    return podcliqueset("llm", clique("router", **same), clique("leader", **same), clique("worker", 2, **same), groups=(pool,))


def serving(cluster: Stage) -> list[Body]:
    return [pod for pod in cluster.there(kinds.POD).values() if is_ready(pod)]


def serving_replicas(cluster: Stage) -> int:
    """The replicas of the group whose three pods serve."""
    replicas = [label(pod, "podcliquescalinggroup-replica-index") for pod in serving(cluster)]
    return sum(replicas.count(index) == 3 for index in set(replicas) - {""})


def is_over(cluster: Stage, version: int, pods: int) -> bool:
    found = serving(cluster)
    return len(found) == len(cluster.there(kinds.POD)) == pods and images(found) == {f"example/worker:{version}"}


def update_of(cluster: Stage, kind: Kind, name: str) -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    found = find(cluster.there(kind)[name]["status"].get("conditions") or (), "UpdateInProgress") or {}
    return str(found.get("status")), str(found.get("reason")), str(found.get("message"))


@pytest.mark.parametrize(("most", "fewest"), [(None, 5), (1, 5), (3, 3), (9, 0)])
async def test_an_update_takes_as_many_pods_of_a_clique_at_a_time_as_its_budget_says(most: int | None, fewest: int) -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(standalone(1))
        await cluster.settle()

        await cluster.apply(standalone(2, rolling={"maxUnavailable": most} if most else None))
        counts: list[Any] = []
        while not is_over(cluster, 2, 6):
            await cluster.clock.advance(0.5)
            counts.append(len(serving(cluster)))

        assert min(counts) == fewest


@pytest.mark.parametrize(("most", "fewest"), [(1, 3), (2, 2), (3, 1)])
async def test_an_update_takes_as_many_replicas_of_a_group_at_a_time_as_its_budget_says(most: int, fewest: int) -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(grouped(1))
        await cluster.settle()

        await cluster.apply(grouped(2, rolling={"maxUnavailable": most}))
        counts: list[Any] = []
        while not is_over(cluster, 2, 13):
            await cluster.clock.advance(0.5)
            counts.append((serving_replicas(cluster), len(serving(cluster))))

        assert min(replicas for replicas, _ in counts) == fewest
        assert all(replicas == 4 for replicas, pods in counts if pods == 12 and replicas), "the router goes when the group is complete"


async def test_the_budget_counts_against_the_pods_that_the_clique_has_now() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(standalone(1, 2, minAvailable=1))
        await cluster.settle()
        await cluster.scale(kinds.PODCLIQUE, "web-0-worker", 8)
        await cluster.settle()

        await cluster.apply(standalone(2, 2, {"maxUnavailable": 2}, minAvailable=1))
        counts: list[Any] = []
        while not is_over(cluster, 2, 8):
            await cluster.clock.advance(0.5)
            counts.append(len(serving(cluster)))

        assert min(counts) == 6


@pytest.mark.parametrize("broken", [2, 3, 4])
async def test_old_replicas_that_are_not_available_are_replaced_although_they_are_as_many_as_the_budget(broken: int) -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(grouped(1, rolling={"maxUnavailable": 2}))
        await cluster.settle()
        for name, pod in cluster.there(kinds.POD).items():
            if label(pod, "podcliquescalinggroup-replica-index") in list("0123")[:broken] and "-leader-" in name:
                cluster.fail(name, "crash")
        await cluster.until(lambda: serving_replicas(cluster) == 4 - broken)

        await cluster.apply(grouped(2, rolling={"maxUnavailable": 2}))
        counts: list[Any] = []
        while not is_over(cluster, 2, 13):
            assert len(counts) < 400, "the update is stuck"
            await cluster.clock.advance(0.5)
            counts.append(serving_replicas(cluster))

        assert min(counts) >= min(4 - broken, 2)


async def test_old_pods_that_are_not_ready_are_replaced_although_they_are_as_many_as_the_budget() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(standalone(1, rolling={"maxUnavailable": 2}))
        await cluster.settle()
        for name in sorted(cluster.there(kinds.POD))[:2]:
            cluster.fail(name, "crash")
        await cluster.until(lambda: len(serving(cluster)) == 4)

        await cluster.apply(standalone(2, rolling={"maxUnavailable": 2}))
        await cluster.until(lambda: is_over(cluster, 2, 6), within=200)


async def test_whether_an_update_runs_is_a_condition_of_clique_group_and_set() -> None:
    subjects = ((kinds.PODCLIQUE, "llm-0-router"), (kinds.SCALING_GROUP, "llm-0-pool"), (kinds.PODCLIQUESET, "llm"))
    async with stage() as cluster, cluster.running():
        await cluster.apply(grouped(1))
        await cluster.settle()
        assert {update_of(cluster, *subject)[:2] for subject in subjects} == {("False", "NoActiveUpdate")}

        await cluster.apply(grouped(2))
        await cluster.clock.advance(4)
        assert {update_of(cluster, *subject)[:2] for subject in subjects} == {("True", "Progressing")}

        await cluster.settle()
        assert {update_of(cluster, *subject)[:2] for subject in subjects} == {("False", "NoActiveUpdate")}


def stuck(version: int, broken: str, deadline: str = "2m") -> Body:
    """The same, with deadlines; the pods of the named clique cannot start."""
    body = grouped(version, rolling={"progressDeadline": deadline})
    for each in body["spec"]["template"]["cliques"]:
        if each["name"] == broken:
            each["spec"]["podSpec"] = {"containers": [{"name": "main", "image": BROKEN}]}
            each["annotations"] = {"sandbox.grove.io/fail": "image-pull"}
        if each["name"] == "router":
            each["rollingUpdate"] = {"progressDeadline": deadline}
    return body


async def test_a_group_without_progress_is_reported_and_the_clique_that_waits_for_its_turn_is_not() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(grouped(1))
        await cluster.settle()

        await cluster.apply(stuck(2, "leader"))
        await cluster.clock.advance(110)
        assert update_of(cluster, kinds.SCALING_GROUP, "llm-0-pool")[:2] == ("True", "Progressing")

        await cluster.clock.advance(60)
        status, reason, message = update_of(cluster, kinds.SCALING_GROUP, "llm-0-pool")
        assert (status, reason) == ("Unknown", "ProgressDeadlineExceeded")
        assert message.startswith("no progress since 2026-01-01T") and message.endswith("longer than progressDeadline (2m0s)")
        assert update_of(cluster, kinds.PODCLIQUE, "llm-0-router")[1] != "ProgressDeadlineExceeded"
        text = "0/1 PodCliques stuck, 1/1 PodCliqueScalingGroups stuck"
        assert update_of(cluster, kinds.PODCLIQUESET, "llm") == ("Unknown", "ProgressDeadlineExceeded", text)
        (plan,) = (await cluster.look(ours=ours)).planned.plans
        assert any(wait.why.startswith("its update makes no progress since") for wait in plan.pending)
        pods = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()}

        await cluster.clock.advance(600)
        assert {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()} == pods, "nothing else is done"

        await cluster.apply(grouped(3, rolling={"progressDeadline": "2m"}))
        await cluster.settle()
        assert is_over(cluster, 3, 13)
        assert update_of(cluster, kinds.SCALING_GROUP, "llm-0-pool")[:2] == ("False", "NoActiveUpdate")
        assert update_of(cluster, kinds.PODCLIQUESET, "llm")[:2] == ("False", "NoActiveUpdate")


async def test_a_budget_is_no_change_of_pods() -> None:
    async with stage() as cluster:
        await cluster.apply(grouped(1))
        await cluster.sync()
        before = {name: (pod["metadata"]["uid"], pod["metadata"]["labels"]) for name, pod in cluster.there(kinds.POD).items()}

        await cluster.apply(grouped(1, rolling={"maxUnavailable": 3, "progressDeadline": "5m"}))
        (plan,) = (await cluster.look()).planned.plans
        assert [operation for operation in plan.operations if operation.verb is not Verb.STATUS] == []
        await cluster.sync()

        assert {name: (pod["metadata"]["uid"], pod["metadata"]["labels"]) for name, pod in cluster.there(kinds.POD).items()} == before
        assert not any(map(is_leaving, cluster.there(kinds.POD).values()))


async def test_what_waits_is_told_whose_turn_it_is_with_that_one_s_budget() -> None:
    def both(version: int) -> Body:
        body = grouped(version, rolling={"maxUnavailable": 2})
        (router,) = (each for each in body["spec"]["template"]["cliques"] if each["name"] == "router")
        router["rollingUpdate"] = {"maxUnavailable": 3}
        return body

    async with stage() as cluster:
        await cluster.apply(both(1))
        await cluster.sync()

        plans = (await cluster.look([both(2)])).planned.plans

        whys = {wait.id.name: wait.why for plan in plans for wait in plan.pending}
        assert whys["llm-0-pool-0-worker"] == "2 of 2 pods are outdated: llm-0-router is updated now, maxUnavailable: 3 at a time"
