"""Claims that ask for a DeviceClass that does not exist: previews say so, a sync ends with 9, and both are done once it exists."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import DEVICE_CLASS, PODCLIQUESET, RESOURCE_CLAIM_TEMPLATE
from tests.builders import claim_template, clique, podcliqueset, share
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster

CHANNELS = "compute-domain-default-channel.nvidia.com"
GRAPH: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "llm", "namespace": "default", "annotations": {"nvidia.com/enable-grove": "false"}},
    "spec": {"services": {"front": {"componentType": "frontend"}}},
}


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of three nodes."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def test_what_is_missing_is_named_until_it_exists(box: Box, engine: Engine, tmp_path: Path) -> None:
    template = {"metadata": {"name": "own", "namespace": "default"}, "spec": claim_template("own", "odd.example")["templateSpec"]}
    box.create(RESOURCE_CLAIM_TEMPLATE, template)
    pod = {"containers": [{"name": "main", "image": "x:1"}], "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "own"}]}
    gpus = {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    classes = [{"name": name[:3], "deviceClassName": name} for name in ("gpu.example.com", "odd.example")]
    devices = {"devices": {"requests": [{"name": "a", "firstAvailable": classes}]}}
    claims: dict[str, Any] = {"resourceClaimTemplates": [{"name": "dev", "templateSpec": {"spec": devices}}]}
    claims["resourceSharing"] = [share("dev")]
    extra = {"mainContainer": {"image": "x:1"}, "resourceClaims": pod["resourceClaims"]}
    services: dict[str, dict[str, Any]] = {"front": {"componentType": "frontend", "extraPodSpec": extra}}
    manifests: dict[str, tuple[str, dict[str, Any]]] = {
        "template": ("odd.example", podcliqueset("template", clique("a", 2, pod_spec=pod))),
        "shared": ("odd.example", podcliqueset("shared", clique("a"), **claims)),
        "graph": ("odd.example", {**GRAPH, "spec": {"services": services}}),
        "domain": (CHANNELS, podcliqueset("domain", clique("a", pod_spec=gpus))),
    }
    manifests["domain"][1]["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "enabled"}
    box.delete(DEVICE_CLASS, CHANNELS)
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nnetwork: {autoMNNVLEnabled: true}\n")
    for name, (device_class, manifest) in manifests.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(manifest))
        shown = engine("diff", "--config", config, "-f", tmp_path / f"{name}.json")
        assert shown.code == Exit.STUCK and f"cannot start: DeviceClass {device_class} does not exist" in shown.out, shown.out

    synced = engine("sync", "-f", tmp_path / "template.json", "--yes", "--timeout", "60s")
    assert synced.code == Exit.STUCK, synced.out + synced.err
    assert "2 pods cannot start: DeviceClass odd.example does not exist" in engine("diff").out
    box.create(DEVICE_CLASS, {"metadata": {"name": "odd.example"}, "spec": {}})
    assert engine("sync", "-f", tmp_path / "template.json", "--yes").code == Exit.DONE
    assert engine("sync", "-f", tmp_path / "graph.json", "--yes").code == Exit.DONE
    box.delete(DEVICE_CLASS, "odd.example")

    assert engine("diff").code == Exit.DONE
    assert box.names(PODCLIQUESET) == ["template"]

    services["front"]["replicas"] = 3
    (tmp_path / "graph.json").write_text(json.dumps(manifests["graph"][1]))
    engine("sync", "-f", tmp_path / "graph.json", "--yes", "--timeout", "20s")
    waiting = "2 pods cannot start: DeviceClass odd.example does not exist"
    for words in (("diff",), ("diff", "--next"), ("status",), ("why", "llm")):
        shown = engine(*words)
        assert waiting in shown.out, (words, shown.out, shown.err)
