"""The driver's plugins: what a pod waits for before it starts, which events it gets, and what is cleaned up after it."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from grove_sandbox.actors.options import PARTS, ActorOptions, DriverOptions
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.installation.installation import NAMESPACE_OF_DRIVER
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL, NVLINK_CLIQUE_LABEL
from resources.base.kinds import DAEMON_SET, NAMESPACE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from sandbox.tests.actors.domains import NODES, OTHERS, Domains, domain, member, serving
from sandbox.tests.actors.stage import Stage, on
from tests.stories.domains import assert_invariants, violations

pytestmark = pytest.mark.anyio

FAILED = "FailedPrepareDynamicResources"
ONE = ActorOptions(nodes=1)
NO_DAEMONS = replace(ONE, driver=DriverOptions(parts=PARTS - {"daemons"}))
CHANNEL = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
DAEMON = {"name": "daemon", "exactly": {"deviceClassName": "compute-domain-daemon.nvidia.com"}}


def by_hand(name: str, uid: str, *, requests: tuple[Mapping[str, Any], ...] = (CHANNEL,), **more: Any) -> dict[str, Any]:
    """A claim template such as the driver makes, but made by hand."""
    parameters = {"apiVersion": COMPUTE_DOMAIN.api_version, "kind": "ComputeDomainChannelConfig", "domainID": uid, **more}
    config = [{"opaque": {"driver": "compute-domain.nvidia.com", "parameters": parameters}}]
    metadata = {"name": name, "namespace": "ml"}
    spec = {"spec": {"devices": {"requests": list(requests), "config": config}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


async def with_domain(stage: Stage, domains: Domains, **more: Any) -> str:
    """A domain `d` that is served; its uid."""
    uid = await domains.create(domain("d", **more))
    await stage.turn(0.2)
    return uid


async def test_a_pod_starts_when_its_node_has_joined_the_domain_and_not_before() -> None:
    async with serving() as (stage, domains):
        uid = await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(1)
        assert await domains.waiting("p") == "ContainerCreating"
        assert await domains.labelled() == {"node-0000": uid}

        await stage.turn(4)
        assert await stage.is_ready("p")
        assert await domains.event_messages("p", FAILED) == []
        await assert_invariants(stage.client)


async def test_init_containers_wait_for_the_devices_too() -> None:
    async with serving(options=NO_DAEMONS) as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(member("p", "d", initContainers=[{"name": "first", "image": "i:1"}]))
        await stage.turn(10)

        status = (await stage.pod("p"))["status"]
        assert [one["state"]["waiting"]["reason"] for one in status["initContainerStatuses"]] == ["PodInitializing"]
        assert await domains.waiting("p") == "PodInitializing"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"unexpectedField": 1}, 'strict decoding error: unknown field "unexpectedField"'),
        ({"kind": "Banana"}, 'no kind "Banana" is registered'),
        ({"domainID": ""}, "domainID cannot be empty"),
        ({"domainID": ["a", {"b": None}]}, "domainID cannot be empty"),
        ({"domainID": "00000000-dead-0000-0000-000000000000"}, "ComputeDomain not found"),
        ({"\x1b[31m": 1}, 'strict decoding error: unknown field "?[31m"'),
    ],
)
async def test_a_claim_that_can_never_be_prepared_is_reported_with_its_cause_at_once(more: dict[str, Any], why: str) -> None:
    async with serving() as (stage, domains):
        uid = await with_domain(stage, domains)
        await stage.create(by_hand("wrong", uid, **more), member("p", "wrong"))
        await stage.turn(3)

        (message,) = await domains.event_messages("p", FAILED)
        assert message.startswith("Failed to prepare dynamic resources: ")
        assert why in message
        assert await domains.waiting("p") == "ContainerCreating"


async def test_a_domain_is_closed_to_other_namespaces() -> None:
    async with serving() as (stage, domains):
        await stage.client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strangers"}})
        uid = await domains.create(domain("d", namespace="strangers"))
        await stage.create(by_hand("theirs", uid), member("p", "theirs"))
        await stage.turn(3)

        (message,) = await domains.event_messages("p", FAILED)
        assert "the ResourceClaim's namespace is different than the ComputeDomain's namespace" in message


async def test_on_a_node_in_another_domain_the_pod_waits_and_the_event_has_no_cause() -> None:
    async with serving(options=ONE) as (stage, domains):
        uid = await with_domain(stage, domains)
        await domains.relabel("node-0000", DOMAIN_LABEL, await domains.create(domain("other")))
        await stage.create(member("p", "d"))
        await stage.turn(40)
        assert await domains.event_messages("p", FAILED) == []

        await stage.turn(20)
        (message,) = await domains.event_messages("p", FAILED)
        assert message.endswith("NodePrepareResources skipped 1 ResourceClaims")

        await domains.relabel("node-0000", DOMAIN_LABEL, None)
        await stage.turn(20)
        assert await stage.is_ready("p")
        assert await domains.labelled() == {"node-0000": uid}


async def test_while_the_daemon_is_not_ready_the_pod_waits_call_after_call() -> None:
    async with serving(options=NO_DAEMONS) as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(110)

        (message,) = await domains.event_messages("p", FAILED)
        assert message.endswith("NodePrepareResources skipped 1 ResourceClaims")
        assert await domains.waiting("p") == "ContainerCreating"
        async with on(stage, "driver", options=replace(ONE, driver=DriverOptions(parts=frozenset({"daemons"})))):
            await stage.turn(20)
            assert await stage.is_ready("p")


async def test_several_devices_for_one_claim_are_an_error() -> None:
    async with serving() as (stage, domains):
        uid = await with_domain(stage, domains)
        await stage.create(by_hand("both", uid, requests=(CHANNEL, DAEMON)), member("p", "both"))
        await stage.turn(50)

        (message,) = await domains.event_messages("p", FAILED)
        assert message.endswith("NodePrepareResources skipped 1 ResourceClaims")
        claim = await domains.claim_of("p")
        (prepared,) = [one for one in claim["status"]["devices"][0]["conditions"] if one["type"] == "Prepared"]
        assert (prepared["reason"], prepared["message"]) == ("PrepareSkipped", "unexpected results")


async def test_a_late_prepare_adds_its_node_to_a_domain_that_is_being_deleted() -> None:
    async with serving(options=NO_DAEMONS) as (stage, domains):
        uid = await with_domain(stage, domains, finalizers=("example.com/hold",))
        await stage.create(member("p", "d"))
        await stage.turn(5)
        await domains.delete("d")
        await stage.turn(1)
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == set()

        await stage.turn(5)
        assert await domains.labelled() == {"node-0000": uid}
        assert not await stage.is_ready("p")


async def test_a_pod_that_is_created_after_the_teardown_finds_no_template() -> None:
    async with serving() as (stage, domains):
        await with_domain(stage, domains, finalizers=("example.com/hold",))
        await domains.delete("d")
        await stage.turn(1)
        await stage.create(member("p", "d"))
        await stage.turn(5)

        (message,) = await domains.event_messages("p", "FailedResourceClaimCreation")
        assert 'resourceclaimtemplate.resource.k8s.io "d" not found' in message
        assert await stage.node_of("p") == ""


async def test_after_a_forced_deletion_the_next_pod_waits_until_the_last_one_is_cleaned_up() -> None:
    async with serving(options=replace(ONE, termination=20.0)) as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(member("first", "d"))
        await stage.turn(5)
        await stage.client.delete(POD, "ml", "first", grace=0)
        await stage.create(member("second", "d"))
        await stage.turn(5)
        (claim,) = [one for one in (await stage.client.list(RESOURCE_CLAIM, "ml")).items if one["metadata"]["name"].startswith("second")]
        (prepared,) = [one for one in claim["status"]["devices"][0]["conditions"] if one["type"] == "Prepared"]
        assert "requested device channel-0 is already allocated to different claim" in prepared["message"]

        await stage.turn(40)
        assert await stage.is_ready("second")


async def test_a_node_without_a_fabric_joins_alone_and_its_pods_start() -> None:
    async with serving(options=ONE) as (stage, domains):
        await domains.relabel("node-0000", NVLINK_CLIQUE_LABEL, None)
        await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(10)

        assert await stage.is_ready("p")
        assert await domains.status("d") == ("Ready", [("node-0000", -1, "Ready")])


async def test_when_a_clique_is_full_the_next_node_waits_until_another_leaves() -> None:
    async with serving(options=replace(NODES, driver=DriverOptions(max_nodes=2))) as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(*(member(name, "d") for name in "abc"))
        await stage.turn(30)
        assert [await stage.is_ready(name) for name in "abc"] == [True, True, False]
        assert await domains.status("d") == ("Ready", [("node-0000", 0, "Ready"), ("node-0001", 1, "Ready")])

        await stage.client.delete(POD, "ml", "a")
        await stage.turn(60)
        assert await stage.is_ready("c")
        assert await domains.status("d") == ("Ready", [("node-0002", 0, "Ready"), ("node-0001", 1, "Ready")])


async def test_containers_exit_when_their_domain_is_deleted() -> None:
    async with serving(options=ONE) as (stage, domains):
        await with_domain(stage, domains, finalizers=("example.com/hold",))
        await stage.create(member("p", "d"))
        await stage.turn(5)
        await domains.delete("d")
        await stage.turn(3)
        assert await stage.is_ready("p")
        assert [one.partition(":")[0] for one in await violations(stage.client)] == ["I1"]

        await stage.turn(6)
        (container,) = (await stage.pod("p"))["status"]["containerStatuses"]
        assert container["lastState"]["terminated"]["exitCode"] == 1
        assert container["lastState"]["terminated"]["reason"] == "IMEXLost"
        assert not await stage.is_ready("p")


async def test_each_node_of_a_domain_runs_one_daemon_as_long_as_it_has_a_pod() -> None:
    async with serving() as (stage, domains):
        await with_domain(stage, domains)
        assert await domains.daemons() == []
        await stage.create(member("a", "d"), member("b", "d"))
        await stage.turn(5)

        assert sorted(daemon["spec"]["nodeName"] for daemon in await domains.daemons()) == ["node-0000", "node-0001"]
        await stage.client.delete(POD, "ml", "a")
        await stage.turn(10)
        assert [daemon["spec"]["nodeName"] for daemon in await domains.daemons()] == [await stage.node_of("b")]


async def test_deleted_daemons_are_recreated_and_the_pods_recover() -> None:
    async with serving() as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(member("a", "d"), member("b", "d"))
        await stage.turn(5)
        for daemon in await domains.daemons():
            await stage.client.delete(POD, daemon["metadata"]["namespace"], daemon["metadata"]["name"], grace=0)
        await stage.turn(300)

        assert (await stage.is_ready("a"), await stage.is_ready("b")) == (True, True)
        assert await domains.status("d") == ("Ready", [("node-0000", 0, "Ready"), ("node-0001", 1, "Ready")])


async def test_without_the_driver_a_pod_waits_and_reports_it_and_starts_when_the_driver_runs() -> None:
    async with serving(*OTHERS) as (stage, domains):
        async with on(stage, "driver", options=NODES):
            await stage.turn(1)
            await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(30)
        assert await domains.waiting("p") == "ContainerCreating"
        (message,) = await domains.event_messages("p", FAILED)
        assert message.endswith("DRA driver compute-domain.nvidia.com is not registered")

        async with on(stage, "driver", options=NODES):
            await stage.turn(10)
            assert await stage.is_ready("p")


async def test_a_pod_that_no_driver_has_prepared_can_be_deleted() -> None:
    async with serving(*OTHERS) as (stage, domains):
        async with on(stage, "driver", options=NODES):
            await stage.turn(1)
            await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(30)
        await stage.client.delete(POD, "ml", "p")
        await stage.turn(5)

        assert (await stage.names(POD), await stage.names(RESOURCE_CLAIM)) == (set(), set())


async def test_a_finished_pod_leaves_its_domain() -> None:
    async with serving(options=ONE) as (stage, domains):
        await with_domain(stage, domains)
        done = {"sandbox.grove.io/fail": "exit:0@5s"}
        await stage.create(member("first", "d", restartPolicy="Never", annotations=done), member("second", "d"))
        await stage.turn(9)
        assert (await stage.pod("first"))["status"]["phase"] == "Succeeded"
        await assert_invariants(stage.client)

        await stage.turn(10)
        assert await stage.is_ready("second")


async def test_the_driver_can_be_restarted_at_any_time_with_the_same_result() -> None:
    async with serving(*OTHERS) as (stage, domains):
        await stage.turn(1)
        for step in range(12):
            async with on(stage, "driver", options=NODES):
                if step == 1:
                    await domains.create(domain("d"))
                if step == 3:
                    await stage.create(member("a", "d"), member("b", "d"))
                await stage.turn(1.3)
            await stage.turn(0.7)
        async with on(stage, "driver", options=NODES):
            await stage.turn(10)
            assert (await stage.is_ready("a"), await stage.is_ready("b")) == (True, True)
            await assert_invariants(stage.client)
            await stage.client.delete(POD, "ml", "a")
        await stage.turn(0.5)
        await domains.delete("d")
        await stage.client.delete(POD, "ml", "b")
        async with on(stage, "driver", options=NODES):
            await stage.turn(20)

            assert (await stage.names(POD), await domains.labelled(), await domains.daemons()) == (set(), {}, [])
            assert await domains.get("d") is None


async def test_daemon_sets_are_left_to_a_real_controller_for_a_while_and_for_good_once_it_has_written_their_status() -> None:
    async with serving(options=replace(ONE, driver=DriverOptions(deference=5.0))) as (stage, domains):
        await with_domain(stage, domains)
        await stage.create(member("p", "d"))
        await stage.turn(4)
        assert await domains.daemons() == []
        await stage.turn(10)
        assert len(await domains.daemons()) == 1
        assert await stage.is_ready("p")

        other = await domains.create(domain("other"))
        await stage.turn(1)
        controller = InProcessClient(stage.api, "kube-controller-manager")
        name, said = f"computedomain-daemon-{other}", {"status": {"observedGeneration": 1}}
        await controller.patch(DAEMON_SET, NAMESPACE_OF_DRIVER, name, said, subresource="status")
        await domains.relabel("node-0000", DOMAIN_LABEL, other)
        await stage.turn(30)
        assert [one for one in await domains.daemons() if one["metadata"]["labels"][DOMAIN_LABEL] == other] == []
