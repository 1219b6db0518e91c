"""A take-over in the middle of something: an update, a scale-in, a lost pod, a deletion (M9 to M15 of docs/behaviour/take-over.md)."""

from typing import Any

import anyio
import pytest

from engine.errors import LeaseTaken
from engine.runtime.lease import LEASE
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from tests.builders import clique, podcliqueset
from tests.stories.domains import assert_invariants
from tests.stories.pods import images, is_ready
from tests.stories.stage import Stage, stage
from tests.stories.umpire import Umpire
from tests.takeover.grove import COMPUTE_DOMAIN
from tests.takeover.grove_operator import CLIQUE
from tests.takeover.worlds import WORLDS, grove_in, inference, planned, run_by_grove, uids

pytestmark = pytest.mark.anyio


def image_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def nothing_is_left(cluster: Stage) -> bool:
    await cluster.settle()
    return await cluster.names() | set(uids(cluster, COMPUTE_DOMAIN)) == set()


async def test_M9_an_update_that_the_operator_has_begun_continues_with_what_is_still_outdated() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        await grove.begin_update(inference(2), pods=1, replicas=["llm-0-pool-0"])
        before = cluster.there(kinds.POD)
        updated = {name for name, pod in before.items() if image_of(pod) == "example/worker:2"}
        assert len(updated) == 4

        async with cluster.running() as ours:
            umpire = Umpire(cluster, ours)
            await cluster.settle()

        after = cluster.there(kinds.POD)
        assert umpire.fouls == []
        assert images(after.values()) == {"example/worker:2"}
        assert {name: after[name]["metadata"]["uid"] for name in updated} == {name: before[name]["metadata"]["uid"] for name in updated}
        status = cluster.there(kinds.PODCLIQUESET)["llm"]["status"]
        assert (status["updatedReplicas"], "updateEndedAt" in status["updateProgress"]) == (2, True)


async def test_M9_the_replica_that_the_operator_was_at_comes_first() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        await grove.begin_update(inference(2), replicas=["llm-1-pool-0"])
        patch = {"status": {"updateProgress": {"currentlyUpdating": [{"replicaIndex": 1, "updateStartedAt": "2026-01-01T00:00:00Z"}]}}}
        await grove.client.patch(kinds.PODCLIQUESET, "default", "llm", patch, subresource="status")

        deleted = {operation.id.name for operation in await planned(cluster) if operation.verb is Verb.DELETE}

        assert deleted and all(name.startswith("llm-1-") for name in deleted)


async def test_M9_of_an_update_that_only_removes_a_field_the_members_are_replaced_too() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        manifest = inference()
        for entry in manifest["spec"]["template"]["cliques"]:
            entry["spec"]["podSpec"]["containers"][0]["resources"].pop("limits", None)
        await grove.begin_update(manifest)

        await cluster.sync()

        assert all("limits" not in pod["spec"]["containers"][0]["resources"] for pod in cluster.there(kinds.POD).values())


async def test_M10_a_missing_pod_is_created_at_its_index_and_nothing_else_happens() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        lost = next(name for name, pod in cluster.there(kinds.POD).items() if pod["spec"]["hostname"] == "llm-1-pool-0-work-1")
        await cluster.kubectl.delete(kinds.POD, "default", lost, grace=0)
        before = uids(cluster)

        await cluster.sync()

        after = uids(cluster)
        (created,) = after.keys() - before.keys()
        assert {name: after[name] for name in before} == before
        assert cluster.there(kinds.POD)[created.removeprefix("Pod ")]["spec"]["hostname"] == "llm-1-pool-0-work-1"
        assert "updateProgress" not in cluster.there(kinds.PODCLIQUESET)["llm"]["status"]


async def test_M10_a_pod_that_is_not_ready_starts_no_update() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        cluster.fail(next(iter(cluster.there(kinds.POD))), "crash")
        await cluster.clock.advance(30)
        before = uids(cluster)

        async with cluster.running():
            await cluster.clock.advance(120)

        assert uids(cluster) == before
        assert "updateProgress" not in cluster.there(kinds.PODCLIQUESET)["llm"]["status"]


