"""Domains in time, with the driver: they come up, are scaled, deleted under their users, and go, in the order that keeps the fabric."""

import pytest

from providers.fabrics.nvidia.names import CHANNEL_CLASS, COMPUTE_DOMAIN, DOMAIN_LABEL
from resources.base import kinds
from resources.base.kinds import POD, RESOURCE_CLAIM_TEMPLATE
from tests.mnnvl.sets import OURS, auto, gpu, gpus
from tests.stories.domains import violations
from tests.stories.fabric import (
    CONTROLLER,
    NO_CONTROLLER,
    DomainRecorder,
    domains,
    event_messages,
    left_of_domains,
    pass_time,
    playing,
    rack,
    uids,
    users,
)
from tests.stories.pods import is_ready, label
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


CHANNEL_TEMPLATE = {
    "apiVersion": RESOURCE_CLAIM_TEMPLATE.api_version,
    "kind": RESOURCE_CLAIM_TEMPLATE.name,
    "metadata": {"name": "mine", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}]}}},
}
"""A user's own template for a channel."""


async def up(cluster: Stage, replicas: int = 1, workers: int = 2) -> None:
    """A set of so many replicas is up."""
    await cluster.apply(auto(replicas, gpu(replicas=workers)))
    await cluster.settle()
    assert len(cluster.there(POD)) == replicas * workers and all(map(is_ready, cluster.there(POD).values()))


async def test_bring_up_the_domain_then_its_template_then_the_pods_then_the_nodes_join() -> None:
    async with rack() as cluster, cluster.running() as ours:
        recorder = DomainRecorder(cluster, ours)
        await cluster.apply(auto(1, gpu(replicas=2)))
        await pass_time(cluster, 10)

        assert recorder.done == ["create demo-0", "create pod in demo-0", "create pod in demo-0"]
        assert recorder.fouls == []
        (domain,) = domains(cluster).values()
        assert domain["metadata"]["finalizers"] == [OURS, DOMAIN_LABEL]
        assert [one["status"] for one in domain["status"]["nodes"]] == ["Ready", "Ready"]
        assert all(map(is_ready, cluster.there(POD).values()))
        assert await event_messages(cluster, "ComputeDomainCreated") == ["ComputeDomain demo-0 created"]


@pytest.mark.parametrize("how", ["scaled to nothing", "deleted", "deleted in the foreground"])
async def test_the_end_pods_and_claims_then_the_domain_then_the_driver_then_our_finalizer(how: str) -> None:
    async with rack() as cluster, cluster.running() as ours:
        await up(cluster)
        recorder = DomainRecorder(cluster, ours)
        if how == "scaled to nothing":
            await cluster.scale(kinds.PODCLIQUESET, "demo", 0)
        else:
            await cluster.delete(kinds.PODCLIQUESET, "demo", "Foreground" if "foreground" in how else "Background")
        # In a foreground deletion the collector deletes domains at once, and the driver asks nobody.
        await pass_time(cluster, 60, but=frozenset({"I1", "I3"} if "foreground" in how else ()))

        assert recorder.done == (["patch demo-0"] if "foreground" in how else ["delete demo-0", "patch demo-0"])
        assert recorder.fouls == []
        assert await left_of_domains(cluster) == []


async def test_scaled_to_and_fro_running_pods_keep_their_domains() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await up(cluster, 2, workers=1)
        recorder, first = DomainRecorder(cluster, ours), uids(cluster)
        for replicas in (4, 1, 0, 2):
            kept = {
                name: pod["metadata"]["uid"]
                for name, pod in cluster.there(POD).items()
                if int(label(pod, "podcliqueset-replica-index")) < replicas
            }
            await cluster.scale(kinds.PODCLIQUESET, "demo", replicas)
            await pass_time(cluster, 40, step=2)
            assert sorted(domains(cluster)) == [f"demo-{index}" for index in range(replicas)]
            assert kept.items() <= {name: pod["metadata"]["uid"] for name, pod in cluster.there(POD).items()}.items()
            assert (len(cluster.there(POD)), recorder.fouls) == (replicas, [])
            if replicas in (4, 1):
                assert first["demo-0"] == uids(cluster)["demo-0"]
        assert all(map(is_ready, cluster.there(POD).values()))


