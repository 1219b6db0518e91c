"""An engine that is upgraded over settled graphs changes none of their pods; what it adds is asked for by an annotation."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds
from resources.base.labels import POD_FORM, VLLM_EXECUTORS
from resources.dynamo.model.form import PodForm
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS, annotations, uids, without_records

pytestmark = pytest.mark.anyio

BACKEND = "nvidia.com/vllm-distributed-executor-backend"
IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime"
SCRIPTS = {
    "vllm": "python3 -m dynamo.vllm --model m --tensor-parallel-size 8",
    "sglang": "python3 -m dynamo.sglang --model-path m --tp-size 8",
    "trtllm": "python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 8",
}


def serving(framework: str, path: str, tag: str = "1.3.0", **more: str) -> dict[str, Any]:
    """A graph with a decoder on two nodes."""
    decode = service(2, nodes=2, script=SCRIPTS[framework])
    decode["extraPodSpec"]["mainContainer"]["image"] = f"{IMAGE}:{tag}"
    return graph(annotations={**PATHS[path], **more}, decode=decode)


async def settled(cluster: Stage, manifest: dict[str, Any]) -> None:
    """Sync a manifest to its end. The Secret that TensorRT-LLM needs is there."""
    if "mpirun-ssh-key-chat" not in cluster.there(kinds.SECRET):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mpirun-ssh-key-chat", "namespace": "default"}}
        await cluster.kubectl.create(kinds.SECRET, "default", secret)
    if manifest["metadata"]["name"] not in cluster.there(kinds.DYNAMO_GRAPH):
        await cluster.apply(manifest)
    assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE


def version_before(form: str) -> AbstractContextManager[None]:
    """The engine makes graphs of that form while the context is open."""
    return without_records() if form == "1" else nullcontext()


def recorded(form: str) -> dict[str, str]:
    """The annotation that a graph of that form has."""
    return {POD_FORM: form} if form != "1" else {}


def lines(cluster: Stage) -> list[str]:
    """The command lines of all pods, sorted."""
    return sorted(" ".join(pod["spec"]["containers"][0].get("args", ())) for pod in cluster.there(kinds.POD).values())


async def notes(cluster: Stage, manifest: dict[str, Any]) -> list[str]:
    """What a preview of a manifest says."""
    return [note for plan in (await cluster.look([manifest])).planned.plans for note in plan.notes]


@pytest.mark.parametrize("framework", SCRIPTS)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["1", "2"])
async def test_an_upgrade_restarts_and_writes_nothing_and_says_what_is_kept(form: str, path: str, framework: str) -> None:
    manifest = serving(framework, path, **{BACKEND: "mp"})
    async with stage(addons=ADDONS[path]) as cluster:
        with version_before(form):
            await settled(cluster, serving(framework, path, **{BACKEND: "mp"}, **recorded(form)))
        before, started = uids(cluster), lines(cluster)

        noted = await notes(cluster, manifest)
        report = await cluster.sync(manifests=[manifest])

        assert [result for result in report.results if result.operation.verb is not Verb.STATUS] == []
        assert (uids(cluster), lines(cluster)) == (before, started)
        assert len([note for note in noted if "keep their form" in note and f'{POD_FORM}: "{PodForm.CURRENT}"' in note]) == 1
        assert len([note for note in noted if note.startswith(f"{BACKEND} has no effect")]) == (framework == "vllm")
        assert annotations(cluster).get(POD_FORM) == recorded(form).get(POD_FORM)
        assert VLLM_EXECUTORS not in annotations(cluster)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["1", "2"])
async def test_an_edit_of_an_older_graph_keeps_its_form(form: str, path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        with version_before(form):
            await settled(cluster, serving("vllm", path, "1.2.0", **recorded(form)))
        started = lines(cluster)

        await settled(cluster, serving("vllm", path, "1.3.0"))

        assert lines(cluster) == started
        assert all("--distributed-executor-backend" not in line for line in started)
        assert not any(pod["spec"].get("initContainers") for pod in cluster.there(kinds.POD).values())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["1", "2"])
async def test_what_runs_ray_keeps_it_in_the_new_form_until_the_executor_is_named(form: str, path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        with version_before(form):
            await settled(cluster, serving("vllm", path, **recorded(form)))

        asked = serving("vllm", path, **{POD_FORM: "3"})
        assert any("is ray for decode, because it runs so already" in note for note in await notes(cluster, asked))
        await settled(cluster, asked)
        assert annotations(cluster)[VLLM_EXECUTORS] == "decode=ray"
        assert [line.startswith("ray start") for line in lines(cluster)] == [True] * 4
        assert sum("--distributed-executor-backend ray" in line for line in lines(cluster)) == 2

        await settled(cluster, serving("vllm", path, **{POD_FORM: "3", BACKEND: "mp"}))
        assert annotations(cluster)[VLLM_EXECUTORS] == "decode=mp"
        assert ["--distributed-executor-backend mp" in line for line in lines(cluster)] == [True] * 4
        assert sum(bool(pod["spec"].get("initContainers")) for pod in cluster.there(kinds.POD).values()) == 2


@pytest.mark.parametrize("path", PATHS)
async def test_an_annotation_that_leaves_the_manifest_goes_and_the_executor_stays(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[serving("vllm", path, "1.2.0", **{BACKEND: "mp"})])
        before = uids(cluster)

        await cluster.sync(manifests=[serving("vllm", path, "1.2.0")])

        assert BACKEND not in annotations(cluster)
        assert (uids(cluster), annotations(cluster)[VLLM_EXECUTORS]) == (before, "decode=mp")


@pytest.mark.parametrize("path", PATHS)
async def test_a_new_graph_keeps_its_executor_whatever_its_image_becomes_and_its_annotations(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await settled(cluster, serving("vllm", path, "1.3.0"))
        assert annotations(cluster)[VLLM_EXECUTORS] == "decode=mp"

        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"annotations": None}})
        await settled(cluster, serving("vllm", path, "1.2.0"))

        assert annotations(cluster)[VLLM_EXECUTORS] == "decode=mp"
        assert all("--distributed-executor-backend mp" in line for line in lines(cluster))
