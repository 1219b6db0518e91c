"""Pods that mount a PersistentVolumeClaim which does not exist: previews say so, a sync ends with 9, and both are done once it does."""

import json
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import PVC, RESOURCE_CLAIM_TEMPLATE
from tests.builders import claim_template, clique, podcliqueset
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster

MISSING = "2 pods cannot start: PersistentVolumeClaim weights does not exist"
CLAIM: dict[str, Any] = {
    "metadata": {"name": "weights", "namespace": "default"},
    "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
OWN = """apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: own}
"""


def manifest(folder: Path, name: str, **pod: Any) -> Path:
    """The file of a set with two pods of this spec."""
    spec = {"containers": [{"name": "main", "image": "x:1"}], **pod}
    (file := folder / f"{name}.json").write_text(json.dumps(podcliqueset(name, clique("a", 2, pod_spec=spec))))
    return file


def test_what_pods_need_and_is_missing_ends_alike_in_diff_and_sync_until_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    mounting = manifest(tmp_path, "mounting", volumes=[{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}])
    claiming = manifest(tmp_path, "claiming", resourceClaims=[{"name": "d", "resourceClaimTemplateName": "own"}])
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0)) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        for file, missing in ((mounting, MISSING), (claiming, "2 pods cannot start: ResourceClaimTemplate own does not exist")):
            for _ in range(2):  # Also when there is nothing left to write.
                shown = engine("diff", "-f", file)
                assert shown.code == Exit.STUCK and missing in shown.out, shown.out
                synced = engine("sync", "-f", file, "--yes", "--timeout", "12s")
                assert synced.code == Exit.STUCK, synced.out + synced.err
        assert MISSING not in engine("diff", "-f", mounting, "--against", "empty").out
        (claim := tmp_path / "claim.json").write_text(json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **CLAIM}))
        (own := tmp_path / "own.yaml").write_text("# ours\n" + OWN)
        shown = engine("diff", "-f", mounting, "-f", claiming, "-f", claim, "-f", own)
        for named in (f"PersistentVolumeClaim weights (in {claim}:1)", f"ResourceClaimTemplate own (in {own}:2)"):
            assert f"{named} does not exist; do: apply it with kubectl first: the engine does not" in shown.out, shown.out
        box.create(PVC, {**CLAIM, "metadata": {**CLAIM["metadata"], "finalizers": ["example.com/kept"]}})
        box.delete(PVC, "weights")
        assert "PersistentVolumeClaim weights is being deleted" in engine("diff", "-f", mounting).out
        assert engine("sync", "-f", mounting, "--yes", "--timeout", "12s").code == Exit.STUCK
        box.change(PVC, "weights", {"metadata": {"finalizers": None}})

        box.create(PVC, CLAIM)
        template = {"metadata": {"name": "own", "namespace": "default"}, "spec": claim_template("own", "gpu.example.com")["templateSpec"]}
        assert engine("sync", "-f", mounting, "--yes").code == Exit.DONE
        assert engine("diff", "-f", mounting).code == Exit.DONE

        box.create(RESOURCE_CLAIM_TEMPLATE, template)
        assert engine("diff", "-f", claiming).code == Exit.DONE
