"""What is said of a graph of v1beta1 has the words of v1beta1."""

import re

import pytest

from engine.conditions import find
from engine.resource import Body
from resources.base import kinds
from resources.dynamo.versions.api_versions import ALPHA, BETA, EXACT
from resources.dynamo.versions.converted import as_version
from tests.stories.graphs import graph, service
from tests.stories.refusing import refuse
from tests.stories.stage import stage
from tests.stories.test_graph_form import ADDONS, NO_GROVE, PATHS
from tests.stories.test_recipes import serve

pytestmark = pytest.mark.anyio

OF_ALPHA = re.compile(r"spec\.services|\bservices?\b(?! service)|extraPodSpec|mainContainer|componentType")


def without_origin(graph: Body) -> Body:
    """The graph as if it had never had another version."""
    annotations = {key: value for key, value in graph["metadata"].get("annotations", {}).items() if key != EXACT}
    return {**graph, "metadata": {**graph["metadata"], "annotations": annotations}}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("served", ["v1alpha1", "v1beta1"])
async def test_reasons_of_waits_removals_and_states_name_components(path: str, served: str) -> None:
    wide = service(
        1, nodes=2, script="python3 -m dynamo.trtllm --tensor-parallel-size 8", volumeMounts=[{"name": "own", "mountPoint": "/own"}]
    )
    first = graph(annotations=PATHS[path], decode=wide, gone=service())
    second = graph(annotations={**PATHS[path], "engine.grove.io/allow-replace": "true"}, decode=wide)
    async with stage(addons=ADDONS[path]) as cluster:
        await serve(cluster, served)
        texts: list[str] = []
        for manifest in (first, second):
            beta = without_origin(as_version(manifest, BETA))
            report = await cluster.sync(manifests=[beta if served == "v1beta1" else as_version(beta, ALPHA)], wait=False)
            for plan in report.plans:
                texts += [*plan.notes, *plan.problems, *(wait.why for wait in (*plan.deferred, *plan.pending))]
                texts += [alarm.text for alarm in plan.alarms]
                texts += [operation.why for operation in plan.operations if operation.id.kind != kinds.POD.name]
        stored = cluster.there(kinds.DYNAMO_GRAPH if served == "v1alpha1" else kinds.DYNAMO_GRAPH_V1BETA1)["chat"]
        texts.append(str(find(stored["status"]["conditions"], "Ready")))

        assert any("component decode: PersistentVolumeClaim own does not exist; create it" in text for text in texts), texts
        assert [text for text in texts if OF_ALPHA.search(text)] == []


async def test_what_the_server_says_of_pods_keeps_the_server_s_words() -> None:
    words = "the service mesh needs a service account token: no service account default/x for services of tier 1"
    first, second = (graph(annotations=NO_GROVE, decode=service(script=f"python3 -m dynamo.vllm --model {model}")) for model in "mn")
    async with stage(addons=ADDONS["components"]) as cluster:
        await serve(cluster, "v1beta1")
        await cluster.sync(manifests=[without_origin(as_version(first, BETA))])
        refuse(cluster.api, lambda new: new["kind"] == "Pod" and "--model n" in str(new["spec"]), words=words)

        report = await cluster.sync(manifests=[without_origin(as_version(second, BETA))])

        (wait,) = {wait for plan in report.plans for wait in plan.blocked}
        stored = cluster.there(kinds.DYNAMO_GRAPH_V1BETA1)["chat"]
        ready = find(stored["status"]["conditions"], "Ready") or {}
        assert words in wait.why
        assert words in ready["message"]
        assert any(words in alarm.text for alarm in report.blocking_alarms)