async def test_deleted_by_hand_under_running_pods_it_stays_is_told_of_and_goes_with_its_replica() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await up(cluster)
        before, recorder = uids(cluster), DomainRecorder(cluster, ours)
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.clock.advance(60)

        (domain,) = domains(cluster).values()
        assert (uids(cluster), domain["metadata"]["finalizers"]) == (before, [OURS])
        assert len(users(cluster, "demo-0")) == 2
        assert len(await event_messages(cluster, "ComputeDomainTerminating")) == 1
        # The fabric is gone all the same: this is what people are warned of.
        assert any(wrong.startswith("I1") for wrong in await violations(cluster.kubectl)) or not all(
            map(is_ready, cluster.there(POD).values())
        )

        await cluster.scale(kinds.PODCLIQUESET, "demo", 0)
        await cluster.clock.advance(60)
        assert (recorder.done, recorder.fouls, await left_of_domains(cluster)) == (["patch demo-0"], [], [])


async def test_when_the_pods_that_lost_theirs_are_taken_away_there_is_a_new_one_for_new_pods() -> None:
    async with rack() as cluster, cluster.running():
        await up(cluster)
        before = uids(cluster)
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.clock.advance(10)
        for name in users(cluster, "demo-0"):
            await cluster.delete(POD, name)
        await cluster.clock.advance(60)

        assert uids(cluster).keys() == before.keys() and uids(cluster) != before
        assert [is_ready(pod) for pod in cluster.there(POD).values()] == [True, True]
        assert await violations(cluster.kubectl) == []


async def test_without_the_driver_a_deletion_waits_says_for_what_writes_nothing_and_goes_on_when_it_is_back() -> None:
    async with rack(driver=NO_CONTROLLER) as cluster, cluster.running() as ours:
        async with playing(cluster, "driver", CONTROLLER):
            await up(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.clock.advance(120)
        (domain,) = domains(cluster).values()
        assert "deletionTimestamp" in domain["metadata"] and domain["metadata"]["finalizers"] == [OURS, DOMAIN_LABEL]
        written = ours.count
        await cluster.clock.advance(1800)

        assert ours.count == written
        (plan,) = (await cluster.look()).planned.plans
        why = next(held.why for held in plan.deferred if held.id.kind == "ComputeDomain")
        assert why.endswith(f"waits for the removal of finalizer {DOMAIN_LABEL}")

        async with playing(cluster, "driver", CONTROLLER):
            await cluster.clock.advance(60)
        assert (await cluster.names(), domains(cluster)) == (set(), {})


async def test_a_namespace_goes_with_all_its_domains() -> None:
    async with rack() as cluster, cluster.running():
        await up(cluster, 2, workers=1)
        await cluster.kubectl.delete(kinds.NAMESPACE, "", "default")
        await cluster.clock.advance(120)

        assert "default" not in cluster.there(kinds.NAMESPACE)
        assert await left_of_domains(cluster) == []


@pytest.mark.parametrize("manner", ["Background", "Foreground"])
async def test_a_set_removed_by_force_leaves_no_domain_behind(manner: str) -> None:
    async with rack() as cluster:
        async with cluster.running():
            await up(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "demo", manner)
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "demo", {"metadata": {"finalizers": None}})
        await cluster.clock.advance(30)
        async with cluster.running() as ours:
            recorder = DomainRecorder(cluster, ours)
            await cluster.clock.advance(120)

        assert (await cluster.names(), recorder.fouls) == (set(), [])
        assert await left_of_domains(cluster) == []


