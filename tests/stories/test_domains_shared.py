"""Domains that several use, that others have made, and that cannot be: by name, by accident, by somebody else's hand."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden
from engine.operation import Outcome
from engine.runtime.sync_report import Ending
from grove_sandbox.actors.options import PARTS, DriverOptions
from providers.fabrics.nvidia.names import CLAIM, COMPUTE_DOMAIN, NAMED
from resources.base import kinds
from resources.base.kinds import POD, RESOURCE_CLAIM_TEMPLATE
from tests.builders import clique, group, podcliqueset
from tests.mnnvl.sets import OPTED_OUT, auto, computedomain, gpu, gpus, named, said
from tests.stories.fabric import DomainRecorder, domains, event_messages, left_of_domains, pass_time, rack, templates_of, uids
from tests.stories.pods import clique_of, is_ready
from tests.stories.process import Call
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


def held(cluster: Stage) -> Mapping[str, dict[str, Any]]:
    """The pods that claim a domain."""
    return {name: pod for name, pod in cluster.there(POD).items() if templates_of(pod)}


async def why(cluster: Stage) -> set[str]:
    """Why things are held."""
    return {one.why for plan in (await cluster.look()).planned.plans for one in plan.deferred}


async def test_two_sets_share_a_domain_and_the_last_one_takes_it_away() -> None:
    async with rack() as cluster, cluster.running() as ours:
        recorder = DomainRecorder(cluster, ours)
        for name in ("demo", "other"):
            await cluster.apply(named("rack", name))
        await pass_time(cluster, 30, step=2)
        first = uids(cluster)
        assert (list(first), len(held(cluster)), await event_messages(cluster, "ComputeDomainCreated")) == (
            ["rack"],
            2,
            ["ComputeDomain rack created"],
        )
        assert all(map(is_ready, held(cluster).values()))
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await pass_time(cluster, 60, step=2)
        assert (uids(cluster), [clique_of(pod) for pod in held(cluster).values()]) == (first, ["other-0-worker"])
        await cluster.scale(kinds.PODCLIQUESET, "other", 0)
        await pass_time(cluster, 60, step=2)

        assert (await left_of_domains(cluster), recorder.fouls) == ([], [])


@pytest.mark.parametrize("command", ["run", "sync"])
async def test_N28_for_two_new_sets_that_share_a_domain_there_is_one_create_and_one_owner_patch(command: str) -> None:
    async with rack() as cluster:
        for name in ("demo", "other"):
            await cluster.apply(named("rack", name))
        ours = cluster.start()
        recorder = DomainRecorder(cluster, ours)
        if command == "sync":
            report = await cluster.sync(ours)
            assert (report.ending, report.failures) == (Ending.DONE, ())
            assert all(result.outcome is Outcome.DONE for result in report.results if result.operation.id.kind == COMPUTE_DOMAIN.name)
        else:
            async with cluster.running(ours):
                await pass_time(cluster, 30, step=2)

        assert sorted(call for call in recorder.done if "pod" not in call) == ["create rack", "patch rack"]
        assert [owner["name"] for owner in domains(cluster)["rack"]["metadata"]["ownerReferences"]] == ["demo", "other"]
        assert len(held(cluster)) == 2 and all(map(is_ready, held(cluster).values()))


async def test_N28_if_the_first_set_cannot_create_the_shared_domain_another_one_does() -> None:
    async with rack() as cluster:
        for name in ("demo", "other"):
            await cluster.apply(named("rack", name))
        ours = cluster.start()
        refused: list[str] = []

        def refuse_once(call: Call) -> ClusterError | None:
            verb, kind, name = call
            if (verb, kind) == ("create", COMPUTE_DOMAIN) and not refused:
                refused.append(name)
                return Forbidden("no quota")
            return None

        ours.refuses = refuse_once
        async with cluster.running(ours):
            await pass_time(cluster, 120, step=4)

        assert refused == ["rack"]
        assert len(held(cluster)) == 2 and all(map(is_ready, held(cluster).values()))


async def test_one_leaves_while_another_joins_and_neither_is_harmed() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await cluster.apply(named("rack"))
        await cluster.settle()
        recorder = DomainRecorder(cluster, ours)
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        for number in range(6):
            await cluster.apply(named("rack", f"other-{number}"))
            await cluster.clock.advance(1)
        await cluster.clock.advance(120)

        assert recorder.fouls == []
        assert len(held(cluster)) == 6 and all(map(is_ready, held(cluster).values()))


async def test_a_user_s_domain_is_joined_and_left_as_it_was() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await cluster.kubectl.create(COMPUTE_DOMAIN, "default", computedomain("rack", "my-channel"))
        await cluster.clock.advance(2)
        before = domains(cluster)["rack"]["metadata"]
        recorder = DomainRecorder(cluster, ours)
        await cluster.apply(named("rack"))
        await cluster.settle()
        assert {template for pod in held(cluster).values() for template in templates_of(pod)} == {"my-channel"}
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.clock.advance(120)

        after = domains(cluster)["rack"]["metadata"]
        assert [after.get(key) for key in ("uid", "labels", "finalizers", "ownerReferences")] == [
            before.get(key) for key in ("uid", "labels", "finalizers", "ownerReferences")
        ]
        assert all(not done.endswith("e rack") and not done.startswith("patch") for done in recorder.done)


async def test_a_template_that_has_the_name_holds_the_pods_back_until_it_is_out_of_the_way() -> None:
    async with rack() as cluster, cluster.running():
        request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        metadata = {"name": "demo-0", "namespace": "default"}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}
        await cluster.kubectl.create(RESOURCE_CLAIM_TEMPLATE, "default", body)
        await cluster.apply(auto(1))
        await cluster.clock.advance(60)
        assert cluster.there(POD) == {}
        reason = "ResourceClaimTemplate demo-0 cannot be used for ComputeDomain demo-0: it was not created by the DRA driver"
        assert reason in await why(cluster)
        await cluster.delete(RESOURCE_CLAIM_TEMPLATE, "demo-0")
        await cluster.clock.advance(1200)

        assert [is_ready(pod) for pod in cluster.there(POD).values()] == [True]


async def test_a_domain_of_somebody_else_stops_one_replica_and_no_other() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.kubectl.create(COMPUTE_DOMAIN, "default", computedomain("demo-1"))
        await cluster.apply(auto(3))
        await cluster.clock.advance(60)
        assert sorted(clique_of(pod) for pod in cluster.there(POD).values()) == ["demo-0-worker", "demo-2-worker"]
        (failed,) = await event_messages(cluster, "ComputeDomainFailed")
        assert failed.startswith("Failed to create ComputeDomain for replica 1: ComputeDomain default/demo-1 already exists")
        await cluster.delete(COMPUTE_DOMAIN, "demo-1")
        await cluster.clock.advance(120)

        assert len(cluster.there(POD)) == 3 and all(map(is_ready, cluster.there(POD).values()))


async def test_without_the_kind_who_asks_waits_and_who_does_not_is_served() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.kubectl.delete(kinds.CRD, "", "computedomains.resource.nvidia.com")
        await cluster.apply(named("rack"))
        await cluster.apply(podcliqueset("plain", clique("worker")))
        await cluster.clock.advance(60)
        assert sorted(clique_of(pod) for pod in cluster.there(POD).values()) == ["demo-0-frontend", "plain-0-worker"]
        (failed,) = await event_messages(cluster, "ComputeDomainFailed")
        assert failed.startswith("Failed to create ComputeDomain rack: the cluster does not serve ComputeDomain")
        for name in ("demo", "plain"):
            await cluster.delete(kinds.PODCLIQUESET, name)
        await cluster.clock.advance(60)

        assert await cluster.names(kinds.PODCLIQUESET, POD) == set()


async def test_R35_N22_pods_of_different_domains_never_meet_on_a_node() -> None:
    async with rack(nodes=2) as cluster, cluster.running():
        # There are GPUs for all of them on either node: it is the channel that there is one of.
        one, by_name = gpu(pod_spec=gpus("1")), gpu(pod_spec=gpus("1"), annotations={NAMED: "rack"})
        for manifest in (auto(1, one), said(podcliqueset("other", by_name), OPTED_OUT), auto(1, one, name="third")):
            await cluster.apply(manifest)
        await pass_time(cluster, 60, step=2)

        nodes = [pod["spec"].get("nodeName") for pod in held(cluster).values()]
        assert sorted(map(str, nodes)) == ["None", "node-0000", "node-0001"]
        (waiting,) = [pod for pod in held(cluster).values() if not pod["spec"].get("nodeName")]
        assert "cannot allocate all claims" in str(waiting["status"]["conditions"])


async def test_C7_a_node_takes_one_pod_of_a_domain_and_the_others_wait_until_there_is_a_node_for_them() -> None:
    async with rack(nodes=2) as cluster, cluster.running():
        await cluster.apply(auto(1, gpu(replicas=3, minAvailable=1, pod_spec=gpus("1"))))
        await pass_time(cluster, 60, step=2)

        assert sorted(str(pod["spec"].get("nodeName")) for pod in held(cluster).values()) == ["None", "node-0000", "node-0001"]


async def test_C12_a_pod_runs_when_its_node_is_in_the_domain_and_not_before() -> None:
    async with rack(driver=DriverOptions(parts=PARTS - {"daemons"})) as cluster, cluster.running():
        await cluster.apply(auto(1))
        await cluster.clock.advance(120)
        (pod,) = held(cluster).values()

        assert (pod["status"]["phase"], is_ready(pod), bool(pod["spec"]["nodeName"])) == ("Pending", False, True)
        assert [claim["name"] for claim in pod["spec"]["resourceClaims"]] == [CLAIM]


async def test_an_update_of_all_pods_leaves_the_domain_alone() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await cluster.apply(auto(1, gpu(replicas=2)))
        await cluster.settle()
        before, pods, recorder = uids(cluster), set(cluster.there(POD)), DomainRecorder(cluster, ours)
        newer = {"containers": [{**gpu()["spec"]["podSpec"]["containers"][0], "image": "example/model:2"}]}
        await cluster.apply(auto(1, gpu(replicas=2, pod_spec=newer)))
        await pass_time(cluster, 180, step=5)

        assert (uids(cluster), recorder.fouls) == (before, [])
        assert pods.isdisjoint(cluster.there(POD)) and all(map(is_ready, cluster.there(POD).values()))
        assert {template for pod in held(cluster).values() for template in templates_of(pod)} == {"demo-0"}


async def test_a_gang_that_is_recycled_comes_back_into_the_same_domain() -> None:
    async with rack() as cluster, cluster.running() as ours:
        members = auto(1, gpu(replicas=2), gpu("leader"), groups=(group("pool", "leader"),), terminationDelay="10s")
        await cluster.apply(members)
        await cluster.settle()
        before, pods, recorder = (
            uids(cluster),
            {one["metadata"]["uid"] for one in cluster.there(POD).values()},
            DomainRecorder(cluster, ours),
        )
        for name, pod in cluster.there(POD).items():
            if clique_of(pod) == "demo-0-worker":
                cluster.fail(name, "unready")
        await cluster.clock.advance(180)

        assert (uids(cluster), recorder.fouls) == (before, [])
        assert pods.isdisjoint({one["metadata"]["uid"] for one in cluster.there(POD).values()})
        assert len(held(cluster)) == 3 and all(map(is_ready, held(cluster).values()))
