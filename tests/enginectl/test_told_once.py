"""What is said of a manifest when it is read is not said again on the terminal, and is in what others read."""

from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from tests.enginectl.box import Box
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


@pytest.mark.parametrize("format", ["json", "markdown", "html"])
@pytest.mark.parametrize("beside", [False, True], ids=["stdout", "file"])
def test_a_report_that_others_read_has_the_warnings(engine: Engine, tmp_path: Path, format: str, beside: bool) -> None:
    file, report = tmp_path / "graph.yaml", tmp_path / "report"
    file.write_text(GRAPH.format(grove="true"))

    shown = engine("diff", "-f", file, "--against", "empty", *(("--report", f"{format}={report}") if beside else ("-o", format)))

    assert "has no Ray, which joins its nodes" in (report.read_text() if beside else shown.out)


def test_a_sync_tells_a_warning_about_a_manifest_once(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.format(grove="true"))

    synced = engine("sync", "-f", file, "--no-wait")

    assert synced.code == Exit.DONE, synced.err
    assert synced.err.count("has no Ray, which joins its nodes") == 1, synced.err
