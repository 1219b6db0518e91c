"""Graphs: how a DynamoGraphDeployment comes up, is scaled, changes its orchestrator and goes away, on every kind of cluster."""

import base64
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conditions import find
from engine.runtime.sync_report import Ending
from providers.registry import SCHEDULERS
from resources.admission.graph_version import update_memo
from resources.base import kinds
from resources.ports.configuration import DynamoSettings
from tests.builders import clique, podcliqueset
from tests.counting import counted
from tests.stories.deaths import deaths
from tests.stories.fabric import domains, rack
from tests.stories.graphs import graph, service
from tests.stories.stage import SETUP, Stage, forked, stage

pytestmark = pytest.mark.anyio

NO_GROVE = {"nvidia.com/enable-grove": "false"}
REPLACED = {"engine.grove.io/allow-replace": "true"}


def status(cluster: Stage, name: str = "chat") -> dict[str, Any]:
    """The status of a graph."""
    found: dict[str, Any] = cluster.there(kinds.DYNAMO_GRAPH)[name].get("status") or {}
    return found


def ready(cluster: Stage, name: str = "chat") -> tuple[str, str]:
    """The state of a graph, and the message of its condition."""
    condition = find(status(cluster, name).get("conditions", ()), "Ready") or {}
    return str(status(cluster, name).get("state")), str(condition.get("message"))


def pods(cluster: Stage) -> list[str]:
    """The names of all pods, without the random end of Grove's."""
    return sorted(cluster.there(kinds.POD))


def gangs(cluster: Stage) -> set[str]:
    """The names of the LeaderWorkerSets, each of which has a PodGroup of its name."""
    names = set(cluster.there(kinds.LEADER_WORKER_SET))
    assert set(cluster.there(kinds.VOLCANO_POD_GROUP)) == names
    return names


async def leaves_nothing(cluster: Stage) -> bool:
    """Whether nothing of ours or of the orchestrators is left."""
    kinds_left = (kinds.POD, kinds.SERVICE, kinds.PODCLIQUESET, kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP, kinds.DEPLOYMENT)
    return not any(cluster.there(kind) for kind in kinds_left if cluster.serves(kind))


async def test_a_graph_comes_up_through_grove_and_a_second_sync_writes_nothing() -> None:
    async with stage() as cluster:
        report = await cluster.sync(manifests=[graph()])

        assert report.ending is Ending.DONE
        assert ready(cluster) == ("successful", "All resources are ready")
        assert len(pods(cluster)) == 5
        ours = cluster.start()
        await cluster.sync(ours)
        assert not ours.writes and not ours.refused


async def test_the_set_of_a_graph_is_compared_with_it_when_it_changes_and_not_with_every_status() -> None:
    async with stage() as cluster:
        ours = cluster.start()
        with counted({"compared": update_memo}) as counts:
            await cluster.sync(ours, manifests=[graph()])

        assert ours.writes and ready(cluster)[0] == "successful"
        assert counts["compared"] == 2, "It is created, and gets its finalizer."