async def test_M10_a_terminating_pod_is_replaced_and_its_index_stays() -> None:
    slow = podcliqueset("web", clique("worker", 2, annotations={"sandbox.grove.io/terminate-after": "30s"}))
    async with stage() as cluster:
        await grove_in(cluster).deploy(slow)
        leaving, staying = sorted(cluster.there(kinds.POD))
        index = cluster.there(kinds.POD)[leaving]["metadata"]["labels"][labels.POD_INDEX]
        await cluster.delete(kinds.POD, leaving)
        stays = cluster.there(kinds.POD)[staying]["metadata"]["uid"]

        await cluster.sync()

        pods = cluster.there(kinds.POD)
        assert pods[staying]["metadata"]["uid"] == stays
        assert {pod["metadata"]["labels"][labels.POD_INDEX] for pod in pods.values()} == {"0", "1"}
        assert leaving not in pods and index in {"0", "1"}


async def test_M11_a_scale_in_of_which_the_operator_did_nothing_yet_is_done_in_order() -> None:
    async with run_by_grove(WORLDS["domains and own claims"]) as (cluster, _):
        await cluster.scale(kinds.PODCLIQUESET, "nvl", 1)
        before = uids(cluster, kinds.POD)

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert set(cluster.there(COMPUTE_DOMAIN)) == {"nvl-0"}
        assert uids(cluster, kinds.POD) == {name: uid for name, uid in before.items() if name.startswith("Pod nvl-0-")}
        await assert_invariants(cluster.kubectl)


async def test_M11_services_and_domains_that_the_operator_has_left_behind_are_deleted() -> None:
    async with run_by_grove(WORLDS["automatic domains"]) as (cluster, grove):
        leftover = {"grove.io/podcliqueset-replica-index": "7"}
        for kind, name in ((kinds.SERVICE, "racks-0"), (COMPUTE_DOMAIN, "racks-0")):
            body = cluster.there(kind)[name]
            meta = {key: body["metadata"][key] for key in ("labels", "ownerReferences", "namespace")} | {"name": "racks-7"}
            meta["labels"] = {**meta["labels"], **leftover, "app.kubernetes.io/name": "racks-7"}
            if kind is COMPUTE_DOMAIN:
                meta["finalizers"] = ["grove.io/computedomain-finalizer"]
            spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "racks-7"}}}
            if kind is kinds.SERVICE:
                spec = {"clusterIP": "None", "selector": {**body["spec"]["selector"], **leftover}}
            await grove.client.create(kind, "default", {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec})
        await cluster.settle()
        pods = uids(cluster, kinds.POD)

        deleted = {operation.id.name for operation in await planned(cluster) if operation.verb is Verb.DELETE}
        await cluster.sync()

        assert deleted == {"racks-7"}
        assert uids(cluster, kinds.POD) == pods
        assert set(cluster.there(kinds.SERVICE)) == {"racks-0", "racks-1"} == set(cluster.there(COMPUTE_DOMAIN))


async def test_M12_a_set_that_is_being_deleted_is_removed_without_leftovers() -> None:
    async with run_by_grove(WORLDS["domains and own claims"]) as (cluster, _):
        await cluster.delete(kinds.PODCLIQUESET, "nvl")

        await cluster.sync()

        assert await nothing_is_left(cluster)


async def test_M12_a_domain_that_is_being_deleted_is_kept_until_its_pods_are_gone_and_no_pod_is_restarted() -> None:
    async with run_by_grove(WORLDS["automatic domains"]) as (cluster, _):
        await cluster.delete(COMPUTE_DOMAIN, "racks-0")
        domain = cluster.there(COMPUTE_DOMAIN)["racks-0"]["metadata"]["uid"]
        before = uids(cluster, kinds.POD)

        (plan,) = (await cluster.look()).planned.plans
        async with cluster.running():
            await cluster.clock.advance(60)

        assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainTerminating"]
        assert uids(cluster, kinds.POD) == before
        assert cluster.there(COMPUTE_DOMAIN)["racks-0"]["metadata"]["uid"] == domain


