"""What users of Grove's operator have reported: each of these goes right here."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conditions import find
from providers.registry import SCHEDULERS
from resources.base import kinds
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.stories.graphs import graph, service
from tests.stories.pods import clique_of, images, is_bound, is_leaving, is_ready, label, running
from tests.stories.stage import SETUP, Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
SLOW = {"sandbox.grove.io/ready-after": "5s", "sandbox.grove.io/terminate-after": "3s"}
LONG = {"set": "inference-llama", "group": "prefill-groups", "clique": "prefill-workers1"}
"""Together as long as names may be."""


def workload(version: int = 1, replicas: int = 3, sets: int = 2, **spec: Any) -> Body:
    """A clique that stands alone, and a group."""
    same: Body = {"pod_spec": running(version), "annotations": SLOW, **spec}
    cliques = (clique("router", replicas, minAvailable=1, **same), clique("leader", **same), clique("worker", 2, **same))
    return podcliqueset("llm", *cliques, groups=(group("pool", "leader", "worker", replicas=2),), replicas=sets)


def uids(cluster: Stage) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()}


def status_of(cluster: Stage) -> Body:
    found: Body = cluster.there(kinds.PODCLIQUESET)["llm"]["status"]
    return found


def ended(cluster: Stage) -> bool:
    return "updateEndedAt" in status_of(cluster).get("updateProgress", {})


def ready(cluster: Stage, pods: Iterable[Body] | None = None) -> bool:
    return all(map(is_ready, cluster.there(kinds.POD).values() if pods is None else pods))


async def test_of_three_templates_in_a_row_no_progress_ends_before_the_last_one_serves() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        for version in (2, 3, 4):
            await cluster.apply(workload(version))
            await cluster.clock.advance(11)
            assert not ended(cluster)
        while not ended(cluster):
            await cluster.clock.advance(1)

        assert images(cluster.there(kinds.POD).values()) == {"example/worker:4"}
        assert ready(cluster)
        assert status_of(cluster)["updatedReplicas"] == 2


async def test_edits_of_replicas_in_quick_succession_are_no_update() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        before, hash = uids(cluster), status_of(cluster)["currentGenerationHash"]

        for replicas, sets in ((4, 2), (2, 3), (5, 1), (3, 2), (6, 3), (3, 2)):
            await cluster.apply(workload(1, replicas, sets))
            await cluster.clock.advance(5)
            status = status_of(cluster)
            assert status["updatedReplicas"] <= status["replicas"]
            assert status["currentGenerationHash"] == hash and "updateProgress" not in status
        await cluster.settle()

        kept = {name: uid for name, uid in before.items() if name.startswith("llm-0-")}
        assert uids(cluster).items() >= kept.items()
        assert status_of(cluster)["updatedReplicas"] == 2


async def test_pods_that_had_crashed_before_they_were_ready_are_no_broken_ones() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        for name in cluster.there(kinds.POD):
            cluster.fail(name, "crash")
        await cluster.until(lambda: not any(map(is_ready, cluster.there(kinds.POD).values())))
        for name in cluster.there(kinds.POD):
            cluster.fail(name, None)
        await cluster.until(lambda: ready(cluster))
        assert any(entry.get("lastState") for pod in cluster.there(kinds.POD).values() for entry in pod["status"]["containerStatuses"])

        await cluster.apply(workload(2))
        while not ended(cluster):
            await cluster.clock.advance(1)
            serving = [clique_of(pod) for pod in cluster.there(kinds.POD).values() if is_ready(pod)]
            assert serving.count("llm-0-router") >= 2 and serving.count("llm-1-router") >= 2


async def test_an_edit_while_pods_start_takes_none_of_those_that_serve_beyond_its_turn() -> None:
    async with stage() as cluster, cluster.running():
        slow = {**SLOW, "sandbox.grove.io/ready-after": "20s"}
        await cluster.apply(workload())
        await cluster.settle()
        await cluster.apply(workload(1, sets=4, annotations=slow))
        await cluster.clock.advance(7)

        await cluster.apply(workload(2, sets=4))
        while not ended(cluster):
            await cluster.clock.advance(1)
            serving = [clique_of(pod) for pod in cluster.there(kinds.POD).values() if is_ready(pod)]
            assert serving.count("llm-0-router") >= 2 and serving.count("llm-1-router") >= 2


async def test_an_update_has_not_ended_before_what_it_created_is_ready() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await cluster.apply(workload(2))
        await cluster.clock.advance(1)
        while not ended(cluster):
            for kind, ends in ((kinds.SCALING_GROUP, "availableReplicas"), (kinds.PODCLIQUE, "readyReplicas")):
                for body in cluster.there(kind).values():
                    progress = (body.get("status") or {}).get("updateProgress") or {}
                    if progress.get("updateEndedAt", "") > progress.get("updateStartedAt", "~"):
                        assert body["status"][ends] == body["spec"]["replicas"]
            await cluster.clock.advance(1)
        assert ready(cluster) and images(cluster.there(kinds.POD).values()) == {"example/worker:2"}


async def test_a_process_that_is_started_anew_within_the_delay_recycles_when_the_first_one_would_have() -> None:
    body = workload(sets=1)
    body["spec"]["template"]["terminationDelay"] = "10m"
    async with stage() as cluster:
        await cluster.apply(body)
        async with cluster.running():
            await cluster.settle()
            before = {name: each["metadata"]["uid"] for name, each in cluster.there(kinds.PODCLIQUE).items()}
            for name in cluster.there(kinds.POD):
                cluster.fail(name, "unready")
            await cluster.clock.advance(200)
        for _ in range(2):
            async with cluster.running():
                await cluster.clock.advance(190)
                assert {name: each["metadata"]["uid"] for name, each in cluster.there(kinds.PODCLIQUE).items()} == before
        async with cluster.running():
            await cluster.clock.advance(30)
            await cluster.settle()
        assert not {each["metadata"]["uid"] for each in cluster.there(kinds.PODCLIQUE).values()} & set(before.values())
        assert ready(cluster)


async def test_an_autoscaler_finds_its_selector_in_the_first_status() -> None:
    busy = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    scaled = {"maxReplicas": 5, "metrics": [busy]}
    async with stage(without=("kubelet",)) as cluster, cluster.running():
        router, worker = clique("router", autoScalingConfig=scaled), clique("worker")
        await cluster.apply(podcliqueset("llm", router, worker, groups=(group("pool", "worker", scaleConfig=scaled),)))
        await cluster.until(lambda: len(cluster.there(kinds.AUTOSCALER)) == 2)
        await cluster.clock.advance(2)

        assert not any(map(is_ready, cluster.there(kinds.POD).values()))
        assert "grove.io/podclique=llm-0-router" in cluster.there(kinds.PODCLIQUE)["llm-0-router"]["status"]["hpaPodSelector"]
        assert "grove.io/podcliquescalinggroup=llm-0-pool" in cluster.there(kinds.SCALING_GROUP)["llm-0-pool"]["status"]["selector"]


async def test_the_longest_names_have_pods_that_run_gates_that_open_and_claims_that_are_used() -> None:
    reference = "accelerators-of-the-prefill-workers"
    worker = clique(LONG["clique"], resourceSharing=[share(reference, "PerReplica")])
    pool = group(LONG["group"], LONG["clique"], replicas=12, resourceSharing=[share(reference)])
    body = podcliqueset(LONG["set"], worker, groups=(pool,), resourceClaimTemplates=[claim_template(reference)])
    assert len("".join(LONG.values())) == 45
    async with stage(nodes=40) as cluster, cluster.running():
        await cluster.apply(body)
        await cluster.settle()

        pods = cluster.there(kinds.POD)
        assert len(pods) == 12 and all(map(is_ready, pods.values()))
        claims = cluster.there(kinds.RESOURCE_CLAIM)
        assert max(map(len, claims)) > 63
        for pod in pods.values():
            entries = pod["spec"]["resourceClaims"]
            assert {entry["resourceClaimName"] for entry in entries} <= set(claims)
            assert len({entry["name"] for entry in entries}) == 2 and max(len(entry["name"]) for entry in entries) <= 63
            assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": entry["name"]} for entry in entries]
            assert clique_of(pod) in cluster.there(kinds.PODCLIQUE)


async def test_gangs_that_were_lost_come_back_for_what_was_scaled_and_no_pod_is_restarted() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload(sets=1))
        await cluster.settle()
        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 4)
        await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 5)
        await cluster.settle()
        before = {name: gang["spec"] for name, gang in cluster.there(kinds.PODGANG).items()}
        pods = uids(cluster)
        assert len(before) == 4

        for name in before:
            await cluster.delete(kinds.PODGANG, name)
        await cluster.settle()

        assert {name: gang["spec"] for name, gang in cluster.there(kinds.PODGANG).items()} == before
        assert uids(cluster) == pods


@pytest.mark.parametrize("replicas", [0, 1])
async def test_a_group_below_its_minimum_loses_only_its_highest_replicas_and_comes_up_again(replicas: int) -> None:
    groups = (group("pool", "worker", replicas=3, min_available=2),)
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", clique("router"), clique("worker", 2), groups=groups, terminationDelay="2m"))
        await cluster.settle()
        before = uids(cluster)

        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", replicas)
        await cluster.clock.advance(600)
        kept = {name: uid for name, uid in before.items() if "router" in name or name.startswith("llm-0-pool-0-") and replicas}
        assert uids(cluster) == kept

        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 3)
        await cluster.settle()
        assert len(uids(cluster)) == 7 and ready(cluster)
        assert not any(pod["spec"].get("schedulingGates") for pod in cluster.there(kinds.POD).values())


async def test_a_pod_of_a_group_below_its_minimum_is_scheduled_again() -> None:
    groups = (group("pool", "worker", replicas=2, min_available=2),)
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", clique("router"), clique("worker", 2), groups=groups))
        await cluster.settle()
        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 1)
        await cluster.settle()

        for lost in cluster.there(kinds.POD):
            await cluster.delete(kinds.POD, lost)
        await cluster.settle()

        assert len(uids(cluster)) == 3 and all(map(is_bound, cluster.there(kinds.POD).values()))


async def test_the_gate_of_a_group_that_is_scaled_up_opens_within_seconds() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload(sets=1))
        await cluster.settle()

        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 6)
        await cluster.clock.advance(3)

        pods = cluster.there(kinds.POD).values()
        assert len(pods) == 3 + 6 * 3 and all(map(is_bound, pods))


async def test_a_pod_that_hangs_on_a_dead_node_is_replaced_and_named() -> None:
    annotations = {"sandbox.grove.io/terminate-after": "10h"}
    spec = {**running(1), "terminationGracePeriodSeconds": 36_000}
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", clique("worker", 3, minAvailable=2, annotations=annotations, pod_spec=spec)))
        await cluster.settle()
        lost = min(cluster.there(kinds.POD))
        await cluster.delete(kinds.POD, lost)
        await cluster.clock.advance(30)

        pods = cluster.there(kinds.POD)
        assert is_leaving(pods[lost]) and sum(map(is_ready, pods.values())) == 3
        successor = max(pods.values(), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        assert label(successor, "podclique-pod-index") == label(pods[lost], "podclique-pod-index")
        (plan,) = (await cluster.look()).planned.plans
        assert [wait.id.name for wait in plan.pending if wait.id.kind == "Pod"] == [lost]


async def test_members_that_an_update_creates_again_under_their_names_are_in_the_podgroup_of_their_gang() -> None:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    async with stage(addons=("kai",)) as cluster:
        cluster.setup = replace(SETUP, schedulers=dict(SCHEDULERS), default_scheduler="kai-scheduler")
        for name, parent in (("all", {}), ("team", {"parentQueue": "all"})):
            spec: Body = {"resources": dict.fromkeys(("cpu", "memory", "gpu"), unlimited)} | parent
            queue: Body = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
            await cluster.kubectl.create(kinds.KAI_QUEUE, "", queue)

        async with cluster.running():
            for version in (1, 2):
                body = workload(version, sets=1, labels={"kai.scheduler/queue": "team"})
                await cluster.apply(body)
                await cluster.settle()

                pods = cluster.there(kinds.POD).values()
                assert len(pods) == 9 and all(map(is_ready, pods)) and images(pods) == {f"example/worker:{version}"}
                gangs = {pod["metadata"]["name"]: label(pod, "podgang") for pod in pods}
                assert {pod["metadata"]["name"]: pod["metadata"]["annotations"]["pod-group-name"] for pod in pods} == gangs
                assert set(gangs.values()) == set(cluster.there(kinds.KAI_POD_GROUP)) == {"llm-0", "llm-0-pool-0"}
                subgroups: dict[str, set[str]] = {name: set() for name in gangs.values()}
                for name, group_ in cluster.there(kinds.KAI_POD_GROUP).items():
                    subgroups[name] = {entry["name"] for entry in group_["spec"]["subGroups"]}
                assert all(pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] in subgroups[label(pod, "podgang")] for pod in pods)


async def test_a_graph_is_successful_only_while_all_its_services_serve() -> None:
    def chat(image: str, replicas: int) -> Body:
        decode = service(replicas, nodes=2)
        decode["extraPodSpec"]["mainContainer"]["image"] = image
        return graph(decode=decode, other=service(2))

    async with stage() as cluster, cluster.running():
        for image, replicas in (("example/dynamo:1", 2), ("example/dynamo:1", 3), ("example/dynamo:2", 3), ("example/dynamo:2", 1)):
            await cluster.apply(chat(image, replicas))
            for _ in range(60):
                await cluster.clock.advance(1)
                status = cluster.there(kinds.DYNAMO_GRAPH)["chat"].get("status") or {}
                for inner in cluster.there(kinds.PODCLIQUESET).values():
                    counts = inner.get("status") or {}
                    assert counts.get("updatedReplicas", 0) <= counts.get("replicas", 0)
                of = {name: each for name, each in (status.get("services") or {}).items()}
                assert all(each.get("updatedReplicas", 0) <= each.get("replicas", 0) for each in of.values())
            condition = find(status.get("conditions") or (), "Ready") or {}
            assert condition.get("status") == "True" and ready(cluster)
            assert images(cluster.there(kinds.POD).values()) == {image, "example/dynamo:1"}
