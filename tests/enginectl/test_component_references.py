"""Graphs without Grove whose pods refer to what does not exist: previews and `sync` say what is missing, as for a PodCliqueSet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.forecast.cluster_model import Assumption
from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.registry import ACTORS
from resources.base.kinds import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster

MISSING = "cannot start: ResourceClaimTemplate own does not exist"
TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "own", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}
GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: llm
  namespace: default
  annotations: {nvidia.com/enable-grove: "false"}
spec:
  backendFramework: vllm
  services:
    front: {componentType: frontend, replicas: 2, extraPodSpec: {mainContainer: {image: "x:1"}}}
    decode:
      componentType: worker
      replicas: 1
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer: {image: "x:1", command: [python3], args: [-m, dynamo.vllm, --tensor-parallel-size, "2"]}
"""
CLAIMS = "resourceClaims: [{name: d, resourceClaimTemplateName: own}]"
GATES = "schedulingGates: [{name: example.com/later}]"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of three nodes."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0), addons=("lws", "volcano")) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


@pytest.fixture
def only_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """The same without Grove: no plan depends on claims or templates."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0), addons=("lws", "volcano"), grove=False) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def graph(folder: Path, front: str = "", decode: str = "", replicas: int = 2) -> Path:
    """A file with a graph of a Deployment and a LeaderWorkerSet, whose pods have these fields."""
    text = GRAPH.replace("replicas: 2", f"replicas: {replicas}")
    if front:
        text = text.replace("extraPodSpec: {", f"extraPodSpec: {{{front}, ")
    if decode:
        text = text.replace("extraPodSpec:\n", f"extraPodSpec:\n        {decode}\n")
    file = folder / "graph.yaml"
    file.write_text(text)
    return file


def test_what_is_missing_is_named_until_it_exists_and_pods_that_run_need_it_no_more(box: Box, engine: Engine, tmp_path: Path) -> None:
    new = engine("diff", "-f", graph(tmp_path, CLAIMS, CLAIMS))
    assert new.code == Exit.STUCK, new.out
    assert f"Deployment/llm-front, LeaderWorkerSet/llm-decode-0  ReferenceMissing: 2 pods {MISSING}" in new.out

    assert engine("sync", "-f", graph(tmp_path)).code == Exit.DONE
    update = graph(tmp_path, CLAIMS)
    shown, synced = engine("diff", "-f", update), engine("sync", "-f", update, "--yes", "--timeout", "30s")
    assert (shown.code, synced.code) == (Exit.STUCK, Exit.STUCK), shown.out + synced.out
    assert MISSING in shown.out
    assert all(MISSING in engine(*words).out for words in (("diff",), ("diff", "--next"), ("status",), ("why", "llm")))

    box.create(RESOURCE_CLAIM_TEMPLATE, TEMPLATE)
    assert engine("sync", "-f", update, "--yes").code == Exit.DONE
    box.delete(RESOURCE_CLAIM_TEMPLATE, "own")
    assert engine("diff", "-f", graph(tmp_path, CLAIMS, replicas=1)).code == Exit.DONE
    assert f"1 pod {MISSING}" in engine("diff", "-f", graph(tmp_path, CLAIMS, replicas=3)).out


def test_what_could_not_be_listed_is_not_said_to_be_missing(only_graphs: Box, engine: Engine, tmp_path: Path) -> None:
    box = only_graphs
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nnetwork: {autoMNNVLEnabled: true}\n")
    box.create(RESOURCE_CLAIM_TEMPLATE, TEMPLATE)
    box.inject(InjectedFault("answer", "list", "resourceclaimtemplates", times=10**6))
    new = engine("diff", "-f", graph(tmp_path, CLAIMS, CLAIMS))
    assert (new.code, "does not exist" in new.out) == (Exit.DONE, False), new.out
    assert Assumption.REFERENCES in new.out and "ResourceClaimTemplate could not be listed: " in new.errors, new.out + new.errors

    box.create(RESOURCE_CLAIM, {"metadata": {"name": "mine", "namespace": "default"}, "spec": TEMPLATE["spec"]["spec"]})
    elsewhere = graph(tmp_path, "nodeSelector: {no: node}, resourceClaims: [{name: d, resourceClaimName: mine}]", replicas=1)
    engine("sync", "--config", config, "-f", elsewhere, "--timeout", "20s")
    box.deny(verb="list", resource="resourceclaims")
    for words in (("diff",), ("diff", "--next"), ("status",), ("why", "llm")):
        shown = engine(*words, "--config", config)
        assert "does not exist" not in shown.out and "ResourceClaim could not be listed: " in shown.errors, (words, shown.out, shown.errors)


def test_without_a_cluster_it_is_assumed(engine: Engine, tmp_path: Path) -> None:
    for fields, assumption in ((CLAIMS, Assumption.REFERENCES), (GATES, Assumption.GATES)):
        for file in (graph(tmp_path, fields), graph(tmp_path, decode=fields)):
            answer = engine("diff", "-f", file, "--against", "empty")
            assert answer.code == Exit.DONE and assumption in answer.out, answer.out

    assert not {Assumption.REFERENCES, Assumption.GATES} & set(engine("diff", "-f", graph(tmp_path), "--against", "empty").out.split("; "))
