"""Claims: created for pods, allocated where they run, released after them."""

from typing import Any

import pytest

from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import EVENT, POD, RESOURCE_CLAIM
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import running

pytestmark = pytest.mark.anyio

SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]}}
ACTORS = ("claims", "kubelet", "garbage")
ONE_NODE = ActorOptions(nodes=1)


def template(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml"}
    spec = {"metadata": {"labels": {"team": "blue"}}, "spec": SPEC}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def claim(name: str) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "ml"}, "spec": SPEC}


def user(name: str, *, of: str = "", like: str = "", **more: Any) -> dict[str, Any]:
    """A pod that uses a claim, or one made from a template."""
    asked = {"name": "g", "resourceClaimName": of} if of else {"name": "g", "resourceClaimTemplateName": like}
    return pod(name, resourceClaims=[asked], **more)


async def test_a_claim_is_created_from_the_template_and_named_in_the_pods_status() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(template("t"), user("p", like="t"))
        await stage.turn(0)

        statuses = (await stage.pod("p"))["status"]["resourceClaimStatuses"]
        made = await stage.client.get(RESOURCE_CLAIM, "ml", statuses[0]["resourceClaimName"])
        assert (made["spec"]["devices"]["requests"][0]["name"], made["metadata"]["labels"]) == ("gpu", {"team": "blue"})
        assert "status" not in made or "allocation" not in made["status"]


async def test_a_pod_whose_template_is_missing_is_retried_with_back_off() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(user("p", like="t"))
        await stage.turn(120)
        await stage.create(template("t"))
        await stage.turn(40)
        assert await stage.names(RESOURCE_CLAIM) == set()

        await stage.turn(5)
        assert len(await stage.names(RESOURCE_CLAIM)) == 1


async def test_a_missing_template_is_a_warning_and_the_pod_is_retried_at_once_when_it_changes() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(user("p", like="t"))
        await stage.turn(700)
        (event,) = (await stage.client.list(EVENT, "ml")).items
        assert (event["type"], event["reason"], event["involvedObject"]["name"]) == ("Warning", "FailedResourceClaimCreation", "p")
        assert event["message"].endswith('resourceclaimtemplate.resource.k8s.io "t" not found')
        assert event["count"] == 18  # After 5 ms, 10 ms, 20 ms, … 655 s.

        await stage.create(template("t"))
        await stage.annotate(POD, "p", "touched", "yes")
        await stage.turn(0)
        assert len(await stage.names(RESOURCE_CLAIM)) == 1


async def test_claims_are_created_for_gated_pods_too() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(template("t"), user("p", like="t", schedulingGates=[{"name": "example.com/wait"}]))
        await stage.turn(0)

        assert len(await stage.names(RESOURCE_CLAIM)) == 1


async def test_both_parts_of_a_name_that_is_too_long_are_cut_in_proportion() -> None:
    pod_name, claim_name = "p" * 63, "c" * 21
    asked = [{"name": claim_name, "resourceClaimTemplateName": "t"}]
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(template("t"), pod(pod_name, resourceClaims=asked), user("p", like="t"))
        await stage.turn(0)

        short, long = sorted(await stage.names(RESOURCE_CLAIM), key=len)
        assert (short[:-5], long[:-5]) == ("p-g-", f"{'p' * 41}-{'c' * 13}")


async def test_a_claim_is_allocated_where_its_pod_runs_and_protected() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(template("t"), user("p", like="t", node="node-0000"))
        await stage.turn(0)

        (made,) = (await stage.client.list(RESOURCE_CLAIM, "ml")).items
        results = made["status"]["allocation"]["devices"]["results"]
        assert [(one["pool"], one["device"]) for one in results] == [("node-0000", "gpu-0"), ("node-0000", "gpu-1")]
        assert [one["name"] for one in made["status"]["reservedFor"]] == ["p"]
        assert made["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_generated_claim_is_deleted_with_its_pod() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(template("t"), user("p", like="t", node="node-0000"))
        await stage.turn(0)
        await stage.client.delete(POD, "ml", "p")
        await stage.turn(5)

        assert await stage.names(RESOURCE_CLAIM) == set()


async def test_a_generated_claim_is_deleted_when_its_pod_has_finished() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        done = {"sandbox.grove.io/fail": "exit:0@5s"}
        await stage.create(template("t"), user("p", like="t", node="node-0000", restartPolicy="Never", annotations=done))
        await stage.turn(6)

        assert (await stage.pod("p"))["status"]["phase"] == "Succeeded"
        assert await stage.names(RESOURCE_CLAIM) == set()


async def test_a_shared_claim_is_reserved_for_all_its_pods_and_deallocated_after_the_last() -> None:
    async with running(*ACTORS, options=ONE_NODE) as stage:
        await stage.create(claim("shared"), user("a", of="shared", node="node-0000"), user("b", of="shared", node="node-0000"))
        await stage.turn(0)
        held = await stage.client.get(RESOURCE_CLAIM, "ml", "shared")
        assert {one["name"] for one in held["status"]["reservedFor"]} == {"a", "b"}

        await stage.client.delete(RESOURCE_CLAIM, "ml", "shared")
        await stage.client.delete(POD, "ml", "a")
        await stage.turn(5)
        assert await stage.names(RESOURCE_CLAIM) == {"shared"}

        await stage.client.delete(POD, "ml", "b")
        await stage.turn(5)
        assert await stage.names(RESOURCE_CLAIM) == set()
