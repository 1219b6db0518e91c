"""A restart that a graph asks for: the pods of its services are replaced once, in order, and the status tells how far it is."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds
from resources.dynamo.restart import RESTARTED_AT
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS

pytestmark = pytest.mark.anyio


def made(path: str, restart: dict[str, Any] | None = None, image: str = "1", **spec: Any) -> dict[str, Any]:
    """A graph of three services, two of them on one node."""
    decode = service(nodes=2, script="python3 -m dynamo.vllm --tensor-parallel-size 8")
    decode["extraPodSpec"]["mainContainer"]["image"] = f"example/dynamo:{image}"
    body = graph(annotations=PATHS[path], decode=decode, Frontend=service(componentType="frontend"), prefill=service(2))
    body["spec"] |= spec | ({"restart": restart} if restart else {})
    return body


def pods(cluster: Stage) -> Iterator[tuple[str, Any]]:
    """Each pod that stays, with its service."""
    for name, pod in cluster.there(kinds.POD).items():
        if not pod["metadata"].get("deletionTimestamp"):
            yield next(key for key in ("decode", "frontend", "prefill") if key in name), pod


def restarted(cluster: Stage) -> dict[str, set[str]]:
    """The ids in the pods of each service."""
    found: dict[str, set[str]] = {}
    for key, pod in pods(cluster):
        found.setdefault(key, set()).add(pod["metadata"].get("annotations", {}).get(RESTARTED_AT, ""))
    return found


def uids(cluster: Stage) -> set[str]:
    """The uids of the pods that stay."""
    return {pod["metadata"]["uid"] for _, pod in pods(cluster)}


def ids_of_templates(cluster: Stage, path: str) -> set[str]:
    """The ids in the templates of all that runs services."""
    if path == "grove":
        cliques = cluster.there(kinds.PODCLIQUESET)["chat"]["spec"]["template"]["cliques"]
        return {each.get("annotations", {}).get(RESTARTED_AT, "") for each in cliques}
    templates = [body["spec"]["template"]["metadata"] for body in cluster.there(kinds.DEPLOYMENT).values()]
    groups = [body["spec"]["leaderWorkerTemplate"] for body in cluster.there(kinds.LEADER_WORKER_SET).values()]
    of_groups = [group[field]["metadata"] for group in groups for field in ("leaderTemplate", "workerTemplate")]
    return {each.get("annotations", {}).get(RESTARTED_AT, "") for each in (*templates, *of_groups)}


def status(cluster: Stage) -> Any:
    """`status.restart` of the graph."""
    return cluster.there(kinds.DYNAMO_GRAPH)["chat"]["status"].get("restart")


def all_of(id: str) -> dict[str, set[str]]:
    """What `restarted` is if all pods have one id."""
    return {key: {id} for key in ("decode", "frontend", "prefill")}


async def restarts(cluster: Stage) -> list[tuple[str, str, str]]:
    """What `engine run` has restarted: when the first new pod of each service was made, when the last one was ready, and the service."""
    async with cluster.running():
        for _ in range(300):
            await cluster.clock.advance(1)
            if (status(cluster) or {}).get("phase") == "Completed":
                break
        await cluster.settle()
    spans: dict[str, tuple[list[str], list[str]]] = {}
    for key, pod in pods(cluster):
        made, ready = spans.setdefault(key, ([], []))
        made.append(pod["metadata"]["creationTimestamp"])
        ready += [each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    return sorted((min(made), max(ready), key) for key, (made, ready) in spans.items())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (None, ["frontend", "decode", "prefill"]),
        ({"type": "Sequential", "order": ["prefill", "decode", "Frontend"]}, ["prefill", "decode", "frontend"]),
    ],
    ids=["by name", "in an order"],
)
async def test_services_are_restarted_one_after_another(path: str, strategy: Any, expected: list[str]) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        before = uids(cluster)
        assert status(cluster) is None

        await cluster.apply(made(path, {"id": "a", **({"strategy": strategy} if strategy else {})}))

        spans = await restarts(cluster)
        assert [key for _, _, key in spans] == expected
        assert all(ready <= made for (_, ready, _), (made, _, _) in pairwise(spans))
        assert restarted(cluster) == all_of("a")
        assert not before & uids(cluster)
        assert status(cluster) == {"observedID": "a", "phase": "Completed"}


@pytest.mark.parametrize("path", PATHS)
async def test_in_parallel_all_are_restarted_at_once(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        await cluster.apply(made(path, {"id": "a", "strategy": {"type": "Parallel"}}))

        await cluster.sync(wait=False)
        assert ids_of_templates(cluster, path) == {"a"}
        await restarts(cluster)
        assert restarted(cluster) == all_of("a")


@pytest.mark.parametrize("path", PATHS)
async def test_only_another_id_restarts_again_and_what_was_restarted_stays(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path)])
        await cluster.sync(manifests=[made(path, {"id": "a"})])
        before = uids(cluster)

        for manifest in (made(path, {"id": "a"}), made(path), made(path, {"id": "a"})):
            report = await cluster.sync(manifests=[manifest])
            assert report.ending is Ending.DONE
            assert (uids(cluster), restarted(cluster)) == (before, all_of("a"))
        assert [result for result in report.results if result.operation.id.kind != kinds.DYNAMO_GRAPH.name] == []

        assert (await cluster.sync(manifests=[made(path, {"id": "b"}, image="2")])).ending is Ending.DONE
        assert restarted(cluster) == all_of("b")
        assert status(cluster) == {"observedID": "b", "phase": "Completed"}


@pytest.mark.parametrize("writer", ["kubectl", "sync"])
@pytest.mark.parametrize("path", PATHS)
async def test_a_new_graph_with_an_id_has_nothing_to_restart(path: str, writer: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        manifest = made(path, {"id": "a"})
        if writer == "kubectl":
            await cluster.apply(manifest)
        assert (await cluster.sync(manifests=[] if writer == "kubectl" else [manifest])).ending is Ending.DONE

        assert restarted(cluster) == all_of("")
        assert status(cluster) == {"observedID": "a", "phase": "Completed"}


@pytest.mark.parametrize("path", PATHS)
async def test_an_id_that_an_engine_without_restarts_has_seen_restarts_nothing(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path, {"id": "old"})])
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"status": {"restart": None}}, subresource="status")
        assert status(cluster) is None
        before = uids(cluster)

        report = await cluster.sync()

        assert {result.operation.verb for result in report.results} == {Verb.STATUS}
        assert (uids(cluster), status(cluster)) == (before, {"observedID": "old", "phase": "Completed"})
