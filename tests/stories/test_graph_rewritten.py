"""A graph that is rewritten in the other API version keeps its pods, also where its runtime depends on the version."""

from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.base.labels import WRITTEN_AS
from resources.dynamo.versions.api_versions import ALPHA, BETA, EXACT
from resources.dynamo.versions.converted import as_version
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS, annotations, uids

pytestmark = pytest.mark.anyio


def written(path: str, version: str, nodes: int = 1, image: str = "example/own:nightly") -> dict[str, Any]:
    """A graph whose worker has an image without a version, as a user writes it in that API version and as the cluster, which serves
    v1alpha1 only, is sent it."""
    decode = service(2, nodes=nodes, script="python3 -m dynamo.sglang --model-path m")
    decode["extraPodSpec"]["mainContainer"]["image"] = image
    found = dict(as_version(graph(annotations={**PATHS[path]}, decode=decode), version))
    own = {key: value for key, value in (found["metadata"].get("annotations") or {}).items() if key != EXACT}
    return dict(as_version({**found, "metadata": {**found["metadata"], "annotations": own}}, ALPHA))


def failures(cluster: Stage) -> set[int]:
    """How often the probes of the pods that have one may fail: workers on several nodes have none."""
    containers = (pod["spec"]["containers"][0] for pod in cluster.there(kinds.POD).values())
    return {container["livenessProbe"]["failureThreshold"] for container in containers if "livenessProbe" in container}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("record", ["kept", None, "v2"])
@pytest.mark.parametrize(("before", "after", "threshold"), [(ALPHA, BETA, 1), (BETA, ALPHA, 3)])
async def test_a_settled_graph_that_is_rewritten_restarts_nothing(
    path: str, before: str, after: str, threshold: int, record: str | None
) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        assert (await cluster.sync(manifests=[written(path, before)])).ending is Ending.DONE
        assert annotations(cluster)[WRITTEN_AS] == before.rpartition("/")[2]
        if record != "kept":  # None: as the version before left it.
            await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"annotations": {WRITTEN_AS: record}}})
        pods = uids(cluster)

        for _ in range(2):  # The second time nothing but the record tells what it was.
            assert (await cluster.sync(manifests=[written(path, after)])).ending is Ending.DONE
            assert (uids(cluster), failures(cluster)) == (pods, {threshold})
            assert annotations(cluster)[WRITTEN_AS] == before.rpartition("/")[2]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("nodes", "image"), [(1, "example/own:nightly"), (2, "example/own@sha256:" + "0" * 64)])
@pytest.mark.parametrize(("before", "after", "threshold"), [(ALPHA, BETA, 1), (BETA, ALPHA, 3)])
async def test_a_graph_that_is_replaced_without_its_record_keeps_what_its_running_pods_show(
    path: str, before: str, after: str, threshold: int, nodes: int, image: str
) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        assert (await cluster.sync(manifests=[written(path, before, nodes, image)])).ending is Ending.DONE
        pods = uids(cluster)

        stored = cluster.there(kinds.DYNAMO_GRAPH)["chat"]
        replaced = written(path, after, nodes, image)
        metadata = {**replaced["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        metadata["finalizers"] = stored["metadata"]["finalizers"]
        await cluster.kubectl.replace(kinds.DYNAMO_GRAPH, "default", "chat", {**replaced, "metadata": metadata})
        for _ in range(2):
            assert (await cluster.sync()).ending is Ending.DONE
            assert annotations(cluster)[WRITTEN_AS] == before.rpartition("/")[2]

        assert (uids(cluster), failures(cluster)) == (pods, {threshold})


def typed(path: str, nodes: int, **types: str) -> dict[str, Any]:
    """A graph of v1alpha1 with a frontend and a decoder of these types."""
    front = service(componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    decode = {**service(2, nodes=nodes, script="python3 -m dynamo.sglang --model-path m"), **types}
    return graph(annotations={**PATHS[path]}, Frontend=front, decode=decode)


SPELLINGS = [{"componentType": "decode"}, {"componentType": "Decode"}, {"componentType": "Worker", "subComponentType": "decode"}]
AS_BETA = {"componentType": "worker", "subComponentType": "decode"}
"""How a component of the type `decode` of v1beta1 is written in v1alpha1."""


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("types", SPELLINGS, ids=lambda types: "-".join(types.values()))
async def test_a_type_that_is_spelled_as_v1beta1_spells_it_restarts_nothing(path: str, nodes: int, types: dict[str, str]) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        before, after = typed(path, nodes, **types), typed(path, nodes, **AS_BETA)
        assert (await cluster.sync(manifests=[before])).ending is Ending.DONE
        pods, services = uids(cluster), cluster.there(kinds.SERVICE)

        for manifest in (after, {**after, "spec": {**after["spec"], "envs": []}}, before):
            assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
            assert uids(cluster) == pods
            assert {name: each["spec"] for name, each in cluster.there(kinds.SERVICE).items()} == {
                name: each["spec"] for name, each in services.items()
            }


async def test_a_service_that_is_named_like_the_leaders_of_another_has_its_own_type(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "python3 -m dynamo.sglang --model-path m"
    manifest = graph(annotations={**PATHS["grove"]}, a=service(componentType="decode", script=script))
    manifest["spec"]["services"]["a-ldr"] = service(subComponentType="decode", script=script)
    async with stage(addons=ADDONS["grove"]) as cluster:
        with monkeypatch.context() as patch:
            patch.setattr("resources.blueprints.graph_meaning.running_types", lambda _: {})
            assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
        pods = uids(cluster)

        assert (await cluster.sync()).ending is Ending.DONE
        assert uids(cluster) == pods


@pytest.mark.parametrize("path", PATHS)
async def test_another_type_reaches_the_labels_of_pods(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        for types in ({"componentType": "decode"}, {"componentType": "prefill"}, {"componentType": "worker", "subComponentType": "own"}):
            assert (await cluster.sync(manifests=[typed(path, 2, **types)])).ending is Ending.DONE
            found = [pod["metadata"]["labels"] for pod in cluster.there(kinds.POD).values()]
            shown = {
                tuple(labels.get(f"nvidia.com/dynamo-{field}") for field in ("component-type", "sub-component-type")) for labels in found
            }
            assert shown == {("frontend", None), (types["componentType"], types.get("subComponentType"))}
