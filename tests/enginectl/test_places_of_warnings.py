"""Places: warnings and faults of a manifest are reported at the line that they are about, each once."""

from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import Engine

SET = """apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: one}
spec:
  replicas: 1
  template:
    resourceClaimTemplates:
    - name: gpus
      templateSpec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c}}]}}}
    resourceSharing:
    - {name: gpuz, scope: AllReplicas}
    cliques:
    - name: w
      spec:
        roleName: w
        podSpec:
          containers: [{name: main, image: "x:1"}]
          restartPolicy: Never
    - name: v
      resourceSharing:
      - {name: gpus, scope: PerReplica}
      - {name: other, namespace: shared, scope: PerReplica}
      spec:
        roleName: v
        podSpec:
          containers: [{name: main, image: "x:1"}]
          restartPolicy: OnFailure
"""
GRAPH = """apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: plain
  annotations:
    nvidia.com/enable-grove: "false"
spec:
  services:
    idle:
      componentType: worker
      replicas: 0
    model:
      componentType: worker
      modelRef: {name: m}
      autoscaling: {enabled: true, minReplicas: 1, maxReplicas: 2}
"""
SEVERAL_NODES = """apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: plain
spec:
  services:
    other:
      componentType: worker
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {mainContainer: {image: "x:1", command: [/start.sh]}}
    ranked:
      componentType: worker
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "4"}}
      envs: [{name: DYNAMO_RANK, value: "7"}]
      extraPodSpec: {mainContainer: {image: "x:1", command: [python3, -m, dynamo.sglang], args: [--tp, "8"]}}
"""


def warned(engine: Engine, folder: Path, text: str) -> list[str]:
    """The warnings about a manifest, each with its line."""
    (folder / "it.yaml").write_text(text)
    shown = engine("diff", "-f", folder / "it.yaml", "--against", "empty")
    prefix = f"warning: {folder / 'it.yaml'}:"
    return [line.removeprefix(prefix) for line in shown.err.splitlines() if line.startswith(prefix)]


def test_a_restart_policy_is_warned_about_at_its_own_line_in_every_clique(engine: Engine, tmp_path: Path) -> None:
    text = "is kept: a pod that fails is replaced, one that succeeds is not"

    lines = [line for line in warned(engine, tmp_path, SET) if "restartPolicy" in line]

    assert lines == [f"18: restartPolicy: Never {text}", f"27: restartPolicy: OnFailure {text}"]


def test_a_restart_policy_of_a_graph_is_warned_about_on_grove_and_a_fault_without_it(engine: Engine, tmp_path: Path) -> None:
    without = "without Grove the service cannot run: spec.services[other].extraPodSpec.restartPolicy: Unsupported value: "
    always = 'supported values: "Always": Deployments and LeaderWorkerSets have no pods that end'
    never = SEVERAL_NODES.replace('{mainContainer: {image: "x:1", command: [/start.sh]}}', "{restartPolicy: Never}")

    lines = [line for line in warned(engine, tmp_path, never) if "restartPolicy" in line]

    assert [line.split(": ", 1)[1] for line in lines] == [
        "spec.services[other]: restartPolicy: Never is kept: a pod that fails is replaced, one that succeeds is not",
        f'{without}"Never": {always}',
    ]


def test_a_shared_claim_template_that_the_set_does_not_have_is_named_with_the_nearest_one(engine: Engine, tmp_path: Path) -> None:
    (line,) = (line for line in warned(engine, tmp_path, SET) if "claim template" in line)

    path = "spec.template.resourceSharing[0].name"
    assert line == f"11: {path}: the set has no claim template of this name; did you mean gpus? There is gpus"


def test_warnings_about_a_graph_have_the_lines_of_its_services(engine: Engine, tmp_path: Path) -> None:
    lines = warned(engine, tmp_path, GRAPH)

    begins = {line.split(": ")[0]: line for line in lines}
    assert "spec.services[idle].replicas" in begins["11"] and "spec.services[model].modelRef" in begins["14"]
    assert "spec.services[model].autoscaling" in begins["15"] and "1" not in begins


def test_warnings_about_pods_of_a_graph_have_the_lines_of_its_services_too(engine: Engine, tmp_path: Path) -> None:
    lines = warned(engine, tmp_path, SEVERAL_NODES)

    texts = {line.split(": ")[0]: line for line in lines if "every node runs the same command" in line}
    assert texts.keys() == {"7"} and "service other, worker" in texts["7"]
    assert [line.split(": ")[0] for line in lines if "DYNAMO_RANK: the given value is replaced" in line] == ["12", "12"]


@pytest.mark.parametrize(("given", "fault"), [("x", 'must be an integer, got "x"'), ("2147483648", "must fit 32 bits, got 2147483648")])
def test_replicas_that_cannot_be_read_are_one_fault(given: str, fault: str, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(SET.replace("roleName: w", f"replicas: {given}"))

    shown = engine("diff", "-f", tmp_path / "it.yaml", "--against", "empty")

    assert shown.code == Exit.FAILED
    faults = [line for line in shown.err.splitlines() if "must" in line]
    assert faults == [f"engine: {tmp_path / 'it.yaml'}:15: spec.template.cliques[0].spec.replicas: {fault}"]
