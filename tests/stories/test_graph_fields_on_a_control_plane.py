"""Fields of graphs on a real API server: labels and priority, Volcano's queue, the recorded orchestrator, restarts, scaling adapters."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from msgspec.structs import replace

from engine.ids import Kind
from engine.runtime.sync_report import Ending
from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from providers.registry import SCHEDULERS
from resources.base import kinds
from resources.dynamo.model.form import PROVIDER
from resources.dynamo.restart import RESTARTED_AT
from resources.ports.configuration import VOLCANO_SCHEDULER
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.enginectl.calling import finished
from tests.stories.graphs import graph, service
from tests.stories.stage import DEFAULT
from tests.stories.test_control_plane import SETUP, Audit, connection, define, synced
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ADAPTER = kinds.SCALING_ADAPTER
GROVE, QUEUE = "nvidia.com/enable-grove", "nvidia.com/volcano-queue"
PRIORITY = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
WITH_VOLCANO = replace(SETUP, schedulers={DEFAULT: SCHEDULERS[DEFAULT], VOLCANO_SCHEDULER: SCHEDULERS[VOLCANO_SCHEDULER]})
TARGETS = {
    "grove": ((kinds.SCALING_GROUP, "chat-0-decode"), (kinds.PODCLIQUE, "chat-0-prefill")),
    "components": ((kinds.DEPLOYMENT, "chat-decode"), (kinds.DEPLOYMENT, "chat-prefill")),
}
"""Path -> what runs the two services."""
RUN_BY = {"grove": "grove", "components": "component"}
LEFT = (kinds.DYNAMO_GRAPH, ADAPTER, kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.DEPLOYMENT, kinds.POD)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own, without LeaderWorkerSets: single-node services run as Deployments without Grove."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


def chat(namespace: str, path: str, marks: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A graph with the annotations `marks`, of two services with scaling adapters; on Grove one of them has two nodes."""
    nodes = 2 if path == "grove" else 1
    made = {
        "decode": service(1, nodes=nodes, scalingAdapter={"enabled": True}),
        "prefill": service(1, scalingAdapter={"enabled": True}),
    }
    given = {**({} if path == "grove" else {GROVE: "false"}), **(marks or {})}
    body = graph("chat", given, **made)
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}, "spec": {**body["spec"], **spec}}


async def apply(admin: KubernetesClient, body: dict[str, Any]) -> None:
    await admin.patch(kinds.DYNAMO_GRAPH, body["metadata"]["namespace"], "chat", body, how="apply", force=True)


async def pods(admin: KubernetesClient, namespace: str) -> list[dict[str, Any]]:
    """The pods that stay."""
    found = (await admin.list(kinds.POD, namespace)).items
    return [dict(pod) for pod in found if not pod["metadata"].get("deletionTimestamp")]


