"""Graphs on a real API server that are stored in two versions, between which nothing converts: no version of them can be listed."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.schema.crds import Conversion, crds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.enginectl.calling import CommandResult, finished
from tests.stories.graphs import graph, service
from tests.stories.test_control_plane import connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ALPHA, BETA = kinds.DYNAMO_GRAPH, kinds.DYNAMO_GRAPH_V1BETA1
NAMESPACE = "unconverted"
NOBODY = {"name": "nobody", "namespace": "default", "path": "/convert", "port": 443}
MENDED = "start what answers it, or let engine run convert (engine manifests crds --converter"
KEPT = (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.PODGANG, kinds.POD, kinds.SERVICE)


def alpha_only() -> dict[str, Any]:
    """The definition of graphs that are served and stored as v1alpha1 only."""
    whole = unanswered("v1alpha1")
    spec = {field: value for field, value in whole["spec"].items() if field != "conversion"}
    return {**whole, "spec": {**spec, "versions": [each for each in spec["versions"] if each["name"] == "v1alpha1"]}}


def unanswered(stored: str) -> dict[str, Any]:
    """The definition of graphs in both versions, converted by a webhook that nobody serves."""
    (whole,) = (each for each in crds(Conversion(NOBODY, stored)) if each["spec"]["names"]["kind"] == ALPHA.name)
    return whole


def named(name: str) -> dict[str, Any]:
    """A graph of v1alpha1 with one service of one pod."""
    made = graph(name, other=service())
    return {**made, "metadata": {"name": name, "namespace": NAMESPACE}}


def beta(name: str) -> dict[str, Any]:
    """A graph of v1beta1."""
    pod = {"spec": {"containers": [{"name": "main", "image": "x", "command": ["sleep"], "args": ["1"]}]}}
    component = {"name": "Frontend", "type": "frontend", "podTemplate": pod}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": BETA.api_version, "kind": BETA.name, "metadata": metadata, "spec": {"components": [component]}}


async def run(plane: ControlPlane, *words: str | Path) -> CommandResult:
    """Run a command in a process of its own."""
    fixed = ("--kubeconfig", plane.kubeconfig("admin"), "-n", NAMESPACE)
    return await anyio.to_thread.run_sync(partial(finished, *words, *fixed))


async def objects(admin: KubernetesClient) -> Mapping[str, str]:
    """The objects of sets -> uid."""
    found = [(kind.name, body["metadata"]) for kind in KEPT for body in (await admin.list(kind, NAMESPACE)).items]
    return {f"{kind} {meta['name']}": meta["uid"] for kind, meta in found}


async def test_every_command_says_what_ends_it_sets_go_on_and_graphs_are_kept(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=2) as plane:
        async with connection(plane, "admin") as admin:
            await define(admin, NAMESPACE, alpha_only())
            (tmp_path / "old.json").write_text(json.dumps(named("old")))
            first = await run(plane, "sync", "-f", tmp_path / "old.json", "--yes", "--timeout", "60s")
            assert first.code == Exit.DONE, first
            await admin.patch(kinds.CRD, "", "dynamographdeployments.nvidia.com", unanswered("v1beta1"), how="apply", force=True)
            with anyio.fail_after(30):
                while (status := plane.call(f"/apis/nvidia.com/v1beta1/namespaces/{NAMESPACE}/{ALPHA.plural}", beta("new"))[0]) != 201:
                    assert status in (404, 429, 500), status
                    await anyio.sleep(0.1)
            before = await objects(admin)

            for words in (("diff",), ("sync", "--yes", "--timeout", "20s"), ("status",), ("why", "dgd/old")):
                answer = await run(plane, *words)
                assert (answer.code, (answer.out + answer.err).count(MENDED)) == (Exit.INCOMPLETE, 1), (words, answer)
            assert await objects(admin) == before
            (tmp_path / "web.json").write_text(json.dumps(podcliqueset("web", clique("worker", 1), namespace=NAMESPACE)))
            synced = await run(plane, "sync", "-f", tmp_path / "web.json", "--yes", "--timeout", "30s")
            assert synced.code == Exit.INCOMPLETE, synced
            deleted = await run(plane, "delete", "dgd/old", "--yes", "--timeout", "10s")
            assert deleted.code == Exit.FAILED and MENDED in deleted.err, deleted

            after = await objects(admin)
            assert before.items() <= after.items() and [name for name in after if name.startswith("Pod web-0-worker")]
