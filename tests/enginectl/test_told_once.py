"""What is said of a manifest when it is read is not said again in the report."""

from pathlib import Path

import pytest

from tests.enginectl.calling import Engine

GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: llm
  namespace: default
  annotations: {{nvidia.com/vllm-distributed-executor-backend: ray, nvidia.com/enable-grove: "{grove}"}}
spec:
  backendFramework: vllm
  services:
    decode:
      componentType: worker
      replicas: 1
      multinode: {{nodeCount: 2}}
      resources: {{limits: {{gpu: "8"}}}}
      extraPodSpec:
        mainContainer: {{image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.0", command: [python3], args: [-m, dynamo.vllm]}}
"""


@pytest.mark.parametrize("grove", ["true", "false"])
@pytest.mark.parametrize("base", [False, True])
def test_a_warning_about_a_manifest_is_told_once(engine: Engine, tmp_path: Path, grove: str, base: bool) -> None:
    file, before = tmp_path / "graph.yaml", tmp_path / "before.yaml"
    file.write_text(GRAPH.format(grove=grove))
    before.write_text("")

    shown = engine("diff", "-f", file, *(("--base", before) if base else ("--against", "empty")))

    assert (shown.out + shown.err).count("has no Ray, which joins its nodes") == 1, shown.err + shown.out
