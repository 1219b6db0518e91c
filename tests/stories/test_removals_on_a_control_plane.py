"""ApplySets and deletions on a real API server: what kubectl refuses of ours, and what is gone afterwards."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from resources.base import applyset, kinds
from resources.base.labels import PART_OF
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import CommandResult, finished
from tests.stories.test_control_plane import connection, define
from tests.waiting import PATIENCE, until_objects

KUBECTL = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
NAMESPACE = "pruned"

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def engine(plane: ControlPlane, *words: str | Path) -> CommandResult:
    """A command of ours, in a process of its own."""
    return await anyio.to_thread.run_sync(partial(finished, *words, "--kubeconfig", plane.kubeconfig("admin"), "-n", NAMESPACE))


async def kubectl(plane: ControlPlane, folder: Path) -> subprocess.CompletedProcess[str]:
    """`kubectl apply --prune` of our ApplySet."""
    words = ["apply", "-f", str(folder), "--prune", "--applyset=configmaps/team", "-n", NAMESPACE]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), "KUBECTL_APPLYSET": "true"}
    run = partial(subprocess.run, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return await anyio.to_thread.run_sync(run, [str(KUBECTL), "--kubeconfig", str(plane.kubeconfig("admin")), *words])


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")
async def test_workloads_that_have_left_the_files_go_and_kubectl_leaves_our_applyset_alone(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(podcliqueset(name, clique("worker"), namespace=NAMESPACE)))
    prune = ("-f", folder, "--prune", "--applyset", "team")

    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        applied = await engine(control_plane, "sync", *prune, "--no-wait")
        assert applied.code == 0, applied
        again = await engine(control_plane, "diff", *prune, "-o", "json")
        assert not [each for root in again.document["roots"] for each in root["operations"] if each["verb"] != "status"]

        refused = await kubectl(control_plane, folder)
        assert refused.returncode != 0
        assert 'managed by tooling "grove-engine" instead of "kubectl"' in refused.stderr

        (folder / "two.yaml").unlink()
        pruned = await engine(control_plane, "sync", *prune, "--timeout", "180s", "--no-wait")
        assert pruned.code == 0, pruned
        await until_objects(
            admin, kinds.POD, NAMESPACE, lambda pods: {pod["metadata"]["labels"][PART_OF] for pod in pods.values()} <= {"one"}
        )
        deleted = await engine(control_plane, "sync", *prune, "--timeout", "180s", "--no-wait")
        assert deleted.code == 0, deleted
        assert [body["metadata"]["name"] for body in (await admin.list(kinds.PODCLIQUESET, NAMESPACE)).items] == ["one"]
        parent = await admin.get(kinds.CONFIG_MAP, NAMESPACE, "team")
        assert parent["metadata"]["annotations"][applyset.GROUP_KINDS] == "PodCliqueSet.grove.io"

        gone = await engine(control_plane, "delete", "one", "--yes", "--timeout", "180s")
        assert gone.code == 0, gone
        for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.POD, kinds.SERVICE, kinds.PODGANG):
            assert not (await admin.list(kind, NAMESPACE)).items
