"""LWS: the groups of LeaderWorkerSets, their pods, Services, rollouts and status."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine import conditions
from engine.errors import ClusterError
from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import LEADER_WORKER_SET, POD, SERVICE, VOLCANO_POD_GROUP
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.scheduler_objects import volcano_group
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio

PREFIX = "leaderworkerset.sigs.k8s.io/"
CLUSTER = ("scheduler", "kubelet", "garbage", "lws")


def template(image: str = "server:1", annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template of one container."""
    return {"metadata": {"annotations": dict(annotations or {})}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def lws(name: str = "s", *, replicas: int = 1, size: int = 3, image: str = "server:1", leader: Any = None, **spec: Any) -> dict[str, Any]:
    """A LeaderWorkerSet in namespace `ml`; what is not a field of the spec's root is of its template."""
    own: dict[str, Any] = {key: spec.pop(key) for key in ("startupPolicy", "rolloutStrategy", "networkConfig") if key in spec}
    templates: dict[str, Any] = {"size": size, "workerTemplate": template(image), **spec}
    if leader:
        templates["leaderTemplate"] = leader
    body: dict[str, Any] = {"replicas": replicas, "leaderWorkerTemplate": templates, **own}
    return {"apiVersion": LEADER_WORKER_SET.api_version, "kind": "LeaderWorkerSet", "metadata": {"name": name}, "spec": body}


@asynccontextmanager
async def cluster(*actors: str) -> AsyncGenerator[Stage]:
    """A cluster with room for everything."""
    async with running(*(actors or CLUSTER), options=ActorOptions(nodes=2), addons=("lws", "volcano")) as stage:
        await stage.turn(0)
        yield stage


async def status(stage: Stage, name: str = "s") -> dict[str, Any]:
    """The status of a set."""
    return dict((await stage.client.get(LEADER_WORKER_SET, "ml", name)).get("status") or {})


async def true_conditions(stage: Stage) -> set[str]:
    """The types of the conditions that are True."""
    return {entry["type"] for entry in (await status(stage))["conditions"] if entry["status"] == "True"}


async def uids(stage: Stage) -> dict[str, str]:
    """The uids of all pods by name."""
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in (await stage.client.list(POD, "ml")).items}


async def images(stage: Stage) -> dict[str, str]:
    """The images of all pods by name."""
    return {body["metadata"]["name"]: body["spec"]["containers"][0]["image"] for body in (await stage.client.list(POD, "ml")).items}


async def test_each_group_has_a_leader_and_workers() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2))
        await stage.turn(1)

        assert await stage.names(POD) == {"s-0", "s-0-1", "s-0-2", "s-1", "s-1-1", "s-1-2"}
        assert (await status(stage)).items() >= {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "observedGeneration": 1}.items()
        assert await true_conditions(stage) == {"Available"}


async def test_pods_have_the_labels_annotations_and_names_of_the_real_controller() -> None:
    async with cluster() as stage:
        await stage.create(lws(leader=template("leader:1", {"own": "x"})))
        await stage.turn(1)
        leader, worker = await stage.pod("s-0"), await stage.pod("s-0-2")

        labels = leader["metadata"]["labels"]
        assert labels == {
            PREFIX + "name": "s",
            PREFIX + "group-index": "0",
            PREFIX + "worker-index": "0",
            PREFIX + "group-key": labels[PREFIX + "group-key"],
            PREFIX + "template-revision-hash": labels[PREFIX + "template-revision-hash"],
        }
        assert worker["metadata"]["labels"] == {**labels, PREFIX + "worker-index": "2"}
        assert leader["metadata"]["annotations"] == {"own": "x", PREFIX + "size": "3"}
        assert worker["metadata"]["annotations"] == {PREFIX + "size": "3", PREFIX + "leader-name": "s-0"}
        assert [(each["spec"]["hostname"], each["spec"]["subdomain"]) for each in (leader, worker)] == [("s-0", "s"), ("s-0-2", "s")]
        assert await images(stage) == {"s-0": "leader:1", "s-0-1": "server:1", "s-0-2": "server:1"}


async def test_every_container_gets_the_variables_in_front_of_its_own() -> None:
    async with cluster() as stage:
        own = [{"name": "A", "value": "1"}, {"name": "LWS_GROUP_SIZE", "value": "99"}]
        containers = [{"name": "main", "image": "server:1", "env": own}]
        init = [{"name": "init", "image": "init:1"}]
        await stage.create(lws(size=2, workerTemplate={"spec": {"containers": containers, "initContainers": init}}))
        await stage.turn(1)
        worker = await stage.pod("s-0-1")

        variables = [
            {"name": "LWS_LEADER_ADDRESS", "value": "s-0.s.ml"},
            {"name": "LWS_GROUP_SIZE", "value": "2"},
            {"name": "LWS_WORKER_INDEX", "value": "1"},
        ]
        assert worker["spec"]["containers"][0]["env"] == [*variables, {"name": "A", "value": "1"}]
        assert worker["spec"]["initContainers"][0]["env"] == variables


