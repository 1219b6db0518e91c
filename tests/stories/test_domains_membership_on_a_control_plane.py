"""N24, N25 on a real control plane: edited annotations move no pod, and are reported in the status that the API server stores."""

import pytest

from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from resources.base.kinds import POD
from tests.controlplane.cluster import ControlPlane
from tests.mnnvl.sets import auto, gpu, gpus
from tests.stories.domains import assert_invariants
from tests.stories.fabric import FABRIC, templates_of
from tests.stories.pods import clique_of, is_ready
from tests.stories.test_control_plane import synced
from tests.stories.test_domains_on_a_control_plane import NAMESPACE, fabric, names, plane

__all__ = ["plane"]

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_N24_N25_without_a_webhook_edited_annotations_are_faults_and_every_pod_keeps_its_domain(plane: ControlPlane) -> None:
    async with fabric(plane) as (admin, _):
        manifest = auto(1, gpu(pod_spec=gpus("1")), name="kept", namespace=NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, manifest)
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        for mode in (None, "disabled"):
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "kept", {"metadata": {"annotations": {AUTO: mode}}})
            (pod,) = [pod["metadata"]["name"] for pod in (await admin.list(POD, NAMESPACE)).items][:1]
            await admin.delete(POD, NAMESPACE, pod)
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "kept", {"spec": {"replicas": 2}}, subresource="scale")
            report = await synced(plane, NAMESPACE, FABRIC)

            assert (report.ending, len(report.problems), report.failures) == (Ending.FAILED, 1, ())
            pods = (await admin.list(POD, NAMESPACE)).items
            assert {clique_of(pod): templates_of(pod) for pod in pods} == {f"kept-{i}-worker": [f"kept-{i}"] for i in range(2)}
            assert all(map(is_ready, pods))
            await assert_invariants(admin)
            stored = await admin.get(kinds.PODCLIQUESET, NAMESPACE, "kept")
            assert "FabricAnnotationsIgnored" in [entry["type"] for entry in stored["status"]["conditions"]]
        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "kept", {"metadata": {"annotations": {AUTO: "enabled"}}})
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        stored = await admin.get(kinds.PODCLIQUESET, NAMESPACE, "kept")
        assert [entry for entry in stored["status"].get("conditions", ()) if entry["type"] == "FabricAnnotationsIgnored"] == []
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "kept", propagation="Background")
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        assert await names(admin, kinds.PODCLIQUESET) == []
