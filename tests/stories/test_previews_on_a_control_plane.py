"""What a preview tells of a real control plane before anything is refused: quotas, policies of others, missing namespaces."""

from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from engine.ids import Kind
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import finished
from tests.stories.test_control_plane import connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "previewed"
POLICY = Kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDING = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)


async def forbid_services(admin: KubernetesClient) -> None:
    """Somebody's policy: no Service in the namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"namespaceSelector": selector, "resourceRules": rules},
        "validations": [{"expression": "false", "message": "no Services here"}],
    }
    await admin.create(POLICY, "", {"metadata": {"name": "no-services"}, "spec": spec})
    await admin.create(
        BINDING, "", {"metadata": {"name": "no-services"}, "spec": {"policyName": "no-services", "validationActions": ["Deny"]}}
    )


async def allow_pods(admin: KubernetesClient, pods: int) -> None:
    """A quota with the status that its controller would write."""
    hard = {"pods": str(pods)}
    await admin.create(kinds.RESOURCE_QUOTA, NAMESPACE, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
    status = {"status": {"hard": hard, "used": {"pods": "0"}}}
    await admin.patch(kinds.RESOURCE_QUOTA, NAMESPACE, "few", status, subresource="status")


async def diff(plane: ControlPlane, file: Path, *options: str) -> dict[str, str]:
    """What `engine diff` shows as blocked: object -> why."""
    words: tuple[str | Path, ...] = ("diff", "-f", file, "-o", "json", "--kubeconfig", plane.kubeconfig("admin"), *options)
    answer = await anyio.to_thread.run_sync(partial(finished, *words))
    waits = [wait for root in answer.document["roots"] for wait in root["blocked"]]
    return {f"{wait['object']['kind']}/{wait['object']['name']}": wait["why"] for wait in waits}


async def test_a_preview_tells_what_a_real_server_would_refuse_and_stores_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "sets.yaml"
    sets = [podcliqueset("web", clique("worker", 3), namespace=NAMESPACE), podcliqueset("lost", clique("worker"), namespace="nowhere")]
    file.write_text(yaml.safe_dump_all(sets))

    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await allow_pods(admin, 2)
        await forbid_services(admin)

        blocked = await diff(control_plane, file)
        assert blocked.keys() == {"Namespace/nowhere", "ResourceQuota/few"}
        assert blocked["ResourceQuota/few"].startswith("it allows 2 more pods, and 3 are needed")

        # A new policy takes effect a moment after it was stored.
        with anyio.fail_after(60):
            while "Service/web-0" not in (blocked := await diff(control_plane, file, "--server-dry-run")):
                pass
        assert "no Services here" in blocked["Service/web-0"]
        for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SERVICE, kinds.POD, kinds.SECRET):
            assert not (await admin.list(kind, NAMESPACE)).items