async def test_a_set_has_one_headless_service() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2))
        await stage.turn(1)
        service = await stage.get(SERVICE, "s")

        assert service is not None
        spec = service["spec"]
        assert (spec["clusterIP"], spec["publishNotReadyAddresses"], spec["selector"]) == ("None", True, {PREFIX + "name": "s"})


async def test_each_group_has_a_service_of_its_own_where_subdomains_are_unique() -> None:
    async with cluster() as stage:
        await stage.create(lws(size=2, networkConfig={"subdomainPolicy": "UniquePerReplica"}))
        await stage.turn(1)

        assert await stage.names(SERVICE) == {"s-0"}
        assert (await stage.pod("s-0-1"))["spec"]["containers"][0]["env"][0]["value"] == "s-0.s-0.ml"


async def test_nothing_is_left_of_a_set_that_is_deleted() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2))
        await stage.turn(1)
        await stage.client.delete(LEADER_WORKER_SET, "ml", "s")
        await stage.turn(5)

        assert await stage.names(POD) == set()
        assert await stage.names(SERVICE) == set()


async def test_a_deleted_worker_takes_its_group_with_it_and_the_group_comes_back() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2))
        await stage.turn(1)
        before = await uids(stage)
        await stage.client.delete(POD, "ml", "s-1-2")
        await stage.turn(10)
        after = await uids(stage)

        assert before.keys() == after.keys()
        assert {name for name in before if before[name] == after[name]} == {"s-0", "s-0-1", "s-0-2"}
        assert await true_conditions(stage) == {"Available"}


async def test_a_container_that_is_restarted_takes_its_group_with_it() -> None:
    async with cluster() as stage:
        await stage.create(lws())
        await stage.turn(1)
        before = await uids(stage)
        await stage.annotate(POD, "s-0-1", "sandbox.grove.io/fail", "exit:1")
        await stage.turn(30)
        after = await uids(stage)

        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())


async def test_without_recreation_a_deleted_worker_is_replaced_alone() -> None:
    async with cluster() as stage:
        await stage.create(lws(restartPolicy="None"))
        await stage.turn(1)
        before = await uids(stage)
        await stage.client.delete(POD, "ml", "s-0-2")
        await stage.turn(5)
        after = await uids(stage)

        assert {name for name in before if before[name] != after.get(name)} == {"s-0-2"}


async def test_a_change_of_the_template_replaces_one_group_after_the_other_from_the_last_one() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=3, size=2))
        await stage.turn(1)
        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", lws(replicas=3, size=2, image="server:2"))
        seen: list[set[str]] = []
        for _ in range(40):
            new = {name for name, image in (await images(stage)).items() if image == "server:2" and name.count("-") == 1}
            if not seen or seen[-1] != new:
                seen.append(new)
            ready = (await status(stage))["readyReplicas"]
            assert ready >= 2
            await stage.turn(0.25)

        assert seen == [set(), {"s-2"}, {"s-1", "s-2"}, {"s-0", "s-1", "s-2"}]
        assert set((await images(stage)).values()) == {"server:2"}
        assert (await status(stage))["updatedReplicas"] == 3
        assert await true_conditions(stage) == {"Available"}


async def test_a_rollout_is_reported_as_such() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2, size=1))
        await stage.turn(1)
        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", lws(replicas=2, size=1, image="server:2"))
        await stage.turn(0)

        assert await true_conditions(stage) == {"Progressing", "UpdateInProgress"}
        assert (await status(stage))["observedGeneration"] == 2


async def test_groups_that_are_not_ready_do_not_stop_a_rollout() -> None:
    async with cluster() as stage:
        stuck = template("server:1", nodeSelector={"no": "node"})
        await stage.create(lws(replicas=2, size=1, workerTemplate=stuck))
        await stage.turn(1)
        assert await true_conditions(stage) == {"Progressing"}

        good = {"leaderWorkerTemplate": {"workerTemplate": template("server:2", nodeSelector=None)}}
        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", {"spec": good})
        await stage.turn(5)
        assert await true_conditions(stage) == {"Available"}


async def test_groups_below_the_partition_keep_their_template() -> None:
    async with cluster() as stage:
        rollout = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 1}}
        await stage.create(lws(replicas=2, size=1, rolloutStrategy=rollout))
        await stage.turn(1)
        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", lws(replicas=2, size=1, image="server:2"))
        await stage.turn(10)

        assert await images(stage) == {"s-0": "server:1", "s-1": "server:2"}


