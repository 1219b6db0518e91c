"""What a user is told about the pod specs in a manifest, before there are any pods."""

from pathlib import Path

import pytest

from enginectl.exits import Exit
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
def test_a_field_that_has_not_its_type_is_told_with_its_line_and_nothing_is_planned(engine: Engine, file: Path, command: list[str]) -> None:
    file.write_text(SET.replace("SAID", 'ports: [{containerPort: "80"}]\n                tty: 1'))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.FAILED
    assert answer.out == ""
    assert answer.err.splitlines()[:2] == [
        f'engine: {file}:17: {CONTAINER}.ports[0].containerPort: Invalid value: "80": must be of type integer: "string"',
        f'engine: {file}:18: {CONTAINER}.tty: Invalid value: 1: must be of type boolean: "integer"',
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_field_that_is_not_known_is_warned_about_with_its_line_and_handed_on(engine: Engine, file: Path, command: list[str]) -> None:
    file.write_text(SET.replace("SAID", "imagePullPolice: Always"))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert answer.err.splitlines()[:1] == [f'warning: {file}:17: unknown field "{CONTAINER}.imagePullPolice"']
    assert command != ("render",) or "imagePullPolice: Always" in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_said_about_a_spec_that_kubernetes_takes(engine: Engine, file: Path, command: list[str]) -> None:
    file.write_text(
        SET.replace("SAID", 'env:\n                resources: {limits: {cpu: 0.5, memory: 1e9}}\n                imagePullPolicy: ""')
    )

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert "warning" not in answer.err


def test_outside_of_a_pod_spec_a_field_that_is_not_known_is_a_mistake(engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("SAID", "").replace("          replicas: 1\n", "          replicas: 1\n          replcas: 2\n"))

    answer = engine("render", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:13: spec.template.cliques[0].spec.replcas: unknown field" in answer.err
