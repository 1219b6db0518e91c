"""Scheduling gates of other programs: a forecast takes for granted that these are removed, and says so."""

import json
from pathlib import Path

import pytest

from engine.forecast.cluster_model import Assumption
from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import Engine

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {{name: gated}}
spec:
  replicas: 1
  template:
    cliques:
    - name: worker
      spec:
        replicas: 2
        podSpec:
          schedulingGates: {gates}
          containers: [{{name: main, image: "example/worker:1"}}]
    podCliqueScalingGroups: [{{name: pool, cliqueNames: [worker], replicas: 2, minAvailable: 1}}]
"""
OURS = "grove.io/podgang-pending-creation"


THEIRS = "quota.example.com/admitted"


@pytest.mark.parametrize(("names", "foreign"), [((THEIRS,), True), ((OURS, THEIRS), True), ((OURS,), False), ((), False)])
def test_pods_start_when_other_programs_have_removed_their_gates(
    names: tuple[str, ...], foreign: bool, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(SET.format(gates=json.dumps([{"name": name} for name in names])))

    answer = engine("diff", "-f", file, "--against", "empty")
    document = engine("diff", "-f", file, "--against", "empty", "-o", "json").document

    assert (answer.code, "STUCK" in answer.out) == (Exit.DONE, False), answer.out
    assert "4 pods added" in answer.out
    assert (Assumption.GATES in answer.out) is foreign
    assert ("GATES" in document["forecast"]["assumptions"]) is foreign
