"""Manifests of DynamoGraphDeployments: judged with file and line, and sent with values of the right types."""

from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base.kinds import DYNAMO_GRAPH
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: g
spec:
  services:
    decode:
      replicas: {replicas}
      componentType: worker
      multinode:
        nodeCount: "2"
      resources: {{limits: {{gpu: 8}}}}
      extraPodSpec:
        mainContainer: {{image: "i:1", command: [python3, -m, dynamo.vllm], args: [--tensor-parallel-size, "16"]}}
"""


def write(folder: Path, replicas: str) -> Path:
    """A graph in a file."""
    file = folder / "graph.yaml"
    file.write_text(GRAPH.format(replicas=replicas))
    return file


def test_an_issue_and_a_value_that_is_read_otherwise_are_reported_with_their_lines(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, "-1")

    answer = engine("diff", "--against", "empty", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"  problem: {file}:8: spec.services[decode].replicas must be non-negative\n" in answer.out
    assert f'warning: {file}:11: spec.services[decode].multinode.nodeCount: "2" is read as the number 2\n' in answer.err
    assert f'warning: {file}:12: spec.services[decode].resources.limits.gpu: 8 is read as the text "8"\n' in answer.err


def test_a_wrong_type_is_reported_with_its_line(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, "many")

    answer = engine("diff", "--against", "empty", "-f", file)

    assert answer.code == Exit.FAILED
    assert f'{file}:8: spec.services[decode].replicas: must be an integer, got "many"' in answer.err


def test_a_new_and_a_changed_graph_are_stored_with_numbers(box: Box, engine: Engine, tmp_path: Path) -> None:
    for replicas in ("1", '"2"'):
        engine("sync", "--no-wait", "-f", write(tmp_path, replicas))

        service = box.all(DYNAMO_GRAPH)[0]["spec"]["services"]["decode"]
        assert service["replicas"] == int(replicas.strip('"'))
        assert service["multinode"] == {"nodeCount": 2}
        assert service["resources"] == {"limits": {"gpu": "8"}}


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        ("ownerReferences: null", Exit.DONE, "Plan: "),
        ("deletionTimestamp: 2020-01-01T00:00:00Z", Exit.DONE, "DynamoGraphDeployment/default/g: create"),
        ("creationTimestamp: yesterday", Exit.FAILED, "{file}:5: metadata.creationTimestamp: Invalid value: "),
        ("deletionTimestamp: tomorrow", Exit.FAILED, "{file}:5: metadata.deletionTimestamp: Invalid value: "),
    ],
)
def test_metadata_that_a_server_sets_is_judged_or_ignored(engine: Engine, tmp_path: Path, metadata: str, code: Exit, message: str) -> None:
    file = write(tmp_path, "1")
    file.write_text(file.read_text().replace("  name: g\n", f"  name: g\n  {metadata}\n"))

    answer = engine("diff", "--against", "empty", "-f", file)

    assert (answer.code, "internal error" in answer.err) == (code, False)
    assert message.format(file=file) in answer.out + answer.err
