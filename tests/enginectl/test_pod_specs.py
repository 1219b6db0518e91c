"""Faults and warnings about pod specs in manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import Engine

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: x
spec:
  replicas: 1
  template:
    cliques:
      - name: a
        spec:
          roleName: a
          replicas: 1
          podSpec:
            containers:
              - name: main
                image: i
                SAID
"""
CONTAINER = "spec.template.cliques[0].spec.podSpec.containers[0]"
COMMANDS = [("diff", "--against", "empty"), ("render",)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the manifest goes."""
    return tmp_path / "x.yaml"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_field_of_the_wrong_type_is_reported_with_its_line_and_nothing_is_planned(
    engine: Engine, file: Path, command: tuple[str, ...]
) -> None:
    file.write_text(SET.replace("SAID", 'ports: [{containerPort: "80"}]\n                tty: 1'))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.FAILED
    assert answer.out == ""
    assert answer.err.splitlines()[:2] == [
        f'engine: {file}:17: {CONTAINER}.ports[0].containerPort: Invalid value: "80": must be of type integer: "string"',
        f'engine: {file}:18: {CONTAINER}.tty: Invalid value: 1: must be of type boolean: "integer"',
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_field_is_a_warning_with_its_line_and_is_kept(engine: Engine, file: Path, command: tuple[str, ...]) -> None:
    file.write_text(SET.replace("SAID", "imagePullPolice: Always"))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert answer.err.splitlines()[:1] == [f'warning: {file}:17: unknown field "{CONTAINER}.imagePullPolice"']
    assert command != ("render",) or "imagePullPolice: Always" in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_valid_spec_gives_no_warning(engine: Engine, file: Path, command: tuple[str, ...]) -> None:
    file.write_text(
        SET.replace("SAID", 'env:\n                resources: {limits: {cpu: 0.5, memory: 1e9}}\n                imagePullPolicy: ""')
    )

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert "warning" not in answer.err


def test_outside_of_a_pod_spec_an_unknown_field_is_a_fault(engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("SAID", "").replace("          replicas: 1\n", "          replicas: 1\n          replcas: 2\n"))

    answer = engine("render", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:13: spec.template.cliques[0].spec.replcas: unknown field" in answer.err


def review(operation: str, spec: dict[str, Any], old: dict[str, Any] | None = None, replicas: int = 1) -> str:
    """An AdmissionReview of a set with this pod spec, in a line."""
    resource = {"group": "grove.io", "version": "v1alpha1"}
    request = {
        "uid": "u",
        "kind": {**resource, "kind": "PodCliqueSet"},
        "resource": {**resource, "resource": "podcliquesets"},
        "namespace": "default",
        "name": "x",
        "operation": operation,
        "userInfo": {"username": "somebody"},
        "object": workload(spec, replicas),
        "oldObject": None if old is None else workload(old),
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def workload(spec: dict[str, Any], replicas: int = 1) -> dict[str, Any]:
    """A set of one clique with this pod spec."""
    body: dict[str, Any] = yaml.safe_load(SET.replace("SAID", ""))
    body["metadata"]["namespace"] = "default"
    body["spec"]["replicas"] = replicas
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"] = spec
    return body


def test_a_review_denies_wrong_types_warns_about_unknown_fields_and_keeps_old_faults(engine: Engine, file: Path) -> None:
    mistyped, novel = ({"containers": [{"name": "main", key: value}]} for key, value in (("image", 5), ("imagePullPolice", "Always")))
    file.write_text("\n".join([review("CREATE", mistyped), review("CREATE", novel), review("UPDATE", mistyped, mistyped, replicas=3)]))

    denied, warned, borne = (json.loads(line)["response"] for line in engine("review", "-f", file).out.splitlines())

    assert [cause["field"] for cause in denied["status"]["details"]["causes"]] == [f"{CONTAINER}.image"]
    assert (warned["allowed"], warned["warnings"]) == (True, [f'unknown field "{CONTAINER}.imagePullPolice"'])
    assert (borne["allowed"], borne.get("warnings")) == (True, None)