@pytest.mark.parametrize("path", TARGETS)
async def test_a_graph_is_labelled_scaled_restarted_and_kept_where_it_runs(plane: ControlPlane, path: str) -> None:
    namespace = f"fields-{path}"
    async with connection(plane, "admin") as admin:
        await define(admin, namespace)
        for kind in (kinds.DYNAMO_GRAPH, ADAPTER):
            await admin.list(kind)  # The first answer may be "too early".
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"high-{path}"}, "value": 1000}
        await admin.create(PRIORITY, "", priority)
        fields: dict[str, Any] = {"labels": {"team": "a"}, "annotations": {"note": "b"}, "priorityClassName": f"high-{path}"}
        audit = Audit(plane)

        async def settled() -> Mapping[str, Any]:
            report = await synced(plane, namespace)
            assert (report.ending, report.failures) == (Ending.DONE, ())
            assert audit.read().refused == []
            return await admin.get(kinds.DYNAMO_GRAPH, namespace, "chat")

        await apply(admin, chat(namespace, path, **fields))
        assert (await settled())["metadata"]["annotations"][PROVIDER] == RUN_BY[path]
        await settled()
        assert audit.writes == {}
        for pod in await pods(admin, namespace):
            assert (pod["metadata"]["labels"]["team"], pod["metadata"]["annotations"]["note"]) == ("a", "b")
            assert pod["spec"]["priorityClassName"] == f"high-{path}"

        for name, replicas in (("decode", 3), ("prefill", 2)):
            scaled = {"spec": {"replicas": replicas}}
            await admin.patch(ADAPTER, namespace, f"chat-{name}", scaled, subresource="scale")
        await settled()
        for (kind, name), replicas in zip(TARGETS[path], (3, 2), strict=True):
            assert (await admin.get(kind, namespace, name))["spec"]["replicas"] == replicas
        for name, replicas in (("decode", 3), ("prefill", 2)):
            scale = await admin.get(ADAPTER, namespace, f"chat-{name}", subresource="scale")
            assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": replicas}, replicas)
            wanted = dict(each.split("=") for each in scale["status"]["selector"].split(","))
            every = await pods(admin, namespace)
            assert sum(wanted.items() <= pod["metadata"]["labels"].items() for pod in every) == replicas

        before = {pod["metadata"]["uid"] for pod in await pods(admin, namespace)}
        await apply(admin, chat(namespace, path, restart={"id": "r1"}, **fields))
        restarted = (await settled())["status"]["restart"]
        now = await pods(admin, namespace)
        assert restarted == {"observedID": "r1", "phase": "Completed"}
        assert {pod["metadata"]["annotations"][RESTARTED_AT] for pod in now} == {"r1"}
        assert len(now) == len(before) and before.isdisjoint(pod["metadata"]["uid"] for pod in now)

        # The annotation no longer chooses: what runs the graph was recorded.
        await apply(admin, chat(namespace, path, {GROVE: "false" if path == "grove" else "true"}, restart={"id": "r1"}, **fields))
        report = await synced(plane, namespace)
        assert report.ending is not Ending.FAILED
        kept = {pod["metadata"]["uid"] for pod in await pods(admin, namespace)}
        assert kept == {pod["metadata"]["uid"] for pod in now}
        assert (await admin.get(kinds.DYNAMO_GRAPH, namespace, "chat"))["metadata"]["annotations"][PROVIDER] == RUN_BY[path]

        await admin.delete(kinds.DYNAMO_GRAPH, namespace, "chat", propagation="Background")
        assert (await synced(plane, namespace)).ending is Ending.DONE
        await until_objects(admin, kinds.POD, namespace, lambda pods: not pods)
        assert [body["metadata"]["name"] for kind in LEFT for body in (await admin.list(kind, namespace)).items] == []


async def test_the_queue_of_volcano_is_that_of_the_set_and_its_pods_name_volcano(plane: ControlPlane) -> None:
    namespace = "fields-volcano"
    async with connection(plane, "admin") as admin:
        await define(admin, namespace)
        await apply(admin, chat(namespace, "grove", {QUEUE: "team"}))

        await synced(plane, namespace, WITH_VOLCANO, patience=5)

        made = await admin.get(kinds.PODCLIQUESET, namespace, "chat")
        assert made["metadata"]["annotations"]["scheduling.grove.io/volcano-queue"] == "team"
        assert {each["spec"]["podSpec"]["schedulerName"] for each in made["spec"]["template"]["cliques"]} == {VOLCANO_SCHEDULER}

        await admin.delete(kinds.DYNAMO_GRAPH, namespace, "chat", propagation="Background")
        assert (await synced(plane, namespace, WITH_VOLCANO)).ending is Ending.DONE


async def test_the_number_of_an_adapter_in_a_file_is_written_and_kept(plane: ControlPlane, tmp_path: Path) -> None:
    namespace, file = "asked", tmp_path / "chat.yaml"

    async def engine(command: str, *adapters: dict[str, Any]) -> str:
        file.write_text(yaml.safe_dump_all([chat(namespace, "grove"), *adapters]))
        answer = await anyio.to_thread.run_sync(partial(finished, command, "-f", file, "--kubeconfig", plane.kubeconfig("admin")))
        assert answer.code == Exit.DONE, answer
        return answer.out

    async with connection(plane, "admin") as admin:
        await define(admin, namespace)
        metadata = {"name": "chat-decode", "namespace": namespace}
        reference = {"name": "chat", "serviceName": "decode"}
        adapter: Any = {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "metadata": metadata}
        for replicas in (2, 3):
            adapter["spec"] = {"replicas": replicas, "dgdRef": reference}
            await engine("sync", adapter)
            assert "No changes" in await engine("diff", adapter)
            await engine("sync")
            (adapter,) = (each for each in (await admin.list(ADAPTER, namespace)).items if each["metadata"]["name"] == "chat-decode")
            assert adapter["spec"]["replicas"] == adapter["status"]["replicas"] == replicas
            assert (await admin.get(kinds.SCALING_GROUP, namespace, "chat-0-decode"))["spec"]["replicas"] == replicas