async def test_a_set_made_again_before_the_domain_of_the_one_before_it_is_gone_gets_its_own() -> None:
    async with rack() as cluster, cluster.running():
        await up(cluster)
        before = uids(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "demo", {"metadata": {"finalizers": None}})
        await cluster.apply(auto(1, gpu(replicas=2)))
        await cluster.clock.advance(180)

        assert list(domains(cluster)) == ["demo-0"] and uids(cluster) != before
        assert [is_ready(pod) for pod in cluster.there(POD).values()] == [True, True]


async def test_a_sync_of_what_is_settled_writes_nothing() -> None:
    async with rack() as cluster:
        await cluster.apply(auto(2, gpu()))
        report = await cluster.sync()
        await cluster.clock.advance(30)
        again = await cluster.sync()

        assert (report.failures, again.failures, cluster.process.count) == ((), (), 0)
        assert [plan.operations for plan in (await cluster.look()).planned.plans] == [()]


async def test_pods_that_cannot_go_have_their_time_and_then_the_domain_goes_with_a_warning() -> None:
    async with rack(without=("kubelet",)) as cluster, cluster.running():
        async with playing(cluster, "kubelet"):
            await up(cluster)
        await cluster.scale(kinds.PODCLIQUESET, "demo", 0)  # And nobody on the nodes hears of it.
        await cluster.clock.advance(280)
        assert "deletionTimestamp" not in domains(cluster)["demo-0"]["metadata"]
        await cluster.clock.advance(120)
        assert (domains(cluster), len(cluster.there(POD))) == ({}, 2)
        (warning,) = await event_messages(cluster, "ComputeDomainDrainTimedOut")
        assert warning.startswith("ComputeDomain demo-0 is deleted although it is in use: 2 pods")


async def test_who_comes_late_into_a_domain_that_is_being_deleted_leaves_nothing_on_the_nodes_in_the_end() -> None:
    async with rack(nodes=1) as cluster, cluster.running():
        await cluster.apply(auto(1, gpu(replicas=2, minAvailable=1)))
        await cluster.clock.advance(60)
        (running,) = [name for name, pod in cluster.there(POD).items() if is_ready(pod)]
        before = uids(cluster)
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.clock.advance(5)
        await cluster.delete(POD, running)
        await cluster.clock.advance(120)
        # The pod that was bound to the node meanwhile could never start there: it has made room for a new domain (N34).
        assert before != uids(cluster) and any(map(is_ready, cluster.there(POD).values()))
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.clock.advance(1300)

        assert (await cluster.names(), await left_of_domains(cluster)) == (set(), [])


async def test_a_sync_of_manifests_reports_a_domain_that_is_being_deleted_as_an_event_on_the_set() -> None:
    async with rack() as cluster:
        await cluster.sync(manifests=[auto(1, gpu(replicas=2))])
        assert len(users(cluster, "demo-0")) == 2
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        since, pods = domains(cluster)["demo-0"]["metadata"]["deletionTimestamp"], sorted(users(cluster, "demo-0"))
        await cluster.clock.advance(5)
        await cluster.sync(manifests=[auto(1, gpu(replicas=2))], wait=False)

        (message,) = await event_messages(cluster, "ComputeDomainTerminating")
        assert message.startswith(f"ComputeDomain demo-0 is being deleted since {since}: NVLink is cut for 2 pods ({', '.join(pods)})")
        assert message.endswith(f"kubectl -n default delete pod {' '.join(pods)}")


async def test_pods_with_a_second_channel_are_never_scheduled_and_a_note_says_so_before_they_exist() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.kubectl.create(RESOURCE_CLAIM_TEMPLATE, "default", CHANNEL_TEMPLATE)
        claims = [{"name": "extra", "resourceClaimTemplateName": "mine"}]
        await cluster.apply(auto(1, gpu(pod_spec={**gpus(), "resourceClaims": claims})))
        (plan,) = (await cluster.look()).planned.plans
        await pass_time(cluster, 60, step=5)

        assert [note for note in plan.notes if "they can never be scheduled" in note]
        (pod,) = cluster.there(POD).values()
        assert "nodeName" not in pod["spec"]
