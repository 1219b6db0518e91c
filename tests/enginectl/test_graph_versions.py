"""Manifests of graphs of v1beta1: previewed with their own lines, and written in the version that the cluster has."""

import json
from pathlib import Path
from typing import Any

import yaml

from enginectl.base.exit_codes import Exit
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

GRAPH = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata:
  name: g
spec:
  components:
  - name: decode
    type: decode
    replicas: {replicas}
    multinode:
      nodeCount: 2
    podTemplate:
      spec:
        containers:
        - name: {main}
          image: i:1
          command: [python3, -m, dynamo.vllm]
          args: [--tensor-parallel-size, "16"]
          resources: {{limits: {{nvidia.com/gpu: 8}}}}
{more}"""


def write(folder: Path, replicas: int = 1, main: str = "main", more: str = "") -> Path:
    """A graph in a file."""
    file = folder / "graph.yaml"
    file.write_text(GRAPH.format(replicas=replicas, main=main, more=more))
    return file


def test_a_fault_is_reported_with_the_line_of_its_own_field(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, main="engine")

    answer = engine("diff", "--against", "empty", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:14: spec.components[decode].podTemplate.spec.containers: must have a container named main" in answer.out + answer.err


def test_an_unknown_field_is_reported_with_the_nearest_one(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, more="    scalingAdaptor: {}\n")

    answer = engine("diff", "--against", "empty", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:20: spec.components[decode].scalingAdaptor: unknown field: did you mean scalingAdapter?" in answer.err


def test_a_new_and_a_changed_graph_are_stored_in_the_version_of_the_cluster(box: Box, engine: Engine, tmp_path: Path) -> None:
    for replicas in (1, 2):
        answer = engine("sync", "--no-wait", "-f", write(tmp_path, replicas))

        assert answer.code == Exit.DONE, answer.err
        (stored,) = box.all(DYNAMO_GRAPH)
        service = stored["spec"]["services"]["decode"]
        assert stored["apiVersion"] == "nvidia.com/v1alpha1"
        assert (service["replicas"], service["componentType"], service["subComponentType"]) == (replicas, "worker", "decode")
    assert box.names(PODCLIQUESET) == ["g"]
    assert "No changes" in engine("diff", "-f", write(tmp_path, 2)).out


def test_status_and_why_call_the_services_of_a_graph_as_its_author_does(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "--no-wait", "-f", write(tmp_path)).code == Exit.DONE

    shown, explained = engine("status", "-v").out, engine("why", "dgd/g").out

    assert "  component decode: " in shown and "  component decode: " in explained
    assert " of 1 components ready" in explained
    assert "service" not in shown.partition("\n")[2] + explained


def test_a_graph_is_rendered_in_its_own_version(engine: Engine, tmp_path: Path) -> None:
    answer = engine("render", "-f", write(tmp_path), "-o", "json")

    rendered = {body["kind"]: body for body in json.loads(answer.out)["objects"]}
    assert rendered["PodCliqueSet"]["metadata"]["name"] == "g"
    assert rendered.get("DynamoGraphDeployment", {}).get("apiVersion", "nvidia.com/v1beta1") == "nvidia.com/v1beta1"


def test_a_graph_is_the_same_in_yaml_and_in_json(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path)

    in_yaml = [body for body in yaml.load_all(engine("render", "-f", file).out, yaml.CSafeLoader) if body]

    assert in_yaml == json.loads(engine("render", "-f", file, "-o", "json").out)["objects"]
    assert ["--distributed-executor-backend", "mp"] in [container["args"][2:4] for container in containers(in_yaml) if "args" in container]


def containers(bodies: list[Any]) -> list[Any]:
    """The containers in the cliques of the set."""
    (pcs,) = (body for body in bodies if body["kind"] == "PodCliqueSet")
    return [container for clique in pcs["spec"]["template"]["cliques"] for container in clique["spec"]["podSpec"]["containers"]]


def test_a_version_that_does_not_exist_is_refused(engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path)
    file.write_text(file.read_text().replace("v1beta1", "v1beta2"))

    answer = engine("diff", "--against", "empty", "-f", file)

    assert f"{file}:1: DynamoGraphDeployment is supported as nvidia.com/v1alpha1 and nvidia.com/v1beta1 only" in answer.err
