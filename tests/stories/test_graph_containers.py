"""The containers of a graph's pods: the configured addresses and the SSH keys reach all of them, in graphs made from now on."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds
from resources.base.labels import POD_FORM
from resources.dynamo.model.form import PodForm
from resources.ports.configuration import DynamoSettings
from tests.stories.graphs import graph, service
from tests.stories.stage import SETUP, Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS, annotations, uids

pytestmark = pytest.mark.anyio

ADDRESSES = {
    "NATS_SERVER": "nats://nats:4222",
    "ETCD_ENDPOINTS": "etcd:2379",
    "MODEL_EXPRESS_URL": "http://express",
    "PROMETHEUS_ENDPOINT": "http://prometheus",
}
CONFIGURED = replace(
    SETUP,
    dynamo=DynamoSettings(
        create_ssh_secret=True,
        nats_address=ADDRESSES["NATS_SERVER"],
        etcd_address=ADDRESSES["ETCD_ENDPOINTS"],
        model_express_url=ADDRESSES["MODEL_EXPRESS_URL"],
        prometheus_endpoint=ADDRESSES["PROMETHEUS_ENDPOINT"],
    ),
)
OWN = {"name": "NATS_SERVER", "value": "nats://own"}
FURTHER = {
    "containers": [
        {"name": "aside", "image": "example/aside:1", "env": [{"name": "URL", "value": "$(NATS_SERVER)/x"}]},
        {"name": "own", "image": "example/own:1", "env": [OWN]},
    ],
    "initContainers": [{"name": "log", "image": "example/log:1", "restartPolicy": "Always"}, {"name": "first", "image": "example/first:1"}],
}


def manifest(path: str, **annotations: str) -> dict[str, Any]:
    """A graph with a frontend and a service of TensorRT-LLM on two nodes, both with further containers."""
    decode = service(nodes=2, script="python3 -m dynamo.trtllm --tensor-parallel-size 8")
    decode["extraPodSpec"] |= FURTHER
    frontend = service(componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    frontend["extraPodSpec"] |= FURTHER
    return graph(annotations={**PATHS[path], **annotations}, decode=decode, Frontend=frontend)


def containers(cluster: Stage) -> list[tuple[str, dict[str, Any]]]:
    """All containers of all pods that the graph's author has named, and the main ones, with the names of their pods."""
    pods = cluster.there(kinds.POD).items()
    every = ((name, each) for name, pod in pods for each in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())))
    return [(name, each) for name, each in every if each["name"] in ("main", "aside", "own", "log", "first")]


def values(container: dict[str, Any]) -> dict[str, Any]:
    """The variables of a container, in their order."""
    return {env["name"]: env.get("value") for env in container.get("env", ())}


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_configured_reaches_every_container_of_a_new_graph(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        cluster.setup = CONFIGURED
        assert (await cluster.sync(manifests=[manifest(path)])).ending is Ending.DONE

        assert len(containers(cluster)) == 3 * 5
        for pod, container in containers(cluster):
            own = ADDRESSES | ({"NATS_SERVER": "nats://own"} if container["name"] == "own" else {})
            assert own.items() <= values(container).items(), container["name"]
            keys = [mount for mount in container.get("volumeMounts", ()) if mount["mountPath"] == "/ssh-pk"]
            assert len(keys) == ("decode" in pod) and all(mount["readOnly"] for mount in keys)
            assert ("OMPI_MCA_orte_keep_fqdn_hostnames" in values(container)) == ("decode" in pod)
        (aside, *_) = (values(container) for _, container in containers(cluster) if container["name"] == "aside")
        assert list(aside).index("NATS_SERVER") < list(aside).index("URL")


@pytest.mark.parametrize("path", PATHS)
async def test_a_graph_of_the_version_before_keeps_its_containers_and_diff_says_so(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        cluster.setup = CONFIGURED
        await cluster.sync(manifests=[manifest(path, **{POD_FORM: "4"})])
        before = uids(cluster)
        assert {container["name"] for _, container in containers(cluster) if "ETCD_ENDPOINTS" in values(container)} == {"main"}

        unnamed = manifest(path)
        noted = [note for plan in (await cluster.look([unnamed])).planned.plans for note in plan.notes]
        report = await cluster.sync(manifests=[unnamed])
        assert [result for result in report.results if result.operation.verb is not Verb.STATUS] == []
        assert uids(cluster) == before
        kept = [note for note in noted if "keep their form" in note]
        assert len(kept) == 1 and kept[0].startswith("the pods of decode, Frontend keep their form")
        assert (
            f'addresses of the configuration and SSH keys in every container, among others); the annotation {POD_FORM}: "{PodForm.CURRENT}"'
            in kept[0]
        )

        await cluster.sync(manifests=[manifest(path, **{POD_FORM: PodForm.CURRENT})])
        assert annotations(cluster)[POD_FORM] == PodForm.CURRENT
        assert all("ETCD_ENDPOINTS" in values(container) for _, container in containers(cluster))


async def test_nothing_is_said_of_older_pods_that_would_be_the_same() -> None:
    async with stage() as cluster:
        cluster.setup = CONFIGURED
        alone = graph(annotations={POD_FORM: "4"}, decode=service(nodes=2))
        await cluster.sync(manifests=[alone])

        noted = [note for plan in (await cluster.look([alone])).planned.plans for note in plan.notes]
        assert not [note for note in noted if "keep their form" in note]
