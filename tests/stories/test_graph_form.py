"""The form of a graph's pods: recorded when the graph is made, kept by graphs without a record, and changed by an annotation alone."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds
from resources.base.labels import GROUP_REPLICA_INDEX, POD_FORM, SCALING_GROUP, SPREAD, SPREAD_GROUPS
from resources.blueprints import graph_meaning, graph_records
from resources.dynamo.model.form import PodForm
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

NO_GROVE = {"nvidia.com/enable-grove": "false"}
ADDONS: dict[str, tuple[str, ...]] = {"grove": (), "components": ("lws", "volcano")}
PATHS: dict[str, dict[str, str]] = {"grove": {}, "components": NO_GROVE}
SIZED = "python3 -m dynamo.vllm --model m --tensor-parallel-size 8"
WITHOUT_TYPE = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "4"}}}


@contextmanager
def without_records() -> Iterator[None]:
    """The engine makes graphs as the version before did while the block runs."""
    with mock.patch.object(graph_records, "is_new", lambda graph: False), mock.patch.object(graph_meaning, "is_new", lambda graph: False):
        yield


def decoder(replicas: int = 2, **fields: Any) -> dict[str, Any]:
    """A decoder on two nodes."""
    return service(replicas, nodes=2, script=SIZED, **fields)


def nodes(cluster: Stage) -> list[set[str]]:
    """The nodes of each replica of services on several nodes."""
    by_replica = defaultdict(set)
    for pod in cluster.there(kinds.POD).values():
        labels = pod["metadata"]["labels"]
        if replica := labels.get(SCALING_GROUP, "") + labels.get(GROUP_REPLICA_INDEX, "") or labels.get(
            "leaderworkerset.sigs.k8s.io/name", ""
        ):
            by_replica[replica].add(pod["spec"].get("nodeName", ""))
    return list(by_replica.values())


def spread_terms(cluster: Stage) -> list[Any]:
    """The terms of anti-affinity of all pods."""
    affinities = (pod["spec"].get("affinity", {}) for pod in cluster.there(kinds.POD).values())
    return [
        term for each in affinities for term in each.get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", ())
    ]


def annotations(cluster: Stage) -> dict[str, str]:
    """The annotations of the graph."""
    found: dict[str, str] = cluster.there(kinds.DYNAMO_GRAPH)["chat"]["metadata"].get("annotations") or {}
    return found


def uids(cluster: Stage) -> set[str]:
    """The uids of all pods."""
    return {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}


def script(cluster: Stage, role: str) -> str:
    """The script of the first pod of a role."""
    pods = sorted(cluster.there(kinds.POD).items())
    container = next(pod["spec"]["containers"][0] for name, pod in pods if f"-{role}-" in name)
    return " ".join((*container["command"], *container["args"]))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("writer", ["kubectl", "sync"])
async def test_the_pods_of_a_replica_run_on_as_many_nodes_as_it_says(path: str, writer: str) -> None:
    manifest = graph(annotations=PATHS[path], decode=decoder())
    async with stage(addons=ADDONS[path]) as cluster:
        noted = [note for plan in (await cluster.look([manifest])).planned.plans for note in plan.notes]
        assert any("the 2 pods of a replica run on 2 different nodes with 4 GPUs each" in note for note in noted)
        if writer == "kubectl":
            await cluster.apply(manifest)
        report = await cluster.sync(manifests=[] if writer == "kubectl" else [manifest])

        assert report.ending is Ending.DONE
        assert annotations(cluster)[POD_FORM] == PodForm.CURRENT
        assert [len(each) for each in nodes(cluster)] == [2, 2]
        assert len(spread_terms(cluster)) == 4

        again = await cluster.sync(manifests=[manifest])
        assert [result for result in again.results if result.operation.verb is not Verb.STATUS] == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "fields",
    [
        {"annotations": {SPREAD: "disabled"}},
        {"extraPodSpec": {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}},
    ],
    ids=["annotation", "own affinity"],
)
async def test_its_author_may_let_them_share_a_node(path: str, fields: dict[str, Any]) -> None:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}}
    if "extraPodSpec" in fields:
        own = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        fields = {"extraPodSpec": {**decoder()["extraPodSpec"], "affinity": own}}
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[graph(annotations=PATHS[path], decode=decoder(**fields))])

        assert spread_terms(cluster) == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_graph_of_the_version_before_keeps_its_pods_and_their_form_also_after_an_edit(path: str) -> None:
    manifest = graph(annotations=PATHS[path], decode=decoder())
    async with stage(addons=ADDONS[path]) as cluster:
        with without_records():
            await cluster.apply(manifest)
            await cluster.sync()
        before = uids(cluster)
        assert POD_FORM not in annotations(cluster)

        noted = [note for plan in (await cluster.look([manifest])).planned.plans for note in plan.notes]
        assert [note for note in noted if "keep their form" in note and f'{POD_FORM}: "{PodForm.CURRENT}"' in note]
        settled = await cluster.sync(manifests=[manifest])

        assert uids(cluster) == before
        assert [result for result in settled.results if result.operation.verb is not Verb.STATUS] == []

        edited = graph(annotations=PATHS[path], decode=decoder(1))
        await cluster.sync(manifests=[edited])
        assert POD_FORM not in annotations(cluster)
        assert spread_terms(cluster) == []
        assert uids(cluster) < before


@pytest.mark.parametrize("path", PATHS)
async def test_an_annotation_asks_for_the_new_form(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        with without_records():
            await cluster.apply(graph(annotations=PATHS[path], decode=WITHOUT_TYPE | untyped()))
            await cluster.sync()
        assert "ray start" not in " ".join(" ".join(pod["spec"]["containers"][0]["args"]) for pod in cluster.there(kinds.POD).values())

        asked = graph(annotations={**PATHS[path], POD_FORM: "2"}, decode=WITHOUT_TYPE | untyped())
        report = await cluster.sync(manifests=[asked])

        assert report.ending is Ending.DONE
        lines = [" ".join(pod["spec"]["containers"][0]["args"]) for pod in cluster.there(kinds.POD).values()]
        assert len(lines) == 2 and all("ray start" in line for line in lines)
        assert len(spread_terms(cluster)) == 2


async def test_a_graph_that_loses_its_annotations_keeps_the_form_of_its_pods() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph(decode=decoder())])
        before = uids(cluster)
        patch = {"metadata": {"annotations": None}}
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", patch)
        assert annotations(cluster) == {}

        await cluster.sync()

        assert uids(cluster) == before
        assert annotations(cluster)[POD_FORM] == PodForm.CURRENT
        assert cluster.there(kinds.PODCLIQUESET)["chat"]["metadata"]["annotations"][SPREAD_GROUPS] == "decode"


def untyped() -> dict[str, Any]:
    """The container of a service without a component type, as the guide of multinode deployments has it."""
    return {"extraPodSpec": {"mainContainer": {"image": "example/dynamo:1", "command": ["/bin/sh", "-c"], "args": [SIZED]}}}


@pytest.mark.parametrize("path", PATHS)
async def test_a_service_without_a_component_type_gets_what_its_framework_needs(path: str) -> None:
    manifest = graph(annotations=PATHS[path], decode=WITHOUT_TYPE | untyped())
    async with stage(addons=ADDONS[path]) as cluster:
        report = await cluster.sync(manifests=[manifest])

        assert report.ending is Ending.DONE
        lines = sorted(" ".join(pod["spec"]["containers"][0]["args"]) for pod in cluster.there(kinds.POD).values())
        assert [line.partition(" --")[0] for line in lines] == ["ray start", "ray start"]
        assert any("--head --port=6379 && python3 -m dynamo.vllm" in line for line in lines)
        assert any("--block" in line for line in lines)