@pytest.mark.parametrize("name", ["inference", "domains and own claims", "shared claims", "start order in groups"])
async def test_M13_afterwards_a_set_is_updated_scaled_and_deleted_as_any_other(name: str) -> None:
    world = WORLDS[name]
    root = world.manifest["metadata"]["name"]
    async with run_by_grove(world) as (cluster, _), cluster.running() as ours:
        await cluster.settle()
        umpire = Umpire(cluster, ours)
        edited = {**cluster.there(kinds.PODCLIQUESET)[root]["spec"]}
        cliques = [dict(entry) for entry in edited["template"]["cliques"]]
        for entry in cliques:
            pod = entry["spec"]["podSpec"]
            containers = [{**pod["containers"][0], "image": "example/new:2"}, *pod["containers"][1:]]
            entry["spec"] = {**entry["spec"], "podSpec": {**pod, "containers": containers}}
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", root, {"spec": {"template": {"cliques": cliques}}})
        await cluster.settle()

        assert umpire.fouls == []
        assert images(cluster.there(kinds.POD).values()) == {"example/new:2"}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))

        before, replicas = uids(cluster, kinds.POD), edited["replicas"]
        await cluster.scale(kinds.PODCLIQUESET, root, replicas + 1)
        await cluster.settle()
        after = uids(cluster, kinds.POD)
        assert {pod: after[pod] for pod in before} == before
        assert {pod.removeprefix(f"Pod {root}-").partition("-")[0] for pod in after.keys() - before.keys()} == {str(replicas)}
        assert not ours.refused

        await cluster.delete(kinds.PODCLIQUESET, root)
        assert await nothing_is_left(cluster)


async def test_M13_a_clique_that_is_scaled_out_gets_the_lowest_free_indices() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        await cluster.sync()
        await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 4)
        await cluster.sync()

        pods = [pod for pod in cluster.there(kinds.POD).values() if pod["metadata"]["labels"][CLIQUE] == "llm-0-router"]
        assert sorted(pod["spec"]["hostname"] for pod in pods) == [f"llm-0-router-{k}" for k in range(4)]


async def test_M14_gated_pods_of_a_scaled_gang_are_released_once_the_base_gang_is_scheduled() -> None:
    async with stage() as cluster:
        gated = [f"llm-0-pool-1-{member}" for member in ("lead", "work")]
        await grove_in(cluster).deploy(inference(replicas=1), gated=gated)
        before = uids(cluster, kinds.POD)
        assert sum(bool(pod["spec"].get("schedulingGates")) for pod in cluster.there(kinds.POD).values()) == 3

        await cluster.sync()

        assert uids(cluster, kinds.POD) == before
        assert all(map(is_ready, cluster.there(kinds.POD).values()))


def lease(cluster: Stage, holder: str, duration: int = 15) -> dict[str, Any]:
    """The Lease as client-go's leader election writes it, under the name that the stage's processes use."""
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": now, "acquireTime": now, "leaseTransitions": 1}
    meta = {"name": "engine", "namespace": "default"}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta, "spec": spec}


OPERATOR = "grove-operator-7d9c8b6f5-x2k4p_0d7a6a3e-8f4b-4a51-9a39-6a1f0c6f2f11"


async def test_M15_nothing_is_written_while_the_operator_renews_its_lease() -> None:
    async with run_by_grove(WORLDS["gang"]) as (cluster, grove):
        await grove.client.create(LEASE, "default", lease(cluster, OPERATOR))

        async def renew() -> None:
            while True:
                await cluster.clock.sleep(2)
                await grove.client.patch(LEASE, "default", "engine", {"spec": lease(cluster, OPERATOR)["spec"]})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(renew)
            ours = cluster.start()
            with pytest.raises(LeaseTaken, match="held by grove-operator-7d9c8b6f5-x2k4p"):
                await cluster.sync(ours)
            tasks.cancel_scope.cancel()

        assert ours.count == 0


@pytest.mark.parametrize(("holder", "duration"), [("", 1), (OPERATOR, 15)], ids=["released", "left behind"])
async def test_M15_a_lease_that_the_operator_has_released_or_left_behind_is_taken(holder: str, duration: int) -> None:
    async with run_by_grove(WORLDS["gang"]) as (cluster, grove):
        await grove.client.create(LEASE, "default", lease(cluster, holder, duration))

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert cluster.process.count > 0
