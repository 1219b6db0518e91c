"""A kube-scheduler that places pods and says nothing of their PodGroups, because its feature gate for gangs is off."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from engine.observed import timestamp
from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import POD, POD_GROUP
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.quick_clock import QUICK
from tests.enginectl.test_waiting_gangs import gang

OFF = "its feature gate GenericWorkload is off, and it places pods one by one"
REMEDY = "start kube-scheduler with --feature-gates=GenericWorkload=true"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster that serves PodGroups, with a gang of two pods that no scheduler has looked at."""
    actors = [actor for actor in ACTORS if actor != "scheduler"]
    with cluster(tmp_path, actors, ActorOptions(nodes=2, gangs=True, termination=0.0)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        engine("sync", "-f", gang(tmp_path, "demo", 2), "--timeout", "20s")
        yield made


def refuse(box: Box) -> None:
    """What a scheduler without its gate does with pods that fit nowhere."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    status = {"status": {"conditions": [{**condition, "lastTransitionTime": timestamp(QUICK.now())}]}}
    patch = partial(box.cluster.client("user").patch, subresource="status")
    for pod in box.names(POD):
        box.portal.call(patch, POD, "default", pod, status)


def test_preflight_and_why_say_that_the_gate_of_the_scheduler_is_off(box: Box, engine: Engine) -> None:
    assert "scheduled by default-scheduler" in engine("preflight").out
    QUICK.advance(120)
    assert OFF not in engine("preflight").out, "Perhaps no scheduler runs."
    refuse(box)
    assert OFF not in engine("preflight").out, "It has a minute."
    QUICK.advance(120)

    shown = engine("preflight")

    assert shown.code == Exit.DONE
    assert f"has placed or refused the pods of PodGroup default/demo-0 and said nothing of the group for a minute: {OFF}" in shown.out
    assert f"do: {REMEDY}" in shown.out and "scheduled by default-scheduler" not in shown.out
    for words in (("status",), ("why", "pcs/demo"), ("why", "podgang/demo-0"), ("why", f"pod/{box.names(POD)[0]}")):
        said = engine(*words).out
        assert said.count("kube-scheduler has said nothing of PodGroup demo-0 for a minute: its feature gate GenericWorkload") == 1, words
        assert "start it with --feature-gates=GenericWorkload=true" in said


def test_a_group_that_has_its_condition_is_answered(box: Box, engine: Engine) -> None:
    refuse(box)
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    status = {"status": {"conditions": [{**condition, "lastTransitionTime": timestamp(QUICK.now())}]}}
    box.portal.call(partial(box.cluster.client("user").patch, subresource="status"), POD_GROUP, "default", "demo-0", status)
    QUICK.advance(120)

    assert "scheduled by default-scheduler" in engine("preflight").out
    assert "GenericWorkload" not in engine("why", "podgang/demo-0").out
