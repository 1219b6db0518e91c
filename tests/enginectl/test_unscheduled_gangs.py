"""Where the scheduler places the pods of gangs one by one, every command says so once, with the ways out; elsewhere none does."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base.kinds import POD, PODCLIQUESET
from tests.enginectl.box import Box
from tests.enginectl.calling import NO_GANGS, ROOT, CommandResult, Engine

FIRST = ROOT / "examples" / "01-first-gang"
WAYS = (
    "placed one by one; enable gangs in Kubernetes 1.37 (feature gate GenericWorkload, and scheduling.k8s.io/v1beta1 of the API server), "
    "install KAI, install Volcano (and name it in scheduler.profiles and schedulerName), or accept that"
)
SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: 3
  template:
    cliques:
    - name: worker
      spec: {{roleName: worker, replicas: {pods}, podSpec: {{containers: [{{name: w, image: "x:1"}}]}}}}
"""
VOLCANO = """
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
scheduler: {defaultProfileName: volcano, profiles: [{name: volcano}]}
"""


def written(folder: Path, *sets: tuple[str, int]) -> Path:
    """A file of sets with so many pods in a gang."""
    file = folder / "sets.yaml"
    file.write_text("---".join(SET.format(name=name, pods=pods) for name, pods in sets))
    return file


def notes(answer: CommandResult) -> Sequence[str]:
    """What it says of gangs."""
    assert answer.code == Exit.DONE
    return [line for line in answer.messages if line.startswith(NO_GANGS)]


@pytest.mark.parametrize("command", [("diff", "--against", "empty"), ("diff", "--next", "--against", "empty")])
def test_a_preview_says_it_once_for_all_sets(engine: Engine, tmp_path: Path, command: tuple[str, ...]) -> None:
    many = written(tmp_path, *((f"set-{number}", 2) for number in range(5)), ("alone", 1))

    assert notes(engine(*command, "-f", many)) == [
        f"{NO_GANGS}the pods of default/set-0, default/set-1, default/set-2 and 2 more sets are {WAYS}"
    ]


def test_gangs_of_one_pod_are_not_mentioned(engine: Engine, tmp_path: Path) -> None:
    assert notes(engine("diff", "--against", "empty", "-f", written(tmp_path, ("alone", 1)))) == []


def test_a_scheduler_that_schedules_gangs_is_not_mentioned(engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(VOLCANO)

    assert notes(engine("diff", "--against", "empty", "-f", FIRST, "--config", config)) == []


def test_sync_and_status_say_it_once_and_why_of_what_is_scheduled(box: Box, engine: Engine) -> None:
    line = f"{NO_GANGS}the pods of default/first are {WAYS}"
    assert notes(engine("sync", "-f", FIRST)) == [line]
    assert notes(engine("status")) == notes(engine("status", "first")) == [line]

    for scheduled in ("pcs/first", "podgang/first-0", f"pod/{box.names(POD)[0]}"):
        answer = engine("why", scheduled)
        assert (answer.out.count(line), notes(answer)) == (1, [])
        assert engine("why", scheduled, "-o", "json").document["notes"] == [line.removeprefix("note: ")]
    assert line not in engine("why", "svc/first-0").out


def test_a_set_has_the_condition_and_the_next_sync_writes_nothing(box: Box, engine: Engine) -> None:
    engine("sync", "-f", FIRST)
    before = box.revisions()
    (first,) = box.all(PODCLIQUESET)
    (condition,) = (each for each in first["status"]["conditions"] if each["type"] == "GangSchedulingUnavailable")

    assert (condition["type"], condition["status"], condition["reason"]) == ("GangSchedulingUnavailable", "True", "SchedulerWithoutGangs")
    assert condition["message"] == f"{NO_GANGS.removeprefix('note: ')}the pods of this set are {WAYS}"
    assert engine("sync").code == Exit.DONE
    assert box.revisions() == before


def test_the_preflight_says_which_schedulers_schedule_gangs(box: Box, engine: Engine) -> None:
    (check,) = (check for check in engine("preflight", "-o", "json").document["checks"] if check["check"] == "gangs")

    assert (check["level"], check["result"]) == ("warning", "bad")
    assert check["found"] == "no scheduler schedules gangs: default-scheduler places their pods one by one"
    assert WAYS.endswith(check["remedy"])
