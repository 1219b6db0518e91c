"""The driver's controller: what it creates for a domain, the domain's status, and the teardown."""

from typing import Any

import pytest

from engine.errors import Conflict
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.installation.installation import NAMESPACE_OF_DRIVER
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL, TARGET_LABEL
from resources.base.kinds import CRD, DAEMON_SET, POD, RESOURCE_CLAIM_TEMPLATE
from sandbox.tests.actors.domains import CONTROLLER, NO_CONTROLLER, NODES, OTHERS, Domains, domain, member, serving
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio

OURS = "grove.io/computedomain-finalizer"


def template(name: str, **labels: str) -> dict[str, Any]:
    """Somebody's claim template."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
    metadata = {"name": name, "namespace": "ml", "labels": labels}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": devices}},
    }


async def set_finalizers(stage: Stage, kind: Any, namespace: str, name: str, *finalizers: str) -> None:
    await stage.client.patch(kind, namespace, name, {"metadata": {"finalizers": list(finalizers) or None}})


async def domain_with_pod(stage: Stage, domains: Domains) -> str:
    """A domain with one pod that runs; its uid."""
    uid = await domains.create(domain("d", finalizers=(OURS,)))
    await stage.turn(0.1)
    await stage.create(member("p", "d"))
    await stage.turn(5)
    assert await stage.is_ready("p")
    return uid


async def test_a_domain_gets_a_daemon_set_and_two_templates_with_its_uid_and_without_owners() -> None:
    async with serving() as (stage, domains):
        uid = await domains.create(domain("d", template="channels", finalizers=(OURS,)))
        await stage.turn(0.1)

        assert await domains.finalizers("d") == [OURS, DOMAIN_LABEL]
        assert await domains.made(uid, DAEMON_SET) == [f"computedomain-daemon-{uid}"]
        made = (await stage.client.list(RESOURCE_CLAIM_TEMPLATE, labels=f"{DOMAIN_LABEL}={uid}")).items
        assert {(one["metadata"]["namespace"], one["metadata"]["name"], one["metadata"]["labels"][TARGET_LABEL]) for one in made} == {
            (NAMESPACE_OF_DRIVER, f"computedomain-daemon-{uid}", "Daemon"),
            ("ml", "channels", "Workload"),
        }
        assert all(one["metadata"]["finalizers"] == [DOMAIN_LABEL] and "ownerReferences" not in one["metadata"] for one in made)
        (channels,) = [one for one in made if one["metadata"]["name"] == "channels"]
        (config,) = channels["spec"]["spec"]["devices"]["config"]
        assert config["opaque"]["parameters"] == {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomainChannelConfig",
            "domainID": uid,
            "allocationMode": "Single",
        }


async def test_a_domain_with_zero_nodes_is_ready_before_any_node_has_joined() -> None:
    async with serving() as (stage, domains):
        await domains.create(domain("any"))
        await domains.create(domain("two", nodes=2))
        await stage.turn(5)

        assert await domains.status("any") == ("Ready", [])
        assert await domains.status("two") == ("NotReady", [])


async def test_a_domain_for_one_node_is_ready_with_its_pod_and_not_ready_after_it() -> None:
    async with serving() as (stage, domains):
        await domains.create(domain("d", nodes=1))
        await stage.turn(0.1)
        await stage.create(member("p", "d"))
        await stage.turn(6)
        assert await domains.status("d") == ("Ready", [("node-0000", 0, "Ready")])

        await stage.client.delete(POD, "ml", "p")
        await stage.turn(5)
        assert await domains.status("d") == ("NotReady", [])


async def test_a_conflict_over_the_finalizer_is_retried() -> None:
    class UnluckyClient(InProcessClient):
        tries = 0

        async def replace(self, *args: Any, **more: Any) -> dict[str, Any]:
            UnluckyClient.tries += 1
            if UnluckyClient.tries <= 3:
                raise Conflict("somebody was faster")
            return await super().replace(*args, **more)

    async with running(*OTHERS, "driver", options=NODES, client=UnluckyClient) as stage:
        domains = Domains(stage)
        await stage.turn(1)
        await domains.create(domain("d"))
        await stage.turn(0.2)

        assert await domains.finalizers("d") == [DOMAIN_LABEL]
        assert "d" in await stage.names(RESOURCE_CLAIM_TEMPLATE)


@pytest.mark.parametrize(("nodes", "said"), [(0, "Ready"), (1, "")])
async def test_a_template_of_the_same_name_is_never_adopted_and_never_reported(nodes: int, said: str) -> None:
    async with serving() as (stage, domains):
        await stage.create(template("d"))
        uid = await domains.create(domain("d", nodes=nodes))
        await stage.turn(700)

        assert (await domains.status("d"))[0] == said
        assert len(await domains.made(uid, DAEMON_SET)) == 1
        assert await domains.made(uid, RESOURCE_CLAIM_TEMPLATE) == [f"computedomain-daemon-{uid}"]

        await domains.delete("d")
        await stage.turn(1)
        assert await domains.get("d") is None
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == {"d"}


async def test_of_two_domains_with_one_template_name_the_second_is_set_up_when_the_first_is_gone() -> None:
    async with serving() as (stage, domains):
        first = await domains.create(domain("a", template="shared"))
        await stage.turn(1)
        second = await domains.create(domain("b", template="shared"))
        await stage.turn(1)
        assert "shared" in await domains.made(first, RESOURCE_CLAIM_TEMPLATE)

        await domains.delete("a")
        await stage.turn(10)
        assert "shared" in await domains.made(second, RESOURCE_CLAIM_TEMPLATE)


async def test_a_domain_that_is_created_again_under_its_name_has_a_template_of_its_own() -> None:
    async with serving() as (stage, domains):
        before = await domains.create(domain("d"))
        await stage.turn(1)
        await domains.delete("d")
        await stage.turn(1)
        after = await domains.create(domain("d"))
        await stage.turn(1)

        assert await domains.made(before, RESOURCE_CLAIM_TEMPLATE) == []
        assert "d" in await domains.made(after, RESOURCE_CLAIM_TEMPLATE)


async def test_teardown_begins_at_once_whatever_finalizers_the_domain_has_and_whatever_runs_in_it() -> None:
    async with serving() as (stage, domains):
        uid = await domain_with_pod(stage, domains)

        await domains.delete("d")
        await stage.turn(0.2)

        assert await domains.finalizers("d") == [OURS]
        assert (await domains.made(uid, RESOURCE_CLAIM_TEMPLATE), await domains.made(uid, DAEMON_SET)) == ([], [])
        assert await domains.labelled() == {}
        assert (await stage.pod("p"))["status"]["phase"] == "Running"
        await stage.turn(3)
        assert await domains.daemons() == []


async def test_teardown_waits_for_finalizers_of_the_template() -> None:
    async with serving() as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(1)
        await set_finalizers(stage, RESOURCE_CLAIM_TEMPLATE, "ml", "d", DOMAIN_LABEL, "example.com/hold")
        await domains.delete("d")
        await stage.turn(100)
        assert await domains.finalizers("d") == [DOMAIN_LABEL]

        await set_finalizers(stage, RESOURCE_CLAIM_TEMPLATE, "ml", "d")
        await stage.turn(1000)
        assert await domains.get("d") is None


async def test_two_templates_of_one_domain_stop_its_teardown() -> None:
    async with serving() as (stage, domains):
        uid = await domains.create(domain("d"))
        await stage.turn(1)
        await stage.create(template("twin", **{DOMAIN_LABEL: uid, TARGET_LABEL: "Workload"}))
        await domains.delete("d")
        await stage.turn(100)

        assert await domains.finalizers("d") == [DOMAIN_LABEL]
        assert len(await domains.made(uid, DAEMON_SET)) == 1


async def test_a_daemons_template_without_its_daemon_set_stops_the_teardown_for_ever() -> None:
    async with serving() as (stage, domains):
        uid = await domains.create(domain("d"))
        await stage.turn(1)
        name = f"computedomain-daemon-{uid}"
        await set_finalizers(stage, DAEMON_SET, NAMESPACE_OF_DRIVER, name)
        await stage.client.delete(DAEMON_SET, NAMESPACE_OF_DRIVER, name)
        await domains.delete("d")
        await stage.turn(3000)

        assert await domains.finalizers("d") == [DOMAIN_LABEL]
        assert await domains.made(uid, RESOURCE_CLAIM_TEMPLATE) == [name]


async def test_without_its_controller_a_domain_gets_nothing_and_keeps_every_finalizer_until_it_is_back() -> None:
    async with serving(*OTHERS, "driver", options=NO_CONTROLLER) as (stage, domains):
        await domains.create(domain("new"))
        async with on(stage, "driver", options=CONTROLLER):
            await domains.create(domain("old", finalizers=(OURS,)))
            await stage.turn(1)
        await domains.create(domain("newer"))
        await domains.delete("old")
        await stage.turn(1000)
        assert (await domains.finalizers("old"), await domains.finalizers("newer")) == ([OURS, DOMAIN_LABEL], [])
        assert await domains.status("newer") == ("", [])

        async with on(stage, "driver", options=CONTROLLER):
            await stage.turn(1)
        assert (await domains.finalizers("old"), await domains.finalizers("newer")) == ([OURS], [DOMAIN_LABEL])


async def test_a_deleted_template_is_created_again_at_the_next_resync() -> None:
    async with serving() as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(1)
        await set_finalizers(stage, RESOURCE_CLAIM_TEMPLATE, "ml", "d")
        await stage.client.delete(RESOURCE_CLAIM_TEMPLATE, "ml", "d")
        await stage.turn(500)
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == set()

        await stage.turn(100)
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == {"d"}


async def test_a_template_that_is_being_deleted_can_still_be_used_and_is_not_created_again() -> None:
    async with serving() as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(1)
        await stage.client.delete(RESOURCE_CLAIM_TEMPLATE, "ml", "d")
        await stage.create(member("p", "d"))
        await stage.turn(700)

        (left,) = [one for one in (await stage.client.list(RESOURCE_CLAIM_TEMPLATE, "ml")).items]
        assert left["metadata"]["deletionTimestamp"]
        assert await stage.is_ready("p")


async def test_objects_of_a_domain_that_was_force_deleted_are_cleaned_up_within_ten_minutes() -> None:
    async with serving() as (stage, domains):
        uid = await domain_with_pod(stage, domains)
        await set_finalizers(stage, COMPUTE_DOMAIN, "ml", "d")
        await domains.delete("d")
        await stage.turn(60)
        assert len(await domains.made(uid, RESOURCE_CLAIM_TEMPLATE)) == 2
        assert await domains.labelled() == {"node-0000": uid}

        await stage.turn(600)
        assert (await domains.made(uid, RESOURCE_CLAIM_TEMPLATE), await domains.made(uid, DAEMON_SET)) == ([], [])
        assert await domains.labelled() == {}


async def test_a_label_of_an_unknown_or_deleted_domain_is_removed_within_ten_minutes_and_not_before() -> None:
    async with serving() as (stage, domains):
        uid = await domains.create(domain("held", finalizers=(OURS,)))
        await stage.turn(1)
        await domains.delete("held")
        await stage.turn(1)
        late = {"node-0000": uid, "node-0001": "00000000-dead-0000-0000-000000000000"}
        for node, label in late.items():
            await domains.relabel(node, DOMAIN_LABEL, label)
        await stage.turn(590)
        assert await domains.labelled() == late

        await stage.turn(10)
        assert await domains.labelled() == {}


async def test_a_domain_without_a_spec_crashes_the_controller_for_all_domains() -> None:
    async with serving() as (stage, domains):
        bare = domain("bare")
        del bare["spec"]
        await domains.create(bare)
        await domains.create(domain("d"))
        await stage.turn(60)
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == set()

        await domains.delete("bare")
        await stage.turn(10)
        assert await stage.names(RESOURCE_CLAIM_TEMPLATE) == {"d"}


async def test_the_actors_go_on_when_the_definition_of_domains_is_deleted() -> None:
    async with serving() as (stage, domains):
        await domain_with_pod(stage, domains)
        await set_finalizers(stage, COMPUTE_DOMAIN, "ml", "d", DOMAIN_LABEL)
        await stage.client.delete(CRD, "", f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}")
        await stage.turn(30)

        assert COMPUTE_DOMAIN not in await stage.client.kinds()
        await stage.create(pod("q"))
        await stage.turn(5)
        assert await stage.is_ready("q")