async def test_a_set_is_scaled_by_its_scale() -> None:
    async with cluster() as stage:
        await stage.create(lws(size=2))
        await stage.turn(1)
        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", {"spec": {"replicas": 3}}, subresource="scale")
        await stage.turn(1)
        assert len(await stage.names(POD)) == 6

        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", {"spec": {"replicas": 1}}, subresource="scale")
        await stage.turn(5)
        assert await stage.names(POD) == {"s-0", "s-0-1"}
        scale = await stage.client.get(LEADER_WORKER_SET, "ml", "s", subresource="scale")
        assert scale["status"] == {"replicas": 1, "selector": f"{PREFIX}name=s,{PREFIX}worker-index=0"}


async def test_a_set_of_no_replicas_is_available() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=0))
        await stage.turn(1)

        assert await stage.names(POD) == set()
        assert await true_conditions(stage) == {"Available"}


async def test_workers_wait_for_a_leader_that_has_to_be_ready() -> None:
    async with cluster() as stage:
        leader = template("leader:1", {"sandbox.grove.io/ready-after": "5s"})
        await stage.create(lws(size=2, leader=leader, startupPolicy="LeaderReady"))
        await stage.turn(2)
        assert await stage.names(POD) == {"s-0"}

        await stage.turn(5)
        assert await stage.names(POD) == {"s-0", "s-0-1"}


async def test_the_defaults_of_the_webhooks_are_filled_in() -> None:
    async with cluster("lws") as stage:
        made = await stage.create({**lws(), "spec": {"leaderWorkerTemplate": {"workerTemplate": template()}}})

        assert {key: value for key, value in made["spec"].items() if key != "leaderWorkerTemplate"} == {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "networkConfig": {"subdomainPolicy": "Shared"},
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
            },
        }
        assert made["spec"]["leaderWorkerTemplate"].items() >= {"size": 1, "restartPolicy": "RecreateGroupOnPodRestart"}.items()


@pytest.mark.parametrize("wrong", [lws(size=0), lws(replicas=-1), lws(name="0-digits"), lws(name="a.b"), lws(restartPolicy="Never")])
async def test_what_the_webhooks_reject_is_rejected(wrong: dict[str, Any]) -> None:
    async with cluster("lws") as stage:
        with pytest.raises(ClusterError):
            await stage.create(wrong)


async def test_a_pod_whose_name_another_pod_has_is_created_once_the_name_is_free() -> None:
    async with cluster() as stage:
        await stage.create(pod("s-0-1"))
        await stage.create(lws(size=2))
        await stage.turn(2)
        assert (await status(stage))["readyReplicas"] == 0

        await stage.client.delete(POD, "ml", "s-0-1", grace=0)
        await stage.turn(3)
        assert (await status(stage))["readyReplicas"] == 1


async def test_a_group_is_placed_by_volcano_as_a_whole() -> None:
    async with cluster() as stage:
        resources = {"limits": {"nvidia.com/gpu": "8"}}
        spec = {"containers": [{"name": "main", "image": "server:1", "resources": resources}], "schedulerName": "volcano"}
        workers = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "s"}}, "spec": spec}
        await stage.create(volcano_group("s", 3), lws(workerTemplate=workers))
        await stage.turn(2)
        nodes = [await stage.node_of(name) for name in await stage.names(POD)]
        assert nodes == ["", "", ""]

        await stage.client.patch(LEADER_WORKER_SET, "ml", "s", {"spec": {"leaderWorkerTemplate": {"size": 2}}})
        await stage.client.patch(VOLCANO_POD_GROUP, "ml", "s", {"spec": {"minMember": 2}})
        await stage.turn(5)
        assert await stage.is_ready("s-0")
        assert await stage.is_ready("s-0-1")
        assert conditions.is_true((await status(stage))["conditions"], "Available")


async def test_a_settled_set_is_not_written_again() -> None:
    async with cluster() as stage:
        await stage.create(lws(replicas=2))
        await stage.turn(5)
        before = await stage.client.get(LEADER_WORKER_SET, "ml", "s")
        await stage.turn(60)

        assert await stage.client.get(LEADER_WORKER_SET, "ml", "s") == before


async def test_a_restarted_controller_creates_nothing_twice() -> None:
    async with running("scheduler", "kubelet", "garbage", options=ActorOptions(nodes=2), addons=("lws",)) as stage:
        await stage.create(lws(replicas=2))
        async with on(stage, "lws"):
            await stage.turn(1)
        before = await uids(stage)
        async with on(stage, "lws"):
            await stage.turn(5)

        assert len(before) == 6
        assert await uids(stage) == before
