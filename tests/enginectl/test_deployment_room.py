"""Full nodes and graphs without Grove: a Deployment creates new pods before it deletes earlier ones, unless its strategy says otherwise."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import RESOURCE_QUOTA
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_room import CAPACITY

GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: llm
  namespace: default
  annotations: {{nvidia.com/enable-grove: "false"}}
spec:
  backendFramework: vllm
  services:
    decode:
      componentType: worker
      replicas: {replicas}
      annotations: {{nvidia.com/deployment-strategy: "{strategy}"}}
      resources: {{limits: {{gpu: "{gpus}"}}}}
      extraPodSpec:
        mainContainer: {{image: "x:{version}", command: [python3], args: [-m, dynamo.vllm]}}
"""
EARLIER = "its earlier pods stay until new ones are ready: a strategy that deletes them first needs no more room"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of three nodes with four GPUs each."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0, capacity=CAPACITY), addons=("lws",)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def graph(folder: Path, replicas: int, version: int, *, gpus: int = 4, strategy: str = "RollingUpdate") -> Path:
    """A file with a graph of one service."""
    file = folder / "graph.yaml"
    file.write_text(GRAPH.format(replicas=replicas, version=version, gpus=gpus, strategy=strategy))
    return file


@pytest.mark.parametrize(
    "old, new, strategy, code",
    [
        ((3, 4), (3, 4), "RollingUpdate", Exit.STUCK),
        ((2, 4), (2, 4), "RollingUpdate", Exit.DONE),
        ((3, 4), (3, 4), "Recreate", Exit.DONE),
        ((6, 2), (6, 2), "RollingUpdate", Exit.DONE),
    ],
)
def test_an_update_of_a_deployment_settles_if_and_only_if_that_is_forecast(
    box: Box, engine: Engine, tmp_path: Path, old: tuple[int, int], new: tuple[int, int], strategy: str, code: Exit
) -> None:
    assert engine("sync", "-f", graph(tmp_path, old[0], 1, gpus=old[1], strategy=strategy)).code == Exit.DONE
    file = graph(tmp_path, new[0], 2, gpus=new[1], strategy=strategy)

    shown = engine("diff", "-f", file)
    synced = engine("sync", "-f", file, "--yes", *(() if code is Exit.DONE else ("--timeout", "100s")))

    assert (shown.code, synced.code) == (code, code), shown.out + synced.out
    assert (EARLIER in shown.out) == (code is Exit.STUCK), shown.out
    assert bool(re.search(r"Deployment/llm-decode  \d pods? cannot be scheduled", shown.out)) == (code is Exit.STUCK)


@pytest.mark.parametrize("replicas, gpus", [(3, 8), (5, 4)])
def test_another_strategy_is_no_advice_where_the_new_pods_do_not_fit_without_the_earlier_ones(
    box: Box, engine: Engine, tmp_path: Path, replicas: int, gpus: int
) -> None:
    assert engine("sync", "-f", graph(tmp_path, 3, 1)).code == Exit.DONE

    shown = engine("diff", "-f", graph(tmp_path, replicas, 2, gpus=gpus))

    assert shown.code == Exit.STUCK and "cannot be scheduled" in shown.out and EARLIER not in shown.out, shown.out


@pytest.mark.parametrize(
    "pods, strategy, expected",
    [(2, "RollingUpdate", True), (3, "RollingUpdate", False), (2, "Recreate", False), (2, "BestEffortControlledRollout", False)],
)
def test_a_quota_has_to_allow_the_new_pod_beside_the_earlier_ones(
    box: Box, engine: Engine, tmp_path: Path, pods: int, strategy: str, expected: bool
) -> None:
    assert engine("sync", "-f", graph(tmp_path, 2, 1, strategy=strategy)).code == Exit.DONE
    limit = {"pods": str(pods)}
    box.create(RESOURCE_QUOTA, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": limit}})
    counted = {"status": {"hard": limit, "used": {"pods": "2"}}}
    box.portal.call(partial(box.cluster.client("user").patch, subresource="status"), RESOURCE_QUOTA, "default", "team", counted)

    shown = engine("diff", "-f", graph(tmp_path, 2, 2, strategy=strategy))

    assert (shown.code == Exit.STUCK) is expected
    assert ("ResourceQuota/team  it allows 0 more pods, and 1 is needed" in shown.out) is expected, shown.out
    assert ("a strategy that deletes them first needs no more" in shown.out) is expected
