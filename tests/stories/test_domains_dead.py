"""Dead domains and completed sets in time, with the driver: what users are told, what mends it, and what settles by itself."""

import pytest

from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.kinds import POD, RESOURCE_CLAIM
from resources.domains.status import DomainStatus, domain_statuses
from resources.reports.summary import summary
from tests.builders import group
from tests.laws.test_vacating_laws import image
from tests.mnnvl.sets import auto, computedomain, gpu, named
from tests.mnnvl.test_completed import job
from tests.stories.domains import violations
from tests.stories.fabric import DomainRecorder, domains, event_messages, rack, uids, users
from tests.stories.pods import is_ready
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


async def up(cluster: Stage, manifest: dict[str, object]) -> None:
    """The set is running."""
    await cluster.apply(manifest)
    await cluster.settle()
    assert cluster.there(POD) and all(map(is_ready, cluster.there(POD).values()))


async def seen(cluster: Stage) -> tuple[str, dict[str, DomainStatus]]:
    """The state of the set, and the statuses of its domains, as `engine status` has them."""
    current = await cluster.look()
    (plan,) = current.planned.plans
    (observed,) = current.world.roots
    statuses = domain_statuses(observed, plan, cluster.setup)
    return summary(observed, plan, statuses).state, {status.id.name: status for status in statuses}


async def mend(cluster: Stage, message: str) -> None:
    """Delete the pods that the command in a message names."""
    for pod in message.rpartition("delete pod ")[2].split():
        await cluster.delete(POD, pod)
    await cluster.clock.advance(90)


async def all_well(cluster: Stage) -> bool:
    """Whether every pod is ready, in a domain that lives, and nothing is left to do."""
    state, _ = await seen(cluster)
    return state == "settled" and all(map(is_ready, cluster.there(POD).values())) and await violations(cluster.kubectl) == []


async def test_N32_what_is_told_of_a_deleted_domain_mends_it() -> None:
    async with rack() as cluster, cluster.running():
        await up(cluster, auto(1, gpu(replicas=2)))
        pods = tuple(sorted(users(cluster, "demo-0")))
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.clock.advance(30)

        (message,) = await event_messages(cluster, "ComputeDomainTerminating")
        _, statuses = await seen(cluster)
        assert f"NVLink is cut for 2 pods ({', '.join(pods)})" in message
        cut = statuses["demo-0"].cut
        assert cut is not None and cut.pods == pods

        await mend(cluster, message)
        assert await all_well(cluster)
        assert await event_messages(cluster, "ComputeDomainReplaced") == []


async def test_N32_a_domain_removed_by_force_is_replaced_and_its_pods_are_named_until_they_are_deleted() -> None:
    async with rack() as cluster, cluster.running():
        await up(cluster, auto(1, gpu(replicas=2)))
        before, pods = uids(cluster), sorted(users(cluster, "demo-0"))
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.kubectl.patch(COMPUTE_DOMAIN, "default", "demo-0", {"metadata": {"finalizers": None}})
        await cluster.clock.advance(60)

        assert before != uids(cluster)
        (message,) = await event_messages(cluster, "ComputeDomainReplaced")
        assert message.endswith(f"kubectl -n default delete pod {' '.join(pods)}")
        await mend(cluster, message)
        await cluster.clock.advance(1300)  # The driver removes what the previous domain left every ten minutes.
        assert await all_well(cluster)


async def test_N32_a_user_domain_with_a_template_of_another_name_that_is_deleted_is_noticed() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.kubectl.create(COMPUTE_DOMAIN, "default", computedomain("rack-a", "channel"))
        await up(cluster, named("rack-a"))
        (worker,) = users(cluster, "rack-a")
        await cluster.delete(COMPUTE_DOMAIN, "rack-a")
        await cluster.clock.advance(60)

        messages = await event_messages(cluster, "ComputeDomainReplaced")
        assert [worker in message for message in messages] == [True]
        await mend(cluster, messages[0])
        assert await all_well(cluster)


@pytest.mark.parametrize("moment", [0, 3, 20])
async def test_N34_an_update_ends_although_the_domain_is_deleted_in_it(moment: int) -> None:
    async with rack() as cluster, cluster.running() as ours:
        await up(cluster, auto(1, gpu(replicas=3, minAvailable=2)))
        recorder = DomainRecorder(cluster, ours)
        await cluster.delete(COMPUTE_DOMAIN, "demo-0") if moment == 0 else None
        await cluster.apply(auto(1, gpu(replicas=3, minAvailable=2, pod_spec=image(2))))
        await cluster.clock.advance(moment)
        if moment:
            await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        await cluster.clock.advance(300)

        pods = cluster.there(POD).values()
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"example/model:2"}
        assert recorder.fouls == []
        assert moment == 20 or await all_well(cluster)


async def test_N34_a_recycled_replica_of_a_group_gets_a_new_domain_with_the_whole_replica() -> None:
    async with rack() as cluster, cluster.running():
        cliques = gpu("a"), gpu("b")
        await up(cluster, auto(1, *cliques, groups=(group("g", "b", replicas=3),), terminationDelay="30s"))
        await cluster.delete(COMPUTE_DOMAIN, "demo-0")
        (failing,) = [name for name in cluster.there(POD) if name.startswith("demo-0-g-2-b")]
        cluster.fail(failing, "crash")
        await cluster.clock.advance(400)

        assert await all_well(cluster)


@pytest.mark.parametrize("minimum", [1, 2])
async def test_N33_a_completed_set_ends_a_sync_releases_its_domain_and_creates_it_again_for_a_new_pod(minimum: int) -> None:
    async with rack() as cluster:
        manifest = job(auto(1, gpu(replicas=2, minAvailable=minimum)))
        async with cluster.running():
            await up(cluster, manifest)
            for pod in list(cluster.there(POD)):
                cluster.fail(pod, "exit:0")
            await cluster.clock.advance(60)
        report = await cluster.sync()

        state, statuses = await seen(cluster)
        assert (report.failures, report.timed_out, cluster.process.count) == ((), False, 0)
        assert (state, str(statuses["demo-0"].state), domains(cluster), cluster.there(RESOURCE_CLAIM)) == ("completed", "released", {}, {})

        async with cluster.running() as ours:
            written = ours.count
            await cluster.clock.advance(600)
            assert ours.count == written
            await cluster.delete(POD, sorted(cluster.there(POD))[0])
            recorder = DomainRecorder(cluster, ours)
            await cluster.clock.advance(60)

        assert recorder.done == ["create demo-0", "create pod in demo-0"]
        assert (recorder.fouls, sum(map(is_ready, cluster.there(POD).values()))) == ([], 1)
