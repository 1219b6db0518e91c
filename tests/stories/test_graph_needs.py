"""What a graph needs and what exists: SSH Secrets by both names, claims, schedulers and accounts of users."""

from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.dynamo.versions.api_versions import ALPHA
from resources.dynamo.versions.converted import as_version
from tests.resources.dynamo.versions.beta_graphs import beta, component, pods
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import uids
from tests.stories.test_graphs import NO_GROVE, ready

pytestmark = pytest.mark.anyio

ADDONS: dict[str, tuple[str, ...]] = {"grove": (), "components": ("lws", "volcano")}
PATHS: dict[str, dict[str, str]] = {"grove": {}, "components": NO_GROVE}
TRTLLM = service(nodes=2, script="python3 -m dynamo.trtllm --tensor-parallel-size 8")
CLAIM = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
OWN, SHARED = "mpirun-ssh-key-chat-decode", "mpirun-ssh-key-chat"


async def add_secret(cluster: Stage, name: str) -> None:
    """Create a Secret of that name."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}
    await cluster.kubectl.create(kinds.SECRET, "default", body)


def missing(cluster: Stage) -> list[str]:
    """The messages of the events about what is missing, on the graph."""
    events = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "DependencyMissing"]
    assert {(event["type"], event["involvedObject"]["kind"]) for event in events} <= {("Warning", "DynamoGraphDeployment")}
    return [event["message"] for event in events]


def mounted(cluster: Stage) -> set[str]:
    """The names of the Secrets that pods mount."""
    volumes = (volume for pod in cluster.there(kinds.POD).values() for volume in pod["spec"].get("volumes", ()))
    return {volume["secret"]["secretName"] for volume in volumes if "secret" in volume} & {OWN, SHARED}


@pytest.mark.parametrize("path", PATHS)
async def test_the_ssh_secret_is_found_by_the_name_of_the_deployment_and_stays_the_one_that_pods_mount(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=TRTLLM)], wait=False)
        assert f"Secret {OWN} does not exist (nor {SHARED} for the whole graph)" in ready(cluster)[1]

        await add_secret(cluster, SHARED)
        report = await cluster.sync()
        before = uids(cluster)
        assert (report.ending, len(before), mounted(cluster)) == (Ending.DONE, 2, {SHARED})

        await add_secret(cluster, OWN)
        await cluster.sync()
        assert (uids(cluster), mounted(cluster)) == (before, {SHARED})


@pytest.mark.parametrize("path", PATHS)
async def test_the_ssh_secret_of_the_component_comes_first_and_stays(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await add_secret(cluster, OWN)
        await add_secret(cluster, SHARED)
        await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=TRTLLM)])
        before = uids(cluster)
        assert mounted(cluster) == {OWN}

        await cluster.kubectl.delete(kinds.SECRET, "default", OWN, propagation="Background")
        await cluster.sync(wait=False)
        assert (uids(cluster), mounted(cluster)) == (before, {OWN})


@pytest.mark.parametrize("path", PATHS)
async def test_a_missing_secret_and_a_missing_claim_are_named_together_in_status_and_event_and_no_pod_is_made(path: str) -> None:
    mount = {"volumeMounts": [{"name": "models", "mountPoint": "/models"}]}
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=TRTLLM | mount)], wait=False)
        await cluster.sync(wait=False)

        (event,) = missing(cluster)
        assert event.startswith("pods are not created: service decode: ")
        for said in (ready(cluster)[1], event):
            assert "PersistentVolumeClaim models does not exist" in said and f"Secret {OWN} does not exist" in said
        made = (kinds.POD, kinds.PVC, *((kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP) if ADDONS[path] else ()))
        assert {kind.name: cluster.there(kind) for kind in made} == {kind.name: {} for kind in made}


@pytest.mark.parametrize("path", PATHS)
async def test_a_missing_claim_of_a_volume_in_a_pod_template_of_v1beta1_is_told_too(path: str) -> None:
    template = pods("--tensor-parallel-size", "8", gpus=4)
    template["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "models"}}]
    decode = beta(component("decode", template=template, multinode={"nodeCount": 2}), annotations=PATHS[path])
    decode["metadata"]["namespace"] = "default"
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[as_version(decode, ALPHA)], wait=False)
        await cluster.sync(wait=False)

        assert missing(cluster) == ["pods are not created: component decode: PersistentVolumeClaim models does not exist; create it"]
        made = (kinds.POD, *((kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP) if ADDONS[path] else ()))
        assert {kind.name: cluster.there(kind) for kind in made} == {kind.name: {} for kind in made}

        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "default"}, "spec": CLAIM}
        await cluster.kubectl.create(kinds.PVC, "default", claim)
        report = await cluster.sync()

        assert (report.ending, len(cluster.there(kinds.POD))) == (Ending.DONE, 2)


async def test_a_missing_claim_stops_being_told_when_it_exists() -> None:
    decode = service(volumeMounts=[{"name": "models", "mountPoint": "/models"}])
    async with stage() as cluster:
        await cluster.sync(manifests=[graph(decode=decode)], wait=False)
        assert len(missing(cluster)) == 1
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "default"}, "spec": CLAIM}
        await cluster.kubectl.create(kinds.PVC, "default", claim)

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert not any(alarm.reason == "DependencyMissing" for plan in report.plans for alarm in plan.alarms)


@pytest.mark.parametrize("path", PATHS)
async def test_a_graph_whose_claim_goes_away_while_its_pods_run_stays_ready_and_says_what_is_lost(path: str) -> None:
    decode = service(nodes=2, volumeMounts=[{"name": "models", "mountPoint": "/models"}])
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "default"}, "spec": CLAIM}
    why = "service decode: PersistentVolumeClaim models does not exist"
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.kubectl.create(kinds.PVC, "default", claim)
        assert (await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=decode)])).ending is Ending.DONE
        before = uids(cluster)

        await cluster.kubectl.delete(kinds.PVC, "default", "models", propagation="Background")
        report = await cluster.sync()

        assert (report.ending, uids(cluster)) == (Ending.DONE, before)
        assert [each.partition(", and ")[0] for each in missing(cluster)] == [f"no new pod can start: {why}"]
        assert ready(cluster)[0] == "successful"
        conditions = cluster.there(kinds.DYNAMO_GRAPH)["chat"]["status"]["conditions"]
        assert not [each for each in conditions if each["type"] in ("Stalled", "Reconciling")]

        if path == "grove":  # Without pods it does not serve. LeaderWorkerSets have their pods made by their controller.
            for name in list(cluster.there(kinds.POD)):
                await cluster.kubectl.delete(kinds.POD, "default", name, propagation="Background")
            await cluster.sync(wait=False)
            assert ready(cluster)[0] != "successful"
            assert any(each.startswith(f"pods are not created: {why}") for each in missing(cluster))


@pytest.mark.parametrize("path", PATHS)
async def test_a_service_without_replicas_lacks_nothing(path: str) -> None:
    decode = service(replicas=0, nodes=2, volumeMounts=[{"name": "models", "mountPoint": "/models"}])
    async with stage(addons=ADDONS[path]) as cluster:
        report = await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=decode)])

        assert (report.ending, missing(cluster), ready(cluster)[0]) == (Ending.DONE, [], "successful")


async def test_without_grove_a_service_keeps_its_own_scheduler_and_account() -> None:
    own: dict[str, Any] = {"schedulerName": "default-scheduler", "serviceAccountName": "mine"}
    decode = service(nodes=2, script="python3 -m dynamo.vllm --tensor-parallel-size 8")
    decode["extraPodSpec"] |= own
    async with stage(addons=ADDONS["components"]) as cluster:
        noted = [note for plan in (await cluster.look([graph(annotations=NO_GROVE, decode=decode)])).planned.plans for note in plan.notes]
        await cluster.sync(manifests=[graph(annotations=NO_GROVE, decode=decode)], wait=False)

        (group,) = cluster.there(kinds.LEADER_WORKER_SET).values()
        templates = [group["spec"]["leaderWorkerTemplate"][field]["spec"] for field in ("leaderTemplate", "workerTemplate")]
        assert [{key: template[key] for key in own} for template in templates] == [own, own]
        assert any("default-scheduler schedules the pods one by one: only volcano knows their gang" in note for note in noted)
