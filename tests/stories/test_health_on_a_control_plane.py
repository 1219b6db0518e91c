"""Health on a real API server: what `kubectl wait` and kstatus conclude while a set comes up, serves, and is in trouble."""

import os
import shutil
import subprocess
from functools import partial

import anyio
import pytest

from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.gitops_tools import argo_cd
from tests.kstatus import kstatus
from tests.stories.pods import running
from tests.stories.test_control_plane import connection, define, synced

KUBECTL = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
NAMESPACE = "health"

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def waited_for(plane: ControlPlane, condition: str, name: str) -> bool:
    """Whether `kubectl wait` finds the condition at once."""
    words = ["wait", f"--for=condition={condition}", f"podcliqueset/{name}", "-n", NAMESPACE, "--timeout=1s"]
    run = partial(subprocess.run, capture_output=True, text=True, timeout=60, check=False)
    ended = await anyio.to_thread.run_sync(run, [str(KUBECTL), "--kubeconfig", str(plane.kubeconfig("admin")), *words])
    return bool(ended.returncode == 0)


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")
async def test_a_set_is_ready_when_it_serves_and_stalled_when_somebody_has_to_act(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique("a", 2, pod_spec=running(1)), namespace=NAMESPACE))
        assert not await waited_for(control_plane, "Ready", "web")
        await synced(control_plane, NAMESPACE)
        body = await admin.get(kinds.PODCLIQUESET, NAMESPACE, "web")
        assert (kstatus(body), argo_cd(dict(body))) == ("Current", "Healthy"), body["status"]
        assert await waited_for(control_plane, "Ready", "web") and await waited_for(control_plane, "Applied", "web")
        assert not await waited_for(control_plane, "Stalled", "web")

        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": {"replicas": 2}})
        assert not await waited_for(control_plane, "Ready", "web")
        await synced(control_plane, NAMESPACE)
        assert await waited_for(control_plane, "Ready", "web")

        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken-0"}, "spec": {"clusterIP": "None"}}
        await admin.create(kinds.SERVICE, NAMESPACE, service)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("taken", clique("a", pod_spec=running(1)), namespace=NAMESPACE))
        await synced(control_plane, NAMESPACE)
        body = await admin.get(kinds.PODCLIQUESET, NAMESPACE, "taken")
        assert (kstatus(body), argo_cd(dict(body))) == ("Failed", "Degraded"), body["status"]
        assert await waited_for(control_plane, "Stalled", "taken")
