"""Saved plans on a real API server: one that is applied as it was shown, and one that is stale and changes nothing."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import CommandResult, finished
from tests.stories.pods import images, running
from tests.stories.test_control_plane import CHILDREN, connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "approved"


def manifest(folder: Path, version: int, name: str = "web") -> Path:
    """A set of two replicas with one pod each, in a file of its own."""
    file = folder / f"{name}.yaml"
    body = podcliqueset(name, clique("worker", 1, pod_spec=running(version)), replicas=2, namespace=NAMESPACE)
    file.write_text(yaml.safe_dump(body))
    return file


async def engine(plane: ControlPlane, *words: str | Path) -> CommandResult:
    """A command of ours, in a process of its own."""
    return await anyio.to_thread.run_sync(partial(finished, *words, "--kubeconfig", plane.kubeconfig("admin")))


async def pods(admin: KubernetesClient, name: str) -> list[dict[str, Any]]:
    """The pods of a set."""
    listed = (await admin.list(kinds.POD, NAMESPACE)).items
    return [pod for pod in listed if pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == name]


async def revisions(admin: KubernetesClient) -> dict[str, str]:
    """The revision of every object of ours in the namespace, statuses included."""
    return {
        f"{kind.name}/{body['metadata']['name']}": body["metadata"]["resourceVersion"]
        for kind in (kinds.PODCLIQUESET, *CHILDREN)
        for body in (await admin.list(kind, NAMESPACE)).items
    }


async def test_a_plan_is_applied_as_it_was_shown_and_a_stale_one_writes_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    plan, stale = tmp_path / "plan.json", tmp_path / "stale.json"
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        both = ("-f", manifest(tmp_path, 1), "-f", manifest(tmp_path, 1, "other"))
        applied = await engine(control_plane, "sync", *both, "--timeout", "180s")
        assert applied.code == Exit.DONE, applied
        before, others = await revisions(admin), await pods(admin, "other")

        saved = await engine(control_plane, "diff", "-f", manifest(tmp_path, 2), "--out", plan)
        shown = await engine(control_plane, "show", plan)
        assert (saved.code, shown.code, await revisions(admin)) == (Exit.DONE, Exit.DONE, before), (saved, shown)
        assert "2 pods restarted" in saved.out and shown.out.endswith(saved.out)

        updated = await engine(control_plane, "sync", "--plan", plan, "--timeout", "180s")
        assert updated.code == Exit.DONE, updated
        assert images(await pods(admin, "web")) == {"example/worker:2"}
        assert {pod["metadata"]["uid"] for pod in await pods(admin, "other")} == {pod["metadata"]["uid"] for pod in others}

        assert (await engine(control_plane, "diff", "-f", manifest(tmp_path, 3), "--out", stale)).code == Exit.DONE
        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": {"replicas": 3}})
        before = await revisions(admin)
        refused = await engine(control_plane, "sync", "--plan", stale, "-o", "json")
        assert (refused.code, await revisions(admin)) == (Exit.STALE, before)
        (deviation,) = json.loads(refused.out)["unapproved"]
        assert deviation["about"] == f"PodCliqueSet/{NAMESPACE}/web"
        assert deviation["then"].startswith("generation 2 ") and deviation["now"].endswith("with another spec: spec.replicas 2 → 3")