async def test_the_set_belongs_to_the_graph_and_the_status_names_what_runs_each_service() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph()])

        (set_,) = cluster.there(kinds.PODCLIQUESET).values()
        (owner,) = set_["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("DynamoGraphDeployment", "chat", True)
        services = status(cluster)["services"]
        assert (services["decode"]["componentKind"], services["decode"]["componentName"]) == ("PodCliqueScalingGroup", "chat-0-decode")
        assert (services["decode"]["replicas"], services["decode"]["availableReplicas"]) == (2, 2)
        assert services["Frontend"]["componentKind"] == "PodClique"


async def test_a_graph_that_is_scaled_scales_what_grove_made_of_its_services() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(graph())
        await cluster.settle()

        await cluster.apply(graph(decode=service(3, nodes=2), Frontend=service(2, componentType="frontend", resources={})))
        await cluster.settle()
        assert (ready(cluster)[0], len(pods(cluster))) == ("successful", 8)

        await cluster.apply(graph(decode=service(1, nodes=2), Frontend=service(1, componentType="frontend", resources={})))
        await cluster.settle()
        assert (ready(cluster)[0], len(pods(cluster))) == ("successful", 3)


async def test_without_grove_and_with_lws_and_volcano_a_graph_comes_up_is_scaled_and_goes_away() -> None:
    async with stage(grove=False, addons=("lws", "volcano")) as cluster, cluster.running():
        await cluster.apply(graph())
        await cluster.settle()

        assert ready(cluster) == ("successful", "All resources are ready")
        assert (
            set(cluster.there(kinds.LEADER_WORKER_SET)) == set(cluster.there(kinds.VOLCANO_POD_GROUP)) == {"chat-decode-0", "chat-decode-1"}
        )
        assert set(cluster.there(kinds.DEPLOYMENT)) == {"chat-frontend"}
        assert len(pods(cluster)) == 5

        await cluster.apply(graph(decode=service(1, nodes=2)))
        await cluster.settle()
        assert gangs(cluster) == {"chat-decode-0"}
        assert not cluster.there(kinds.DEPLOYMENT)

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.settle()
        assert not cluster.there(kinds.DYNAMO_GRAPH)
        assert await leaves_nothing(cluster)


async def test_a_graph_that_changes_its_orchestrator_and_back_leaves_nothing_of_the_other() -> None:
    async with stage(addons=("lws", "volcano")) as cluster, cluster.running():
        await cluster.apply(graph())
        await cluster.settle()
        assert cluster.there(kinds.PODCLIQUESET)

        await cluster.apply(graph(annotations=NO_GROVE | REPLACED))
        await cluster.settle()
        assert not cluster.there(kinds.PODCLIQUESET) and not cluster.there(kinds.PODCLIQUE)
        assert (ready(cluster)[0], len(pods(cluster)), len(cluster.there(kinds.LEADER_WORKER_SET))) == ("successful", 5, 2)

        await cluster.apply(graph(annotations={"nvidia.com/enable-grove": "true"} | REPLACED))
        await cluster.settle()
        assert not cluster.there(kinds.LEADER_WORKER_SET) and not cluster.there(kinds.VOLCANO_POD_GROUP)
        assert (ready(cluster)[0], len(pods(cluster))) == ("successful", 5)


async def test_a_deleted_graph_takes_everything_with_it() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(graph())
        await cluster.settle()

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.settle()

        assert not cluster.there(kinds.DYNAMO_GRAPH)
        assert await leaves_nothing(cluster)


async def test_without_any_orchestrator_nothing_is_made_and_the_status_names_what_is_missing() -> None:
    async with stage(grove=False) as cluster:
        report = await cluster.sync(manifests=[graph()], wait=False)

        assert report.ending is Ending.STUCK
        state, message = ready(cluster)
        assert state == "failed"
        assert message.startswith("no multinode orchestrator available")
        assert "grove.io" in message and "leaderworkerset.x-k8s.io" in message and "scheduling.volcano.sh" in message
        assert await leaves_nothing(cluster)


async def test_a_missing_ssh_secret_holds_the_pods_of_that_service_only_until_it_is_there() -> None:
    trtllm = service(nodes=2, script="python3 -m dynamo.trtllm --model m")
    manifest = graph(decode=trtllm, other=service(script="python3 -m dynamo.vllm"))
    async with stage() as cluster, cluster.running():
        await cluster.apply(manifest)
        await cluster.settle()
        assert [name.rpartition("-")[0] for name in pods(cluster)] == ["chat-0-other"]
        assert "Secret mpirun-ssh-key-chat-decode does not exist" in ready(cluster)[1]

        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mpirun-ssh-key-chat-decode", "namespace": "default"}}
        await cluster.kubectl.create(kinds.SECRET, "default", secret)
        await cluster.settle()
        assert (ready(cluster)[0], len(pods(cluster))) == ("successful", 3)


async def test_a_change_that_the_set_does_not_allow_is_blocked_and_made_if_it_is_allowed() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph(decode=service(nodes=2), other=service())])
        before = cluster.there(kinds.PODCLIQUESET)["chat"]["metadata"]["uid"]

        blocked = await cluster.sync(manifests=[graph(decode=service(nodes=3), other=service())], wait=False)
        (wait,) = {wait for plan in blocked.plans for wait in plan.blocked}
        assert "must be replaced" in wait.why and "--allow-replace" in wait.remedy
        assert cluster.there(kinds.PODCLIQUESET)["chat"]["metadata"]["uid"] == before

        annotations = {"engine.grove.io/allow-replace": "true"}
        report = await cluster.sync(manifests=[graph(annotations=annotations, decode=service(nodes=3), other=service())])
        assert report.ending is Ending.DONE
        assert cluster.there(kinds.PODCLIQUESET)["chat"]["metadata"]["uid"] != before
        assert len(pods(cluster)) == 4


async def test_a_graph_with_automatic_nvlink_gets_its_domain_on_grove_and_a_clear_word_on_the_other_path() -> None:
    asked = {"grove.io/auto-mnnvl": "enabled"}
    async with rack(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[graph(annotations=asked, decode=service(nodes=2))])
        assert domains(cluster)
        assert all(pod["spec"].get("resourceClaims") for pod in cluster.there(kinds.POD).values() if "decode" in pod["metadata"]["name"])

        report = await cluster.sync(manifests=[graph(annotations=asked | NO_GROVE | REPLACED, decode=service(nodes=2))])
        assert not domains(cluster)
        notes = [note for plan in report.plans for note in plan.notes]
        assert any("NVLink" in note and "Grove" in note for note in notes), notes


async def test_with_kai_nothing_is_made_before_the_queue_exists_and_then_kai_places_the_gangs() -> None:
    async with stage(addons=("kai",)) as cluster, AsyncExitStack() as background:
        cluster.setup = replace(SETUP, schedulers=dict(SCHEDULERS))
        await background.enter_async_context(cluster.running())
        await cluster.apply(graph(annotations={"nvidia.com/kai-scheduler-queue": "team"}, decode=service(2, nodes=2)))
        await cluster.settle()

        state, message = ready(cluster)
        assert state == "failed"
        assert "queue 'team' not found in cluster. Ensure the queue exists before using kai-scheduler" in message
        assert await leaves_nothing(cluster)

        unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        spec = {"resources": dict.fromkeys(("cpu", "memory", "gpu"), unlimited)}
        for name, parent in (("all", {}), ("team", {"parentQueue": "all"})):
            queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec | parent}
            await cluster.kubectl.create(kinds.KAI_QUEUE, "", queue)
        await cluster.settle()

        assert ready(cluster) == ("successful", "All resources are ready")
        assert set(cluster.there(kinds.KAI_POD_GROUP)) == set(cluster.there(kinds.PODGANG)) == {"chat-0", "chat-0-decode-0"}
        assert {pod["spec"]["schedulerName"] for pod in cluster.there(kinds.POD).values()} == {"kai-scheduler"}

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.settle()
        assert await leaves_nothing(cluster) and not cluster.there(kinds.KAI_POD_GROUP)


async def test_a_set_of_the_same_name_that_a_user_has_made_is_left_alone() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[podcliqueset("chat", clique("mine", 1))])
        before = cluster.there(kinds.PODCLIQUESET)["chat"]["spec"]

        report = await cluster.sync(manifests=[graph()], wait=False)

        assert report.ending is Ending.STUCK
        assert cluster.there(kinds.PODCLIQUESET)["chat"]["spec"] == before
        state, message = ready(cluster)
        assert state == "failed"
        assert "PodCliqueSet default/chat already exists but is not controlled by DynamoGraphDeployment default/chat" in message
        assert not cluster.there(kinds.DEPLOYMENT) and "chat-frontend" not in cluster.there(kinds.SERVICE)


async def test_a_missing_claim_holds_the_pods_that_mount_it_and_one_that_is_no_longer_named_keeps_its_data() -> None:
    mount = [{"name": "models", "mountPoint": "/models"}]
    manifest = graph(decode=service(volumeMounts=mount), other=service())
    async with stage() as cluster, cluster.running():
        await cluster.apply(manifest)
        await cluster.settle()
        assert [name.rpartition("-")[0] for name in pods(cluster)] == ["chat-0-other"]

        claim = {"create": True, "name": "models", "size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteMany"}
        await cluster.apply({**manifest, "spec": {**manifest["spec"], "pvcs": [claim]}})
        await cluster.settle()
        assert ready(cluster)[0] == "successful"
        assert set(cluster.there(kinds.PVC)) == {"models"}

        await cluster.apply({**graph(decode=service(), other=service())})
        await cluster.settle()
        assert set(cluster.there(kinds.PVC)) == {"models"}

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.settle()
        assert not cluster.there(kinds.PVC)


async def test_an_ssh_secret_is_made_once_if_the_configuration_asks_for_it() -> None:
    async with stage() as cluster:
        cluster.setup = replace(SETUP, dynamo=DynamoSettings(create_ssh_secret=True))
        manifest = graph(decode=service(nodes=2, script="python3 -m dynamo.trtllm --model m"))

        report = await cluster.sync(manifests=[manifest])
        assert report.ending is Ending.DONE
        data = cluster.there(kinds.SECRET)["mpirun-ssh-key-chat-decode"]["data"]
        assert base64.b64decode(data["private.key"]).startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")
        assert base64.b64decode(data["private.key.pub"]).startswith(b"ssh-rsa ")

        ours = cluster.start()
        await cluster.sync(ours)
        assert not ours.writes
        cluster.setup = SETUP
        await cluster.sync(manifests=[manifest])
        assert cluster.there(kinds.SECRET)["mpirun-ssh-key-chat-decode"]["data"] == data


@pytest.mark.parametrize("grove", [True, False], ids=["grove", "lws"])
async def test_a_sync_that_is_killed_at_any_write_is_completed_by_the_next_one(grove: bool) -> None:
    manifest = graph(decode=service(nodes=2), Frontend=service())

    async with stage(grove=grove, addons=("lws", "volcano")) as cluster:
        all_deaths = await deaths(cluster, cluster.start(), manifests=[manifest])
        await cluster.clock.advance(30)
        wanted = await cluster.shape()

    for death in all_deaths:
        async with forked(death.left) as cluster:
            assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
            assert set((death.created + cluster.process.created).values()) <= {1}
            await cluster.clock.advance(30)
            assert await cluster.shape() == wanted


async def test_an_invalid_graph_says_so_in_its_status_and_nothing_is_made() -> None:
    async with stage() as cluster, cluster.running():
        manifest = graph(decode=service(nodes=2, script="python3 -m dynamo.trtllm --model m", resources={}))
        await cluster.apply(manifest)
        await cluster.settle()

        state, message = ready(cluster)
        assert (state, message.startswith("Validation failed: ")) == ("failed", True)
        assert "gpu" in message
        assert await leaves_nothing(cluster)
